"""Windows: exponentially weighted sums of every site's observations, by route, source and half-life, in numpy arrays.

Nothing is decayed as time goes by. What is added bears a weight that grows with its time, 2^((t - landmark) /
half-life) (forward decay, Cormode et al. 2009), and a reader divides by the weight of now; so late data finds its
place, and the windows of any time are the same sums scaled. A slot's requests weigh by its start, a longer one's are
spread evenly over the fine slots that it stands for: the windows are a function of the slots on disk and can be made
anew from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth import stats
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot
from crawlhealth.weighted import COLUMNS, OUTCOMES, SQUARED, Strata, View

Stratum = tuple[str, str, Source]
"""site, route, source."""

EPSILON: Final = 1e-6
"""What rounding may take from a sum: fifty requests of this very moment are fifty."""
MAX_EXPONENT: Final = 60.0
"""The landmark moves before a weight exceeds 2 to this: float32 holds 2^127, and a square has twice the exponent."""
ROUNDING: Final = 1e-5
"""What float32 may take from the sum of a histogram, as a share of it."""
SITES_AT_ONCE: Final = 250
"""How many sites are read in one piece, so that neither memory nor the wait of others grows."""
FIRST_ROWS: Final = 64
GROWTH: Final = 1.25


_counted: Final = attrgetter(*COLUMNS[:-SQUARED])
BUCKETS: Final = len(stats.BOUNDS) + 1
_MIDDLES: Final = np.array([stats.middle(index) for index in range(BUCKETS)])
_P95: Final = 0.95


@dataclass(slots=True, kw_only=True)
class Arrays:
    """The sums of all strata, a row each: by half-life and column, and by half-life and fine latency bucket.

    Weights count from `landmark` (unix seconds); `newest` is the latest start of a slot that was added.
    """

    keys: list[Stratum]
    sums: NDArray[np.float64]
    latency: NDArray[np.float32]
    landmark: float
    newest: float


class Windows:
    """The windows of all sites. Not thread-safe: its owner holds a lock. Times are unix seconds.

    `resolution` is the width of the finest slots in seconds.
    """

    def __init__(self, half_lives: Sequence[float], *, resolution: float, arrays: Arrays | None = None) -> None:
        self.half_lives = tuple(sorted(half_lives))
        self.resolution = resolution
        self._lives = np.array(self.half_lives)
        self._arrays = arrays or self._empty()
        self._rows: dict[Stratum, int] = {}
        self._sites: dict[str, list[int]] = {}
        for row, key in enumerate(self._arrays.keys):
            self._enter(key, row)

    @property
    def newest(self) -> float:
        """The latest start of a slot that was added; minus infinity before the first."""
        return self._arrays.newest

    def add(self, slots: Iterable[Slot]) -> None:
        """Add slots, or what has come to slots that were added before."""
        added = list(slots)
        if not added:
            return
        rows = np.array([self._row((slot.site, slot.route, slot.source)) for slot in added])
        starts = np.array([slot.start for slot in added])
        seconds = np.array([slot.seconds for slot in added])
        arrays = self._arrays
        arrays.newest = max(arrays.newest, float(starts.max()))
        if not arrays.landmark <= arrays.newest < arrays.landmark + MAX_EXPONENT * self.half_lives[0]:
            self._move_landmark(arrays.newest)
        weights, squares = self._weights(starts, seconds)
        tallies = [slot.tally for slot in added]
        values = np.array([_counted(tally) for tally in tallies], dtype=np.float64)
        block = np.empty((len(added), len(self.half_lives), len(COLUMNS)))
        block[:, :, :-SQUARED] = values[:, None, :] * weights[:, :, None]
        block[:, :, -2] = values[:, None, :4].sum(axis=2) * squares
        block[:, :, -1] = values[:, None, 4] * squares
        np.add.at(arrays.sums, rows, block)
        self._add_latency(rows, weights, [tally.latency for tally in tallies])

    def forget(self, site: str) -> None:
        """Set all sums of a site to nothing, to be added anew."""
        for row in self._sites.get(site, ()):
            self._arrays.sums[row] = 0.0
            self._arrays.latency[row] = 0.0

    def read(self, sites: Sequence[str], now: float, *, enough: float = 1) -> Iterator[tuple[View, ...]]:
        """The windows of each of these sites at `now`, in their order, shortest half-life first.

        Latency is read in the shortest one alone that holds `enough` requests: it is most of the work.
        """
        for first in range(0, len(sites), SITES_AT_ONCE):
            yield from self._read(sites[first : first + SITES_AT_ONCE], now, enough - EPSILON)

    def arrays(self) -> Arrays:
        """A copy of everything, to be kept; strata whose weights have vanished are left out."""
        arrays = self._arrays
        used = len(arrays.keys)
        alive = np.flatnonzero(arrays.sums[:used].any(axis=(1, 2)))
        return Arrays(
            keys=[arrays.keys[row] for row in alive.tolist()],
            sums=arrays.sums[alive],
            latency=arrays.latency[alive],
            landmark=arrays.landmark,
            newest=arrays.newest,
        )

    def _read(self, sites: Sequence[str], now: float, enough: float) -> list[tuple[View, ...]]:
        arrays, lives = self._arrays, self.half_lives
        parts = [self._sites.get(site, ()) for site in sites]
        rows = np.array([row for part in parts for row in part], dtype=np.intp)
        if not len(rows):
            return [tuple([View(life) for life in lives]) for _ in parts]
        lengths = np.array([len(part) for part in parts if part])
        starts = np.cumsum([0, *lengths[:-1]], dtype=np.intp)
        scale = np.exp2(-(now - arrays.landmark) / self._lives)
        block = arrays.sums[rows] * scale[:, None]
        block[:, :, -SQUARED:] *= scale[:, None]
        totals = np.add.reduceat(block, starts, axis=0)
        requests = _across(totals, 0, OUTCOMES)
        large = requests >= enough
        chosen = np.where(large.any(axis=1), large.argmax(axis=1), -1)
        timed = arrays.latency[rows, np.repeat(chosen, lengths)]
        p95s = _p95(np.add.reduceat(timed, starts, axis=0))
        extractions = _across(totals, OUTCOMES, OUTCOMES + 2)
        found = zip(
            starts.tolist(),
            totals,
            requests.tolist(),
            extractions.tolist(),
            chosen.tolist(),
            p95s.tolist(),
            strict=True,
        )
        views = []
        for part in parts:
            if not part:
                views.append(tuple([View(life) for life in lives]))
                continue
            start, total, weighted, extracted, read, p95 = next(found)
            holds = Strata([arrays.keys[row][1:] for row in part], total, block[start : start + len(part)])
            slow = [p95 if k == read and p95 > 0 else None for k in range(len(lives))]
            site = zip(lives, weighted, extracted, slow, range(len(lives)), strict=True)
            views.append(tuple([View(life, sums, pages, p95, holds, k) for life, sums, pages, p95, k in site]))
        return views

    def _weights(
        self, starts: NDArray[np.float64], seconds: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean weight, and the mean squared weight, of the fine slots that each slot stands for, by half-life."""
        exponents = (starts[:, None] - self._arrays.landmark) / self._lives
        step = self.resolution / self._lives
        parts = np.maximum(1.0, np.round(seconds / self.resolution))[:, None]
        mean = np.expm1(np.log(2) * step * parts) / (parts * np.expm1(np.log(2) * step))
        mean_square = np.expm1(np.log(2) * 2 * step * parts) / (parts * np.expm1(np.log(2) * 2 * step))
        return np.exp2(exponents) * mean, np.exp2(2 * exponents) * mean_square

    def _add_latency(
        self, rows: NDArray[np.intp], weights: NDArray[np.float64], histograms: Sequence[Mapping[int, int]]
    ) -> None:
        lengths = [len(histogram) for histogram in histograms]
        if not any(lengths):
            return
        buckets = np.array([index for histogram in histograms for index in histogram])
        counts = np.array([count for histogram in histograms for count in histogram.values()], dtype=np.float64)
        at = np.repeat(np.arange(len(rows)), lengths)
        flat = self._arrays.latency.reshape(-1)  # a view: adding at plain indices is much faster
        first = rows[at] * (len(self.half_lives) * BUCKETS) + buckets
        for k in range(len(self.half_lives)):
            np.add.at(flat, first + k * BUCKETS, (counts * weights[at, k]).astype(np.float32))

    def _move_landmark(self, landmark: float) -> None:
        arrays = self._arrays
        scale = np.exp2(np.minimum((arrays.landmark - landmark) / self._lives, MAX_EXPONENT))
        arrays.sums *= scale[:, None]
        arrays.sums[:, :, -SQUARED:] *= scale[:, None]
        arrays.latency *= scale[:, None].astype(np.float32)
        arrays.landmark = landmark

    def _row(self, key: Stratum) -> int:
        row = self._rows.get(key)
        if row is None:
            row = len(self._arrays.keys)
            self._arrays.keys.append(key)
            self._enter(key, row)
            if row >= len(self._arrays.sums):
                self._grow()
        return row

    def _enter(self, key: Stratum, row: int) -> None:
        self._rows[key] = row
        self._sites.setdefault(key[0], []).append(row)

    def _grow(self) -> None:
        arrays = self._arrays
        more = max(FIRST_ROWS, int(len(arrays.sums) * (GROWTH - 1)))
        arrays.sums = np.concatenate([arrays.sums, np.zeros((more, *arrays.sums.shape[1:]))])
        arrays.latency = np.concatenate([arrays.latency, np.zeros((more, *arrays.latency.shape[1:]), np.float32)])

    def _empty(self) -> Arrays:
        lives = len(self.half_lives)
        return Arrays(
            keys=[],
            sums=np.zeros((0, lives, len(COLUMNS))),
            latency=np.zeros((0, lives, BUCKETS), dtype=np.float32),
            landmark=0.0,
            newest=-np.inf,
        )


def _across(totals: NDArray[np.float64], first: int, end: int) -> NDArray[np.float64]:
    """The sum of some columns, one after another: numpy's own may add in another order for another number of rows."""
    across = totals[..., first]
    for column in range(first + 1, end):
        across = across + totals[..., column]
    return across


def _p95(histograms: NDArray[np.float32]) -> NDArray[np.float64]:
    """The 95th percentile in seconds of each histogram along the last axis, 0 for an empty one: as stats.quantile."""
    upto = np.cumsum(histograms, axis=-1, dtype=np.float32)
    totals = upto[..., -1:]
    index = np.minimum((upto < totals * np.float32(_P95 * (1 - ROUNDING))).sum(axis=-1), BUCKETS - 1)
    return np.where(totals[..., 0] > 0, _MIDDLES[index], 0.0)
