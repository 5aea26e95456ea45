"""The windows of all sites as the history has them: from the last snapshot and the journal, or anew from the slots.

A commit brings them what it added. Without a snapshot nothing is lost but time at the next start.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path

from crawlhealth.history import journal, rollup, rows, snapshot
from crawlhealth.history.contents import CLOCK_SLACK
from crawlhealth.history.database import connect
from crawlhealth.panel import Panel
from crawlhealth.tally import Slot
from crawlhealth.weighted import View
from crawlhealth.windows import Windows

log = logging.getLogger(__name__)

REACH = 8
"""Half-lives after which a slot is left out when windows are made anew: it would count 0.4 %."""
SAVE_SECONDS = 300.0
"""How often a snapshot is written, when there is something new."""
SAVE_SLOTS = 500_000
"""So many additions since the last snapshot make the next one due: a start reads no more than these."""
SAVE_GAP = 20.0
"""But a snapshot is never due sooner than so many seconds after the last."""
AT_ONCE = 10_000
SITES_AT_ONCE = 1000
"""How many sites are read in one piece, so that a commit does not wait long for it."""


class Present:
    """The windows, for one thread that commits and one that evaluates."""

    def __init__(self, path: Path, *, resolution: float) -> None:
        self._path = path
        self._resolution = resolution
        self._lock = threading.Lock()
        self._windows: Windows | None = None
        self._backlog: list[tuple[int, Sequence[Slot]]] | None = None
        self._sequence = 0  # the last commit in the windows
        self._generation = 0  # the last import in them
        self._rebuilt: dict[str, int] = {}  # sites made anew, with all up to this commit
        self._identity = ""
        self._saved_at: float | None = None
        self._unsaved = 0
        self.saved = 0
        """The last commit that the snapshot on disk holds."""

    def take(self, sequence: int, added: Sequence[Slot]) -> None:
        """Add what the commit of this number added; before the first `prepare` it is read from disk then."""
        with self._lock:
            if self._backlog is not None:
                self._backlog.append((sequence, added))
            elif self._windows is not None:
                self._add(self._windows, sequence, added)

    def prepare(self, half_lives: Sequence[float], now: float, *, generation: int) -> None:
        """See that there are windows of these half-lives, and that imports up to `generation` are in them.

        Also made anew are windows that hold something from the future: a clock was wrong. Reads the disk; raises
        sqlite3.Error and ValueError.
        """
        wanted = tuple(sorted(half_lives))
        windows = self._windows
        if windows is None or windows.half_lives != wanted:
            self._begin(wanted, now, trusted=True)
            windows = self._windows
        if windows is not None and windows.newest > now + CLOCK_SLACK:
            self._begin(wanted, now, trusted=False)
        elif windows is not None and self._generation < generation:
            with self._gathering() as connection:
                self._renew(windows, connection, now)

    def read(self, sites: Sequence[str], now: float, *, enough: float) -> Iterator[tuple[View, ...]]:
        """The windows of these sites, in their order, after `prepare`."""
        windows = self._windows
        assert windows is not None, "prepared before it is read"
        reading = windows.read(sites, now, enough=enough)
        for _ in sites:
            with self._lock:
                views = next(reading)
            yield views

    def panels(self, sites: Sequence[str], now: float) -> Iterator[Panel]:
        """The windows of these sites as arrays, some hundred sites in a piece, in their order, after `prepare`."""
        windows = self._windows
        assert windows is not None, "prepared before it is read"
        for first in range(0, len(sites), SITES_AT_ONCE):
            with self._lock:
                panel = windows.panel(sites[first : first + SITES_AT_ONCE], now)
            yield panel

    def save(self, now: float | None = None) -> None:
        """Write a snapshot when one is due at `now`, or in any case; a failure costs only time at the next start."""
        if now is not None and not self._due(now):
            return
        with self._lock:
            if self._windows is None or not self._unsaved:
                return
            arrays, sequence = self._windows.arrays(), self._sequence
            mark = snapshot.Mark(
                identity=self._identity,
                sequence=sequence,
                generation=self._generation,
                half_lives=self._windows.half_lives,
                resolution=self._resolution,
                rebuilt=dict(self._rebuilt),
            )
            self._unsaved = 0
        try:
            snapshot.save(self._file, mark, arrays)
        except OSError as error:
            log.warning("cannot write the snapshot %s: %s; the next start takes longer", self._file, error)
        else:
            self.saved = sequence

    def _due(self, now: float) -> bool:
        if self._saved_at is None:
            self._saved_at = now
        gone = abs(now - self._saved_at)
        due = gone >= SAVE_SECONDS or (self._unsaved >= SAVE_SLOTS and gone >= SAVE_GAP)
        if due:
            self._saved_at = now
        return due

    @property
    def _file(self) -> Path:
        return self._path.with_name(snapshot.FILE_NAME)

    @contextmanager
    def _gathering(self) -> Iterator[sqlite3.Connection]:
        """A view of the disk that stands still, while what is committed meanwhile waits; then it is added."""
        with self._lock:
            self._backlog = []
        try:
            with closing(connect(self._path)) as connection:
                connection.execute("BEGIN")
                yield connection
        finally:
            with self._lock:
                for sequence, added in self._backlog:
                    if self._windows is not None:
                        self._add(self._windows, sequence, added)
                self._backlog = None

    def _begin(self, half_lives: tuple[float, ...], now: float, *, trusted: bool) -> None:
        self._windows = None
        with self._gathering() as connection:
            self._identity = journal.identity(connection)
            windows = self._from_snapshot(connection, half_lives) if trusted else None
            if windows is None:
                windows = Windows(half_lives, resolution=self._resolution)
                for slots in _pieces(_all_slots(connection, now, REACH * half_lives[-1])):
                    windows.add(slots)
                self._rebuilt.clear()
                self._generation = rows.generation(connection)
                self._unsaved = 1
                self._saved_at = 0.0  # so much work is worth a snapshot at once
            elif self._generation < rows.generation(connection):
                self._renew(windows, connection, now)
            self._sequence = journal.sequence(connection)
            self._windows = windows

    def _from_snapshot(self, connection: sqlite3.Connection, half_lives: tuple[float, ...]) -> Windows | None:
        loaded = snapshot.load(self._file)
        if loaded is None:
            return None
        mark, arrays = loaded
        if (mark.identity, mark.half_lives, mark.resolution) != (self._identity, half_lives, self._resolution):
            return None
        if not journal.reaches(connection, mark.sequence):
            return None
        windows = Windows(half_lives, resolution=self._resolution, arrays=arrays)
        self._sequence, self._generation, self._rebuilt = mark.sequence, mark.generation, dict(mark.rebuilt)
        self.saved = mark.sequence
        for sequence, added in journal.read(connection, mark.sequence):
            self._add(windows, sequence, added)
        return windows

    def _renew(self, windows: Windows, connection: sqlite3.Connection, now: float) -> None:
        """Make the sites that were imported anew."""
        upto, generation = journal.sequence(connection), rows.generation(connection)
        reach = REACH * windows.half_lives[-1]
        for site in journal.imported(connection, self._generation):
            windows.forget(site)
            for slots in _pieces(_slots(connection, site, now, reach)):
                windows.add(slots)
            self._rebuilt[site] = upto
        self._generation = generation
        self._unsaved += 1

    def _add(self, windows: Windows, sequence: int, added: Sequence[Slot]) -> None:
        if sequence > self._sequence:
            windows.add(slot for slot in added if sequence > self._rebuilt.get(slot.site, 0))
            self._sequence = sequence
            self._unsaved += len(added)


def _slots(connection: sqlite3.Connection, site: str, now: float, reach: float) -> Iterator[Slot]:
    since = now - reach
    found = chain(rollup.read_hours(connection, site, since), rows.read_slots(connection, site, since))
    return (slot for slot in found if slot.start <= now + CLOCK_SLACK)


def _all_slots(connection: sqlite3.Connection, now: float, reach: float) -> Iterator[Slot]:
    since = now - reach
    found = chain(rollup.read_all_hours(connection, since), rows.read_all_slots(connection, since))
    return (slot for slot in found if slot.start <= now + CLOCK_SLACK)


def _pieces(slots: Iterable[Slot]) -> Iterator[list[Slot]]:
    iterator = iter(slots)
    while piece := list(islice(iterator, AT_ONCE)):
        yield piece
