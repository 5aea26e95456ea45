"""Batches on disk, so that neither a stopped exporter nor a killed crawler loses what was reported.

Each process writes to a folder of its own below the spool and holds a lock on it. What a process left behind is taken
over by the next one that looks, with the keys it had, so that nothing is counted twice.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crawlhealth.client.outbox import MemoryOutbox
from crawlhealth.client.report import Batch

log = logging.getLogger(__name__)

ADOPT_EVERY: Final = 60.0
"""Seconds between two looks for folders of processes that are gone."""
_LOCK: Final = "lock"
_NAME: Final = re.compile(r"(\d{20})-(\d+)-([0-9a-f]{32})\.ndjson\.gz")


@dataclass(frozen=True, slots=True)
class _Stored:
    path: Path
    key: str
    count: int
    size: int


class Spool:
    """Batches as files below `folder`, at most `max_bytes` of them. While the disk refuses them they stay in memory.

    `adopted` is told how many reports were taken over, `lost` how many somebody else has deleted. Raises OSError if
    the folder cannot be made or locked.
    """

    durable = True

    def __init__(
        self,
        folder: Path,
        max_bytes: int,
        spare: MemoryOutbox,
        *,
        adopted: Callable[[int], None],
        lost: Callable[[int], None],
    ) -> None:
        self._adopted = adopted
        self._lost = lost
        self._root = folder
        self._max_bytes = max_bytes
        self._spare = spare
        self._own = folder / f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._own.mkdir(parents=True)
        self._lock_file = _lock(self._own)
        self._change = threading.Condition()
        self._stored: deque[_Stored] = deque()
        self._bytes = 0
        self._from_spare = False
        self._woken = False
        self._look_again = 0.0
        self._written = 0
        self._adopt()

    def put(self, batch: Batch) -> int:
        """Keep a batch; it is on disk when this returns. Returns how many reports had to go for it."""
        try:
            stored = self._write(batch)
        except OSError as error:
            log.warning("cannot write to the spool, keeping reports in memory: %s", error)
            return self._spare.put(batch)
        dropped = 0
        with self._change:
            self._stored.append(stored)
            self._bytes += stored.size
            while self._bytes > self._max_bytes and len(self._stored) > 2:
                gone = self._stored[1]
                del self._stored[1]
                dropped += self._remove(gone)
            self._change.notify_all()
        return dropped

    def first(self, seconds: float) -> Batch | None:
        """The oldest batch, waited for up to `seconds`. Raises OSError when it cannot be read now; another is next."""
        self._adopt()
        with self._change:
            if not self._stored and not self._woken and not self._spare.waiting():
                self._change.wait(seconds)
            self._woken = False
        while (stored := self._oldest()) is not None:
            try:
                batch = Batch(key=stored.key, count=stored.count, data=stored.path.read_bytes())
            except FileNotFoundError:
                log.warning("%s is gone, %d reports are lost", stored.path, stored.count)
                with self._change:
                    self._stored.popleft()
                    self._bytes -= stored.size
                self._lost(stored.count)
            except OSError:
                with self._change:
                    self._stored.rotate(-1)
                raise
            else:
                self._from_spare = False
                return batch
        spare = self._spare.first(0)
        self._from_spare = spare is not None
        return spare

    def _oldest(self) -> _Stored | None:
        """The file that is next; it stays the first until it is settled."""
        with self._change:
            return self._stored[0] if self._stored else None

    def settle(self, batch: Batch, *instead: Batch) -> bool:
        """A batch that was first is done with, and `instead` takes its place; False if it was not kept any more."""
        if self._from_spare:
            return self._spare.settle(batch, *instead)
        with self._change:
            if not self._stored or self._stored[0].key != batch.key:
                return False
            stored = self._stored.popleft()
        for part in instead:
            self.put(part)
        with self._change:
            self._remove(stored)
        return True

    def waiting(self) -> int:
        """Reports that are kept."""
        with self._change:
            return sum(stored.count for stored in self._stored) + self._spare.waiting()

    def wake(self) -> None:
        """Let `first` return at once."""
        with self._change:
            self._woken = True
            self._change.notify_all()

    def close(self) -> int:
        """Leave what is on disk to the next process; returns how many reports are lost."""
        with self._change:
            if not self._stored:
                shutil.rmtree(self._own, ignore_errors=True)
            self._stored.clear()
            os.close(self._lock_file)
        return self._spare.close()

    def forked(self) -> None:
        """In the child of a fork: hold the parent's folder no longer than the parent does."""
        os.close(self._lock_file)

    def _write(self, batch: Batch) -> _Stored:
        self._written += 1
        order = f"{time.time_ns() + self._written % 1000:020d}"
        path = self._own / f"{order}-{batch.count}-{batch.key}.ndjson.gz"
        fresh = path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.write(batch.data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        return _Stored(path, batch.key, batch.count, len(batch.data))

    def _remove(self, stored: _Stored) -> int:
        self._bytes -= stored.size
        try:
            stored.path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("%s cannot be removed: %s", stored.path, error)
        return stored.count

    def _adopt(self) -> None:
        """Take over what processes that are gone have left, oldest first and before anything new."""
        now = time.monotonic()
        if now < self._look_again:
            return
        self._look_again = now + ADOPT_EVERY
        found: list[_Stored] = []
        try:
            for folder in sorted(self._root.iterdir()):
                if folder != self._own and folder.is_dir():
                    found += self._take_over(folder)
        except OSError as error:
            log.warning("cannot look for older reports in the spool: %s", error)
        if found:
            reports = sum(stored.count for stored in found)
            log.info("%d reports of an earlier process will be sent", reports)
            self._adopted(reports)
            with self._change:
                first = [self._stored.popleft()] if self._stored else []  # it may be on its way
                self._stored.extendleft(sorted(found, key=lambda stored: stored.path.name, reverse=True))
                self._stored.extendleft(first)
                self._bytes += sum(stored.size for stored in found)

    def _take_over(self, folder: Path) -> list[_Stored]:
        try:
            lock = _lock(folder)
        except OSError:
            return []  # its process lives
        found = []
        try:
            for path in folder.iterdir():
                if written := _NAME.fullmatch(path.name):
                    size = path.stat().st_size
                    found.append(_Stored(path.rename(self._own / path.name), written[3], int(written[2]), size))
            shutil.rmtree(folder, ignore_errors=True)
        except OSError as error:  # what is left is taken over another time
            log.warning("cannot take over all of %s: %s", folder, error)
        finally:
            os.close(lock)
        return found


def _lock(folder: Path) -> int:
    """An open, locked file in a folder; OSError while another process holds it."""
    file = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file
