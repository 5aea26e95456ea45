"""Extraction: values off hostile pages in worker processes that can be killed, within a limit for each page."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections import OrderedDict, deque
from types import TracebackType
from typing import Final, Self

import msgspec

from crawlhealth.canary import frames
from crawlhealth.checks import ValueSpec
from crawlhealth.model import ValueResult

log = logging.getLogger(__name__)

WORKERS: Final = 2
"""Workers for ordinary pages; one more takes those that were slow before."""
_START_SECONDS: Final = 30.0
_WALL_FACTOR: Final = 3.0
"""A page has its limit in processor time, and so many times as much by the clock: a busy machine is no fault of it."""
_SLOW_SHARE: Final = 0.25
"""A page that takes this share of the limit is slow."""
_FAST_RUNS: Final = 3
"""So often in a row a slow page must be fast to be an ordinary one again."""
_SLOW_NICENESS: Final = 10
"""Slow pages must not take the processor from the others."""
_PATIENCE: Final = 10.0
"""Limits that a page waits for a free worker."""
_REMEMBERED: Final = 10_000
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "TZ")


class TooComplex(Exception):
    """A page that could not be read within the limits of time and memory."""


class Extractor:
    """Reads pages in worker processes. Thread-safe; a context manager that ends them.

    Pages that were slow have a worker of their own, so that they hold up only one another. `seconds` is the limit in
    processor time for each page.
    """

    def __init__(self, seconds: float, *, workers: int = WORKERS) -> None:
        self.seconds = seconds
        self._ordinary = _Lane(workers, niceness=0)
        self._slow = _Lane(1, niceness=_SLOW_NICENESS)
        self._lock = threading.Lock()
        self._slow_pages: OrderedDict[str, int] = OrderedDict()
        self._packed: dict[int, tuple[tuple[ValueSpec, ...], bytes]] = {}

    def extract(
        self, page: str, body: bytes, content_type: str, specs: tuple[ValueSpec, ...]
    ) -> tuple[ValueResult, ...]:
        """The values of a page against what is expected. `page` names it over time. Raises TooComplex."""
        frame = frames.request(self._pack(specs), content_type.encode("latin-1", "replace")[:1000], body)
        with self._lock:
            slow = page in self._slow_pages
        lane = self._slow if slow else self._ordinary
        worker = lane.take(self.seconds)
        overran = True
        try:
            worker.await_start()
            began = time.monotonic()
            results = worker.ask(frame, self.seconds)
            overran = time.monotonic() - began > self.seconds * _SLOW_SHARE
        finally:
            lane.give_back(worker, self.seconds)
            self._remember(page, slow=overran)
        return results

    def warm_up(self) -> None:
        """Start a worker before the first page comes."""
        self._ordinary.warm_up(self.seconds)

    def close(self) -> None:
        """End the workers."""
        self._ordinary.close()
        self._slow.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _pack(self, specs: tuple[ValueSpec, ...]) -> bytes:
        known = self._packed.get(id(specs))
        if known is None or known[0] is not specs:
            if len(self._packed) > _REMEMBERED:
                self._packed.clear()
            known = self._packed[id(specs)] = (specs, frames.pack_specs(specs))
        return known[1]

    def _remember(self, page: str, *, slow: bool) -> None:
        with self._lock:
            if slow:
                self._slow_pages[page] = _FAST_RUNS
                self._slow_pages.move_to_end(page)
                if len(self._slow_pages) > _REMEMBERED:
                    self._slow_pages.popitem(last=False)
            elif page in self._slow_pages:
                self._slow_pages[page] -= 1
                if self._slow_pages[page] <= 0:
                    del self._slow_pages[page]


class _Lane:
    """A few workers, started when needed, and those who wait for one: first come, first served."""

    def __init__(self, size: int, *, niceness: int) -> None:
        self._niceness = niceness
        self._lock = threading.Lock()
        self._waiting: deque[threading.Condition] = deque()
        self._idle: list[_Worker] = []
        self._places = size
        self._closed = False

    def take(self, seconds: float) -> _Worker:
        """A free worker, the one used last first. Raises TooComplex when none gets free."""
        with self._lock:
            self._await_turn(seconds * _PATIENCE)
            try:
                while self._idle:
                    worker = self._idle.pop()
                    if worker.running and worker.seconds == seconds:
                        return worker
                    worker.end()
                    self._places += 1
                self._places -= 1
            finally:
                self._call_next()
        try:
            return _Worker(seconds, self._niceness)
        except OSError:
            log.exception("cannot start an extraction worker")
            with self._lock:
                self._places += 1
                self._call_next()
            raise TooComplex("no worker to read it") from None

    def _await_turn(self, patience: float) -> None:
        """Wait until there is a place and nobody came before. Raises TooComplex."""
        if (self._waiting or not (self._idle or self._places)) and not self._closed:
            turn = threading.Condition(self._lock)
            self._waiting.append(turn)
            came = turn.wait_for(
                lambda: self._closed or (self._waiting[0] is turn and (self._idle or self._places)), patience
            )
            self._waiting.remove(turn)
            if not came:
                self._call_next()
                raise TooComplex("no worker was free: other pages take too long to read")
        if self._closed:
            raise TooComplex("stopping")

    def _call_next(self) -> None:
        if self._waiting:
            self._waiting[0].notify()

    def give_back(self, worker: _Worker, seconds: float) -> None:
        """Take a worker back; for one that has ended another starts at once, so that the next page finds it warm."""
        with self._lock:
            if self._closed:
                worker.end()
            elif worker.alive:
                self._idle.append(worker)
            else:
                try:
                    self._idle.insert(0, _Worker(seconds, self._niceness))
                except OSError:
                    log.exception("cannot start an extraction worker")
                    self._places += 1
            self._call_next()

    def warm_up(self, seconds: float) -> None:
        """Start a worker and wait until it is ready. Raises TooComplex when it does not start."""
        worker = self.take(seconds)
        try:
            worker.await_start()
        finally:
            self.give_back(worker, seconds)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for worker in self._idle:
                worker.end()
            self._idle.clear()
            for turn in self._waiting:
                turn.notify()


class _Worker:
    """One worker process. It gets no secret of the environment."""

    def __init__(self, seconds: float, niceness: int) -> None:
        self._line, theirs = socket.socketpair()
        self._source = io.BufferedReader(_Reader(self._line), 65_536)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own module, nothing of a page in the arguments
                [sys.executable, "-P", "-m", "crawlhealth.canary.worker", repr(seconds), str(niceness)],
                stdin=theirs.fileno(), stdout=subprocess.DEVNULL, cwd="/",
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            )  # fmt: skip
        self.seconds = seconds
        self.alive = True
        self._ready = False

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def await_start(self) -> None:
        """Wait until the process has loaded what it needs. Raises TooComplex when it does not."""
        if self._ready:
            return
        try:
            self._line.settimeout(_START_SECONDS)
            self._ready = self._source.read(1) == frames.READY
        except OSError:
            pass
        if not self._ready:
            self.end()
            log.error("an extraction worker does not start; its error output says why")
            raise TooComplex("no worker to read it")

    def ask(self, frame: bytes, seconds: float) -> tuple[ValueResult, ...]:
        """The results for a page. Raises TooComplex, and has ended then; it may have ended after an answer, too."""
        answer = None
        try:
            self._line.settimeout(seconds * _WALL_FACTOR)
            self._line.sendall(frame)
            answer = frames.read_answer(self._source)
        except TimeoutError:
            raise TooComplex(f"not read within {seconds * _WALL_FACTOR:g} s") from None
        except (OSError, ValueError, msgspec.MsgspecError):
            pass
        finally:
            if answer is None or answer[1]:
                self.end()
        if answer is None:
            raise TooComplex(f"not read within {seconds:g} s of processor time and the memory of a worker")
        return answer[0]

    def end(self) -> None:
        """Kill the process, at once."""
        self.alive = False
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            self._line.close()


class _Reader(io.RawIOBase):
    """The raw side of a socket whose timeout is an exception and not a state."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]  # what BufferedReader gives
        return self._line.recv_into(buffer)
