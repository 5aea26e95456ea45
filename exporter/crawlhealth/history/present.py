"""The windows of all sites as the history has them: from the last snapshot and the journal, or anew from the slots.

A commit brings them what it added, an evaluation resets those of single sites. A snapshot holds what is on disk, never
more. Without one nothing is lost but time at the next start.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from crawlhealth.history import anew, journal, resets, rows, snapshot
from crawlhealth.history.contents import CLOCK_SLACK
from crawlhealth.history.database import connect
from crawlhealth.history.resets import Reset
from crawlhealth.panel import Panel
from crawlhealth.tally import Slot
from crawlhealth.windows import NOTHING, Stratum, Windows

log = logging.getLogger(__name__)

SAVE_SECONDS = 300.0
"""How often a snapshot is written, when there is something new."""
SAVE_SLOTS = 500_000
"""So many additions since the last snapshot make the next one due: a start reads no more than these."""
SAVE_GAP = 20.0
"""But a snapshot is never due sooner than so many seconds after the last."""
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
        self._reset_number = 0  # the last reset in them
        self._waiting: list[Reset] = []  # resets in them that are not yet on disk
        self._strata: Sequence[Stratum] = ()  # the row numbers that were ever given
        self._identity = ""
        self._saved_at: float | None = None
        self._unsaved = 0
        self.saved = 0
        """The last commit that the snapshot on disk holds."""
        self.saved_resets = 0
        """The last reset that it holds."""

    def take(self, sequence: int, added: Sequence[Slot]) -> None:
        """Add what the commit of this number added; before the first `prepare` it is read from disk then."""
        with self._lock:
            if self._backlog is not None:
                self._backlog.append((sequence, added))
            elif self._windows is not None:
                self._add(self._windows, sequence, added)

    def reset(self, site: str, window: int, now: float) -> Reset:
        """Let the longer windows of a site become what one holds at `now`, or empty them all (NOTHING).

        The caller brings it to disk and says so with `kept`. After `prepare`, by the thread that evaluates.
        """
        windows = self._windows
        assert windows is not None, "prepared before it is reset"
        with self._lock:
            self._reset_number += 1
            half_life = 0.0 if window == NOTHING else windows.half_lives[window]
            one = Reset(
                number=self._reset_number, sequence=self._sequence, site=site, at=now, half_life=half_life
            )  # fmt: skip
            self._reset(windows, one)
            self._waiting.append(one)
        return one

    def kept(self, number: int) -> None:
        """Resets up to this number are on disk."""
        with self._lock:
            self._waiting = [one for one in self._waiting if one.number > number]

    @property
    def reach(self) -> float:
        """For how many seconds anything counts; without end before the first `prepare`."""
        windows = self._windows
        return math.inf if windows is None else anew.REACH * windows.half_lives[-1]

    def prepare(self, half_lives: Sequence[float], now: float, *, generation: int) -> None:
        """See that there are windows of these half-lives, and that imports up to `generation` are in them.

        Also made anew are windows that hold something from the future: a clock was wrong. Reads the disk; raises
        sqlite3.Error and ValueError. Begins with a snapshot when one is due: the resets of the evaluation before are on
        disk by now.
        """
        self.save(now)
        wanted = tuple(sorted(half_lives))
        windows = self._windows
        if windows is None or windows.half_lives != wanted:
            self._begin(wanted, now, trusted=True)
            windows = self._windows
        if windows is not None and windows.newest > now + CLOCK_SLACK:
            self._begin(wanted, now, trusted=False)
        elif windows is not None and self._generation < generation:
            with self._gathering() as (connection, waiting):
                self._renew(windows, connection, now, waiting)

    def panels(self, sites: Sequence[str], now: float) -> Iterator[Panel]:
        """The windows of these sites as arrays, some hundred sites in a piece, in their order, after `prepare`."""
        windows = self._windows
        assert windows is not None, "prepared before it is read"
        for first in range(0, len(sites), SITES_AT_ONCE):
            with self._lock:
                panel = windows.panel(sites[first : first + SITES_AT_ONCE], now)
            yield panel

    def save(self, now: float | None = None) -> None:
        """Write a snapshot when one is due at `now`, or in any case; a failure costs only time at the next start.

        None is written while a reset waits for the disk.
        """
        with self._lock:
            if self._windows is None or self._waiting or (now is not None and not self._due(now)) or not self._unsaved:
                return
            arrays, sequence = self._windows.arrays(), self._sequence
            mark = snapshot.Mark(
                identity=self._identity,
                sequence=sequence,
                generation=self._generation,
                half_lives=self._windows.half_lives,
                resolution=self._resolution,
                rebuilt=dict(self._rebuilt),
                resets=self._reset_number,
            )
            self._unsaved = 0
        try:
            snapshot.save(self._file, mark, arrays)
        except OSError as error:
            log.warning("cannot write the snapshot %s: %s; the next start takes longer", self._file, error)
        else:
            self.saved, self.saved_resets = sequence, mark.resets

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
    def _gathering(self) -> Iterator[tuple[sqlite3.Connection, Sequence[Reset]]]:
        """A view of the disk that stands still, while what is committed meanwhile waits; then it is added.

        With it the resets that may not be on disk in that view.
        """
        with self._lock:
            self._backlog = []
            waiting = tuple(self._waiting)
        try:
            with closing(connect(self._path)) as connection:
                connection.execute("BEGIN")
                yield connection, waiting
        finally:
            with self._lock:
                for sequence, added in self._backlog:
                    if self._windows is not None:
                        self._add(self._windows, sequence, added)
                self._backlog = None

    def _begin(self, half_lives: tuple[float, ...], now: float, *, trusted: bool) -> None:
        if self._windows is not None:
            self._strata = self._windows.strata
        self._windows = None
        with self._gathering() as (connection, waiting):
            self._identity = journal.identity(connection)
            self._reset_number = max(self._reset_number, resets.last(connection))
            windows = self._from_snapshot(connection, half_lives, waiting) if trusted else None
            if windows is None:
                windows = Windows(half_lives, resolution=self._resolution, known=self._strata)
                anew.fill(windows, connection, now, resets.joined(resets.read(connection), waiting))
                self._rebuilt.clear()
                self._generation = rows.generation(connection)
                self._unsaved = 1
                self._saved_at = 0.0  # so much work is worth a snapshot at once
            elif self._generation < rows.generation(connection):
                self._renew(windows, connection, now, waiting)
            self._sequence = journal.sequence(connection)
            self._windows = windows

    def _from_snapshot(
        self, connection: sqlite3.Connection, half_lives: tuple[float, ...], waiting: Sequence[Reset]
    ) -> Windows | None:
        loaded = snapshot.load(self._file)
        if loaded is None:
            return None
        mark, arrays = loaded
        if (mark.identity, mark.half_lives, mark.resolution) != (self._identity, half_lives, self._resolution):
            return None
        if not journal.reaches(connection, mark.sequence) or mark.resets > resets.last(connection):
            return None
        windows = Windows(half_lives, resolution=self._resolution, arrays=arrays, known=self._strata)
        self._sequence, self._generation, self._rebuilt = mark.sequence, mark.generation, dict(mark.rebuilt)
        self.saved, self.saved_resets = mark.sequence, mark.resets
        later = deque(resets.joined(resets.read(connection, mark.resets), waiting))
        for sequence, added in journal.read(connection, mark.sequence):
            while later and later[0].sequence < sequence:
                self._reset(windows, later.popleft())
            self._add(windows, sequence, added)
        for one in later:
            self._reset(windows, one)
        return windows

    def _renew(self, windows: Windows, connection: sqlite3.Connection, now: float, waiting: Sequence[Reset]) -> None:
        """Make the sites that were imported anew."""
        upto, generation = journal.sequence(connection), rows.generation(connection)
        between = resets.joined(resets.read(connection), waiting)
        for site in journal.imported(connection, self._generation):
            anew.fill_site(windows, connection, site, now, between)
            self._rebuilt[site] = upto
        self._generation = generation
        self._unsaved += 1

    def _add(self, windows: Windows, sequence: int, added: Sequence[Slot]) -> None:
        if sequence > self._sequence:
            windows.add(slot for slot in added if sequence > self._rebuilt.get(slot.site, 0))
            self._sequence = sequence
            self._unsaved += len(added)

    def _reset(self, windows: Windows, one: Reset) -> None:
        windows.reset([one.site], np.array([anew.window_of(one.half_life, windows.half_lives)]), one.at)
        self._unsaved += 1
