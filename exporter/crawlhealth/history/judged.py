"""Judged hours: how each site was judged in each hour (see marks), a byte an hour and a row a day.

The running hour is in memory, and on disk at most SAVE_SECONDS behind; a stay outside normal that begins is on disk
with the next commit. Whatever is written is joined with what is there, and the worse mark of an hour counts: so
nothing is lost to a clock that steps back into an hour, and nothing changes by writing twice.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import numpy as np

from crawlhealth.history import judgedrows
from crawlhealth.history.batch import HOUR
from crawlhealth.history.database import HistoryError, connect, transaction
from crawlhealth.history.judgedrows import Hours
from crawlhealth.history.ondisk import OnDisk
from crawlhealth.marks import NONE, OUTSIDE, Marks, worse

SAVE_SECONDS: Final = 120.0
"""How often the marks of the running hour that have changed are written."""

log = logging.getLogger(__name__)


class Judged:
    """The judged hours of one history. Thread-safe. Times are unix seconds; hours and days are those of UTC."""

    def __init__(self, path: Path, disk: OnDisk) -> None:
        self._path = path
        self._disk = disk
        self._lock = threading.Lock()
        self._waiting: Hours = {}  # what goes to disk with the next commit; its values are replaced, never changed
        self._sites: tuple[str, ...] = ()
        self._places: Mapping[str, int] = {}
        self._hour = 0
        self._marks = self._kept = np.zeros(0, dtype=np.uint8)  # of the running hour: as it is, and what is on disk
        self._kept_at = -math.inf

    def put(self, sites: Sequence[str], marks: Marks, now: float) -> None:
        """Take how these sites are judged at `now`: a mark each, in their order, which must not repeat one."""
        hour = math.floor(now / HOUR)
        given = tuple(sites)
        if marks.shape != (len(given),) or marks.dtype != np.uint8:
            raise ValueError(f"{len(given)} sites, but marks of {marks.shape} {marks.dtype}")
        with self._lock:
            if hour != self._hour or given != self._sites:
                self._wait(self._hour, self._changed(everything=True))
                self._begin(given, hour)
            self._marks = worse(self._marks, marks)

    def due(self, now: float) -> Hours:
        """What a commit at `now` should write; tell `written` when it did."""
        with self._lock:
            everything = not 0 <= now - self._kept_at < SAVE_SECONDS
            self._wait(self._hour, self._changed(everything=everything))
            if everything:
                self._kept_at = now
            return dict(self._waiting)

    def written(self, hours: Hours) -> None:
        """Forget what is on disk now."""
        with self._lock:
            for hour, marks in hours.items():
                if self._waiting.get(hour) is marks:
                    del self._waiting[hour]

    def save(self, connection: sqlite3.Connection) -> None:
        """Write all that is not on disk, before the end; a failure costs the marks of the last minutes."""
        with self._lock:
            self._wait(self._hour, self._changed(everything=True))
            rest, self._waiting = self._waiting, {}
        if not rest:
            return
        try:
            with transaction(connection):
                judgedrows.put(connection, rest)
        except (sqlite3.Error, ValueError) as error:
            log.warning("cannot write how the last minutes were judged to %s: %s", self._path, error)

    def of(self, sites: Sequence[str], since: float, until: float) -> Marks:
        """The marks of these sites, by site and hour: from the hour that holds `since` until before `until`.

        NONE where nothing is known. What is not on disk yet is in it. Raises HistoryError.
        """
        first, count = span(since, until)
        memory = self._in_memory(sites, first, count)
        return worse(memory, self._disk.marks(sites, first, count))

    def replace(self, site: str, since: float, marks: Marks, *, over: bool = False) -> None:
        """Write marks of one site's hours, one after another from the one that holds `since` on, at once.

        They were judged afterwards, by a replay: they stand only where there is NONE, or `over` what is there. What is
        judged of the same hours later is joined with them. Raises HistoryError.
        """
        first = math.floor(since / HOUR)
        with self._lock:
            for hour in range(first, first + len(marks)) if over else ():
                if site in self._waiting.get(hour, {}):
                    self._waiting[hour] = {name: mark for name, mark in self._waiting[hour].items() if name != site}
        try:
            with closing(connect(self._path)) as connection, transaction(connection):
                judgedrows.replace(connection, site, first, marks, over=over)
        except (sqlite3.Error, ValueError) as error:
            raise HistoryError(f"cannot write judged hours of {site} to {self._path}: {error}") from error

    def _begin(self, sites: tuple[str, ...], hour: int) -> None:
        self._sites, self._hour = sites, hour
        self._places = {site: place for place, site in enumerate(sites)}
        self._marks, self._kept = np.full(len(sites), NONE, np.uint8), np.full(len(sites), NONE, np.uint8)

    def _changed(self, *, everything: bool) -> Mapping[str, int]:
        """What of the running hour is not on the way to the disk, or only stays outside that began; now it is."""
        changed = self._marks != self._kept
        if not everything:
            changed &= self._marks == OUTSIDE
        places = np.flatnonzero(changed)
        self._kept[places] = self._marks[places]
        return dict(zip([self._sites[place] for place in places.tolist()], self._marks[places].tolist(), strict=True))

    def _wait(self, hour: int, marks: Mapping[str, int]) -> None:
        if not marks:
            return
        known = self._waiting.get(hour, {})
        both = [site for site in marks if site in known]
        joined = worse([known[site] for site in both], [marks[site] for site in both]).tolist()
        self._waiting[hour] = {**known, **marks, **dict(zip(both, joined, strict=True))}

    def _in_memory(self, sites: Sequence[str], first: int, count: int) -> Marks:
        found = np.full((len(sites), count), NONE, dtype=np.uint8)
        with self._lock:
            running = {site: int(self._marks[self._places[site]]) for site in sites if site in self._places}
            hours = [*self._waiting.items(), (self._hour, running)]
        for hour, marks in hours:
            if first <= hour < first + count:
                column = np.array([marks.get(site, NONE) for site in sites], dtype=np.uint8)
                found[:, hour - first] = worse(found[:, hour - first], column)
        return found


def marks_of(connection: sqlite3.Connection, sites: Sequence[str], since: float, until: float) -> Marks:
    """What is on disk of judged hours, as `Judged.of`, for who only reads the file.

    Raises ValueError and sqlite3.Error.
    """
    first, count = span(since, until)
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'judged'").fetchone() is None:
        return np.full((len(sites), count), NONE, dtype=np.uint8)  # of an earlier version
    return judgedrows.read(connection, sites, first, count)


def span(since: float, until: float) -> tuple[int, int]:
    """The number of the hour that holds `since`, and how many hours there are until `until`, each in full."""
    first = math.floor(since / HOUR)
    return first, max(0, math.ceil(until / HOUR) - first)
