"""Batches on their way: in memory, oldest first, never more than so many bytes."""

from __future__ import annotations

import threading
from collections import deque
from typing import Protocol

from crawlhealth.client.report import Batch


class Outbox(Protocol):
    """Where batches wait until they are delivered. Thread-safe; the first one stays until `settle` takes it away."""

    durable: bool
    """Whether what is kept outlives the process."""

    def put(self, batch: Batch) -> int:
        """Keep a batch; returns how many reports had to go for it, oldest first."""

    def first(self, seconds: float) -> Batch | None:
        """The oldest batch, waited for up to `seconds`; None if there is none. Raises OSError if it cannot be read."""

    def settle(self, batch: Batch, *instead: Batch) -> bool:
        """A batch that was first is done with, and `instead` takes its place; False if it was not kept any more."""

    def waiting(self) -> int:
        """Reports that are kept."""

    def wake(self) -> None:
        """Let `first` return at once."""

    def close(self) -> int:
        """No more is kept or sent; returns how many reports are lost by that."""

    def forked(self) -> None:
        """In the child of a fork: let go of what is the parent's."""


class MemoryOutbox:
    """Batches in memory. What is over `max_bytes` goes, oldest first, but for the one that is being sent."""

    durable = False

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._batches: deque[Batch] = deque()
        self._bytes = 0
        self._woken = False
        self._change = threading.Condition()

    def put(self, batch: Batch) -> int:
        """Keep a batch; returns how many reports had to go for it."""
        dropped = 0
        with self._change:
            self._batches.append(batch)
            self._bytes += len(batch.data)
            while self._bytes > self._max_bytes and len(self._batches) > 2:
                gone = self._batches[1]
                del self._batches[1]
                self._bytes -= len(gone.data)
                dropped += gone.count
            self._change.notify_all()
        return dropped

    def first(self, seconds: float) -> Batch | None:
        """The oldest batch, waited for up to `seconds`."""
        with self._change:
            if not self._batches and not self._woken:
                self._change.wait(seconds)
            self._woken = False
            return self._batches[0] if self._batches else None

    def settle(self, batch: Batch, *instead: Batch) -> bool:
        """A batch that was first is done with, and `instead` takes its place; False if it was not kept any more."""
        with self._change:
            if not self._batches or self._batches[0].key != batch.key:
                return False
            self._bytes -= len(self._batches.popleft().data)
            self._batches.extendleft(reversed(instead))
            self._bytes += sum(len(batch.data) for batch in instead)
            return True

    def waiting(self) -> int:
        """Reports that are kept."""
        with self._change:
            return sum(batch.count for batch in self._batches)

    def wake(self) -> None:
        """Let `first` return at once."""
        with self._change:
            self._woken = True
            self._change.notify_all()

    def close(self) -> int:
        """Nothing is kept after this; returns how many reports are lost."""
        with self._change:
            lost = sum(batch.count for batch in self._batches)
            self._batches.clear()
            self._bytes = 0
            return lost

    def forked(self) -> None:
        """Nothing is shared with the parent."""
