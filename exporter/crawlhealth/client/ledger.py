"""What became of reports, to the last one."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import Final

log = logging.getLogger(__name__)

_COMPLAIN_EVERY: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What became of reports, those that an earlier process left in the spool among them.

    `reported` is the sum of the others. `waiting` are still here, or in the spool.
    """

    reported: int
    delivered: int
    rejected: int
    dropped: int
    waiting: int


class Ledger:
    """The counts while they change. `lock` guards them; `reported` is raised by whoever holds it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reported = 0
        self._change = threading.Condition(self.lock)
        self._delivered = 0
        self._rejected = 0
        self._dropped = 0
        self._complained = -_COMPLAIN_EVERY

    def adopt(self, reports: int) -> None:
        """Count reports of an earlier process."""
        with self.lock:
            self.reported += reports

    def drop(self, reports: int) -> None:
        """Count reports that are lost; for the holder of the lock."""
        self._dropped += reports

    def settle(self, *, delivered: int = 0, rejected: int = 0, dropped: int = 0) -> None:
        """Count reports whose way has ended."""
        with self._change:
            self._delivered += delivered
            self._rejected += rejected
            self._dropped += dropped
            self._change.notify_all()

    def wait(self, deadline: float) -> bool:
        """Wait until all that was reported before is settled; False if it is not by `deadline` (monotonic)."""
        with self._change:
            goal = self.reported
            while self._delivered + self._rejected + self._dropped < goal:
                if not self._change.wait(max(0.0, deadline - time.monotonic())):
                    return False
        return True

    def counts(self) -> Counts:
        """The counts now."""
        with self.lock:
            settled = self._delivered + self._rejected + self._dropped
            return Counts(
                reported=self.reported,
                delivered=self._delivered,
                rejected=self._rejected,
                dropped=self._dropped,
                waiting=self.reported - settled,
            )

    def complain(self, problem: str) -> None:
        """Log a problem, once a minute at most."""
        now = time.monotonic()
        if now - self._complained >= _COMPLAIN_EVERY:
            self._complained = now
            log.warning("reporting crawl health: %s (%s)", problem, self.counts())
