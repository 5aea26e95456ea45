"""When the history is rolled up and pruned: in small steps, and only by a clock that has proved steady."""

from __future__ import annotations

import sqlite3

from crawlhealth.config import HistorySettings
from crawlhealth.history import incidents, journal, judgedrows, pushes, refusals, rollup
from crawlhealth.history.batch import HOUR

STEADY_SECONDS = 600.0
"""How long the clock must have gone on without a jump before anything is moved or deleted by it: a clock that is wrong
for a while must not cost history."""
JUMP_SECONDS = 300.0
"""Two commits further apart than this, or in the wrong order, mean that the clock jumped or the machine slept."""
EVERY_SECONDS = 60.0
"""How often it is looked whether there is something to do."""
AT_ONCE = 2_000
"""Rows moved or deleted in one commit, so that no commit takes long."""


class Housekeeping:
    """Decides when work is due; `now` is the time of a commit, asked in order."""

    def __init__(self, settings: HistorySettings) -> None:
        self._settings = settings
        self._jump = max(JUMP_SECONDS, 3 * settings.commit_every.total_seconds())
        self._last: float | None = None
        self._next = 0.0

    def due(self, now: float) -> bool:
        """Whether the clock is steady and something may have to be moved or deleted."""
        if self._last is None or not 0 <= now - self._last <= self._jump:
            self._next = now + STEADY_SECONDS
        self._last = now
        if now < self._next:
            return False
        self._next = now + EVERY_SECONDS
        return True

    def work(self, connection: sqlite3.Connection, now: float, *, journal_upto: int) -> None:
        """Do one bounded step inside the caller's transaction. The journal is not needed up to `journal_upto`."""
        settings = self._settings
        kept = now - settings.keep_hours.total_seconds()
        moved = rollup.move_minutes(
            connection, before=(now - settings.keep_minutes.total_seconds()) // HOUR * HOUR, limit=AT_ONCE
        )
        days = max(1, AT_ONCE // 24)
        folded = rollup.fold_days(connection, before=kept, limit=days)
        pruned = rollup.prune(connection, days_before=now - rollup.KEEP_DAYS, verdicts_before=kept, limit=AT_ONCE)
        pruned += refusals.prune(connection, before=kept, limit=AT_ONCE)
        pruned += judgedrows.prune(connection, before=kept, limit=AT_ONCE)
        pruned += incidents.prune(connection, before=now - incidents.KEPT_SECONDS, limit=AT_ONCE)
        forgotten = now - settings.keep_push_keys.total_seconds()
        pruned += pushes.prune(connection, before=forgotten, limit=AT_ONCE)
        journal.prune(connection, upto=journal_upto)
        if moved or folded == days or pruned >= AT_ONCE:
            self._next = now
