"""Windows: exponentially weighted sums of every site's observations, by route, source and half-life, in numpy arrays.

Nothing is decayed as time goes by. What is added bears a weight that grows with its time, 2^((t - landmark) /
half-life) (forward decay, Cormode et al. 2009), and a reader divides by the weight of now; so late data finds its
place, and the windows of any time are the same sums scaled. A slot's requests weigh by its start, a longer one's are
spread evenly over the fine slots that it stands for: the windows are a function of the slots on disk and of the resets
between them, and can be made anew from those.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.arrays import BUCKETS, PLAIN, Arrays, Latency, Stratum
from crawlhealth.panel import Keys, Panel
from crawlhealth.quantiles import Quantiles
from crawlhealth.tally import Slot, Tally
from crawlhealth.weighted import COLUMNS

__all__ = ["BUCKETS", "EPSILON", "NOTHING", "Arrays", "Resets", "Stratum", "Windows"]

Resets = Mapping[str, Sequence[tuple[float, int]]]
"""The resets of each site, oldest first: when, and the window that the longer ones became."""

EPSILON: Final = 1e-6
"""What rounding may take from a sum: fifty requests of this very moment are fifty."""
NOTHING: Final = -1
"""In place of the number of a window: a reset that leaves nothing in any."""
SITES_AT_ONCE: Final = 250
"""How many sites are read in one piece, so that neither memory nor the wait of others grows."""

_counted: Final = attrgetter(*COLUMNS[:PLAIN])
_NONE: Final[list[int]] = []
_NO_ROWS: Final = np.zeros(0, dtype=np.intp)
_Path = tuple[Sequence[float], Sequence[float]]


class Windows:
    """The windows of all sites. Not thread-safe: its owner holds a lock. Times are unix seconds.

    `resolution` is the width of the finest slots in seconds. `arrays` are sums to go on from; the strata of `known` get
    the first row numbers, in their order.
    """

    def __init__(
        self,
        half_lives: Sequence[float],
        *,
        resolution: float,
        arrays: Arrays | None = None,
        known: Sequence[Stratum] = (),
    ) -> None:
        self.half_lives = tuple(sorted(half_lives))
        self.resolution = resolution
        self._lives = np.array(self.half_lives)
        self._arrays = Arrays.empty(self._lives)
        self._rows: dict[Stratum, int] = {}
        self._sites: dict[str, list[int]] = {}
        self._quantiles = Quantiles(len(self.half_lives))
        self.rows_for(known)
        if arrays is not None:
            self._load(arrays)

    @property
    def newest(self) -> float:
        """The latest start of a slot that was added, or time of a reset; minus infinity before the first."""
        return self._arrays.newest

    @property
    def strata(self) -> Sequence[Stratum]:
        """All strata that have a row, by its number."""
        return self._arrays.keys

    def rows_for(self, keys: Iterable[Stratum]) -> NDArray[np.intp]:
        """The row numbers of strata, which are entered where they are new."""
        known = self._rows
        strata = self._arrays.keys
        found = []
        for key in keys:
            row = known.get(key)
            if row is None:
                row = known[key] = len(strata)
                strata.append(key)
                self._sites.setdefault(key[0], []).append(row)
            found.append(row)
        if len(strata) > len(self._arrays.sums):
            self._arrays.grow(len(strata))
            self._touch(_NO_ROWS)
        return np.array(found, dtype=np.intp)

    def add(self, slots: Iterable[Slot], resets: Resets | None = None) -> None:
        """Add slots, or what has come to slots that were added before, in any order.

        With `resets`, of slots that began before a reset of their site only what it leaves of them: the windows become
        as if all had been added, and the site reset, in the order of time.
        """
        added = list(slots)
        if resets:
            added = [slot for slot in added if not _emptied(slot, resets)]
        if not added:
            return
        tallies = [slot.tally for slot in added]
        values = np.array([_counted(tally) for tally in tallies], dtype=np.float64)
        rows = self.rows_for([(slot.site, slot.route, slot.source) for slot in added])
        starts = np.array([slot.start for slot in added])
        seconds = np.array([slot.seconds for slot in added])
        self._come(float(starts.max()), float((starts + seconds).max()))
        lives, shift = self._faded(added, resets) if resets else (self._lives, 0.0)
        weights = self._arrays.weights(starts, seconds, self.resolution, lives, shift)
        self._arrays.add(rows, values, weights, _latency(tallies))
        self._touch(rows)

    def add_dense(
        self,
        rows: NDArray[np.intp],
        start: float,
        seconds: float,
        values: NDArray[np.float64],
        latency: Latency | None = None,
    ) -> None:
        """Add one slot to each of some rows, all of the same time: as `add` does, without slots.

        `values` are by row and plain column (weighted.COLUMNS without the squares), `latency` the counts of histograms:
        of which place in `rows`, in which bucket, how many.
        """
        if not len(rows):
            return
        self._come(start, start + seconds)
        weights = self._arrays.weights(np.array([start]), np.array([seconds]), self.resolution, self._lives)
        self._arrays.add(rows, values, weights, latency)
        self._touch(rows)

    def reset(self, sites: Sequence[str], windows: NDArray[np.intp], now: float) -> None:
        """Let every longer window of each site become what its window of this number holds at `now`.

        That is so for each stratum, and for counts, squares and latencies alike; from then on it fades by its own
        half-life. NOTHING empties all windows of a site.
        """
        parts, lengths = self._parts(sites)
        rows, chosen = _flat(parts), np.repeat(windows, lengths)
        self._arrays.newest = max(self._arrays.newest, now)
        for window in np.unique(chosen).tolist():
            some = rows[chosen == window]
            if window == NOTHING:
                self._arrays.clear(some)
            elif window + 1 < len(self.half_lives):
                self._arrays.spread(some, window, now)
        self._touch(rows)

    def forget(self, site: str) -> None:
        """Set all sums of a site to nothing, to be added anew."""
        rows = np.array(self._sites.get(site, _NONE), dtype=np.intp)
        self._arrays.clear(rows)
        self._touch(rows)

    def panel(self, sites: Sequence[str], now: float) -> Panel:
        """What the windows of these sites hold at `now`, in their order."""
        parts, lengths = self._parts(sites)
        rows = _flat(parts)
        shape = (len(sites), len(self.half_lives))
        totals, site_p95 = np.zeros((*shape, len(COLUMNS))), np.full(shape, np.nan)
        block = self._arrays.at(rows, now)
        p95 = p95_low = np.zeros((0, shape[1]))
        if len(rows):
            filled = np.flatnonzero(lengths)
            starts = (np.cumsum(lengths) - lengths)[filled]
            totals[filled] = np.add.reduceat(block, starts, axis=0)
            p95, p95_low, site_p95[filled] = self._quantiles.read(self._arrays, rows, starts)
        return Panel(
            sites=sites,
            half_lives=self._lives,
            keys=Keys(self._arrays.keys, rows),
            owner=np.repeat(np.arange(len(sites)), lengths),
            row_ids=rows,
            rows=block,
            totals=totals,
            p95=p95,
            p95_low=p95_low,
            site_p95=site_p95,
        )

    def arrays(self) -> Arrays:
        """A copy of everything, to be kept; strata whose weights have vanished are left out."""
        return self._arrays.copy()

    def _come(self, newest: float, end: float) -> None:
        """See that what begins as late as `newest`, and ends at `end` the latest, can be weighed."""
        arrays = self._arrays
        arrays.newest = max(arrays.newest, newest)
        last = max(newest, end - self.resolution)
        if arrays.due(last):
            arrays.move_landmark(last)
            self._touch(slice(None))

    def _touch(self, rows: NDArray[np.intp] | slice) -> None:
        self._quantiles.touch(rows, size=len(self._arrays.sums))

    def _parts(self, sites: Sequence[str]) -> tuple[list[list[int]], NDArray[np.intp]]:
        parts = [self._sites.get(site, _NONE) for site in sites]
        return parts, np.fromiter(map(len, parts), dtype=np.intp, count=len(parts))

    def _load(self, arrays: Arrays) -> None:
        if not self._rows:
            self._arrays = Arrays(
                half_lives=self._lives, sums=arrays.sums, latency=arrays.latency, landmark=arrays.landmark,
                newest=arrays.newest, span=arrays.span,
            )  # fmt: skip
            self.rows_for(arrays.keys)
        else:
            rows, mine = self.rows_for(arrays.keys), self._arrays
            mine.sums[rows], mine.latency[rows] = arrays.sums, arrays.latency
            mine.landmark, mine.newest, mine.span = arrays.landmark, arrays.newest, arrays.span
        self._touch(slice(None))

    def _faded(self, slots: Sequence[Slot], resets: Resets) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """By slot and window: by which half-life the slot fades until its resets, and what they shift exponents by."""
        own: _Path = (self.half_lives, (0.0,) * len(self.half_lives))
        known: dict[tuple[str, int], _Path] = {}
        found: list[_Path] = []
        for slot in slots:
            of_site = resets.get(slot.site, ())
            past = bisect_right(of_site, (slot.start, len(self.half_lives)))
            if past == len(of_site):
                found.append(own)
                continue
            if (slot.site, past) not in known:
                known[slot.site, past] = self._path(of_site[past:])
            found.append(known[slot.site, past])
        both = np.array(found)
        return both[:, 0], both[:, 1]

    def _path(self, resets: Sequence[tuple[float, int]]) -> _Path:
        """Where the requests of each window have been before some resets, from the last one back."""
        lives, shift = list(self.half_lives), [0.0] * len(self.half_lives)
        for at, window in reversed(resets):
            before = self.half_lives[window]
            for k, life in enumerate(lives):
                if life > before:
                    shift[k] += (self._arrays.landmark - at) * (1 / before - 1 / life)
                    lives[k] = before
        return lives, shift


def _emptied(slot: Slot, resets: Resets) -> bool:
    """Whether a reset that leaves nothing came after a slot began."""
    return any(at > slot.start and window == NOTHING for at, window in resets.get(slot.site, ()))


def _latency(tallies: Sequence[Tally]) -> Latency:
    lengths = [len(tally.latency) for tally in tallies]
    return (
        np.repeat(np.arange(len(tallies)), lengths),
        np.array([index for tally in tallies for index in tally.latency], dtype=np.intp),
        np.array([count for tally in tallies for count in tally.latency.values()], dtype=np.float64),
    )


def _flat(parts: Sequence[Sequence[int]]) -> NDArray[np.intp]:
    return np.fromiter(chain.from_iterable(parts), dtype=np.intp)
