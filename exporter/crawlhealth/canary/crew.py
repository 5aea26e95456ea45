"""A crew of threads that grows while work waits, up to its size, and shrinks when there is none."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

log = logging.getLogger(__name__)

_IDLE_SECONDS: Final = 30.0


class Crew:
    """Does submitted work in at most `size` daemon threads, first come first served. Thread-safe."""

    def __init__(self, name: str, size: int) -> None:
        self.size = size
        self._name = name
        self._waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._open = 0
        self._threads = 0

    def submit(self, work: Callable[[], None]) -> None:
        """Have the work done; what it raises is logged."""
        with self._lock:
            self._open += 1
            grow = self._open > self._threads and self._threads < self.size
            if grow:
                self._threads += 1
            self._waiting.put(work)
        if grow:
            self._grow()

    @property
    def open(self) -> int:
        """How much work waits or is being done."""
        with self._lock:
            return self._open

    def _grow(self) -> None:
        try:
            threading.Thread(target=self._toil, name=self._name, daemon=True).start()
        except RuntimeError:  # the system has no thread to give: those that there are do the work
            log.exception("cannot start a thread of %s", self._name)
            with self._lock:
                self._threads -= 1

    def _toil(self) -> None:
        while True:
            try:
                work = self._waiting.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._waiting.empty():
                        self._threads -= 1
                        return
                continue
            try:
                work()
            except Exception:
                log.exception("work of %s failed", self._name)
            finally:
                with self._lock:
                    self._open -= 1
