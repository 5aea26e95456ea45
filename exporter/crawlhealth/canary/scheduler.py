"""The scheduler: starts what the timetable says when it says it, in a bounded crew of threads."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from crawlhealth.canary.crew import Crew
from crawlhealth.canary.timetable import Start, Timetable
from crawlhealth.config import Canary, Config

log = logging.getLogger(__name__)

_STOP_SECONDS: Final = 2.0

Run = Callable[[Canary, tuple[str, ...]], float | None]
"""Runs a canary through routes; returns the seconds that its server asks to stay away, if it does."""


class Scheduler:
    """Runs the canaries of a configuration on schedule. Thread-safe.

    `lag` gets the seconds that each run started late, politeness waits aside; `skipped` is called for each run left out
    because the one before still waited or ran. Both are called from the scheduler's threads.
    """

    def __init__(
        self,
        config: Config,
        run: Run,
        *,
        lag: Callable[[float], object],
        skipped: Callable[[], object],
    ) -> None:
        self._run = run
        self._lag = lag
        self._skipped = skipped
        now = time.monotonic()
        self._timetable = Timetable(config, now=now, offset=time.time() - now)
        self._changed = threading.Condition()
        self._asleep_until = 0.0
        self._stopping = False
        self._crew = Crew("canary", config.fetch.max_concurrency)
        self._thread = threading.Thread(target=self._keep_time, name="timetable", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Start nothing more, and give the runs under way two seconds; what still runs then is left behind."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            deadline = time.monotonic() + _STOP_SECONDS
            while self._crew.open and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(min(left, 0.05))
        if self._thread.ident is not None:
            self._thread.join()

    def replace(self, config: Config) -> None:
        """Follow a new configuration: what stays in it keeps its phase and its run under way."""
        with self._changed:
            self._timetable.replace(config, time.monotonic())
            self._crew.size = config.fetch.max_concurrency
            self._changed.notify_all()

    def _keep_time(self) -> None:
        while True:
            with self._changed:
                if self._stopping:
                    return
                starts, skipped = self._timetable.due(time.monotonic())
                if not starts and not skipped:
                    wake = self._timetable.next_wake()
                    self._asleep_until = float("inf") if wake is None else wake
                    self._changed.wait(None if wake is None else max(0.0, wake - time.monotonic()))
                    self._asleep_until = 0.0
            self._submit(starts)
            for _ in range(skipped):
                self._tell(self._skipped)

    def _submit(self, starts: Iterable[Start]) -> None:
        for start in starts:
            self._crew.submit(partial(self._work, start))

    def _work(self, start: Start) -> None:
        self._tell(partial(self._lag, max(0.0, time.monotonic() - start.since)))
        retry_after = None
        try:
            if not self._stopping:
                retry_after = self._run(start.canary, start.key[2])
        finally:
            with self._changed:
                starts = self._timetable.finished(start.key, time.monotonic(), retry_after)
                wake = self._timetable.next_wake()
                if self._stopping or (wake is not None and wake < self._asleep_until):
                    self._changed.notify_all()
            self._submit(starts)

    def _tell(self, callback: Callable[[], object]) -> None:
        try:
            callback()
        except Exception:
            log.exception("a listener of the scheduler failed")
