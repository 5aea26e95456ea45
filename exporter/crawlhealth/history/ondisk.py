"""On disk: what a running exporter reads of single sites and pushes, through a connection of its own."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from crawlhealth.history import incidents, journal, judgedrows, pushes, refusals, rollup, rows
from crawlhealth.history.database import HistoryError, connect
from crawlhealth.history.pushes import Pushed, PushKey
from crawlhealth.incident import Incident, Warned
from crawlhealth.marks import Marks
from crawlhealth.model import Refusal
from crawlhealth.tally import Slot
from crawlhealth.verdict import Verdict


class OnDisk:
    """One reader of the database, for any thread. All methods raise HistoryError where the disk cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._connection = connect(path)
        except sqlite3.Error as error:
            raise HistoryError(f"cannot open the history {path}: {error}") from error

    def close(self) -> None:
        """Close the connection, once nobody reads."""
        with self._lock:
            self._connection.close()

    def pushed(self, key: PushKey) -> Pushed | None:
        """What came of a push with this key; None when there is none (any more)."""
        with self._reading("a push") as connection:
            return pushes.read(connection, key)

    def hours(self, site: str, since: float, until: float = math.inf) -> tuple[Slot, ...]:
        """All of a site that began from `since` until before `until`: whole hours, then the fine slots."""
        with self._reading(f"the hours of {site}") as connection:
            hours = [hour for hour in rollup.read_hours(connection, site, since) if hour.start < until]
            return (*hours, *rows.read_slots(connection, site, since, until))

    def verdicts(self, site: str, since: float) -> tuple[Verdict, ...]:
        """The recorded verdicts on a site from `since` on, oldest first."""
        with self._reading(f"the verdicts on {site}") as connection:
            return tuple(rows.read_verdicts(connection, site, since))

    def refusals(self, site: str, limit: int) -> tuple[Refusal, ...]:
        """The latest refusals of a site, newest first."""
        with self._reading(f"the refusals of {site}") as connection:
            return tuple(refusals.read(connection, site, limit))

    def unfinished(self) -> tuple[tuple[Incident, ...], Mapping[str, Warned]]:
        """The incidents that have not ended, and the warnings that are on or went off lately."""
        with self._reading("the incidents") as connection:
            return tuple(incidents.read_open(connection)), incidents.read_warned(connection)

    def marks(self, sites: Sequence[str], first: int, count: int) -> Marks:
        """How sites were judged, by site and hour: `count` hours from number `first` (since 1970) on."""
        with self._reading("judged hours") as connection:
            return judgedrows.read(connection, sites, first, count)

    def imported(self, known: int) -> tuple[int, dict[str, int]]:
        """The generation now, and the generation of the last import of each site that had one after `known`."""
        with self._lock:
            current = rows.generation(self._connection)
            return current, journal.imported(self._connection, known) if current != known else {}

    @contextmanager
    def _reading(self, what: str) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                yield self._connection
        except (sqlite3.Error, ValueError) as error:
            raise HistoryError(f"cannot read {what} from the history {self._path}: {error}") from error
