"""Quantiles of weighted latency histograms, many at once; those of rows that have not changed are remembered.

All weights of a histogram fade alike: its quantiles stay as they are until something is added.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth import stats
from crawlhealth.arrays import ANSWERED, Arrays
from crawlhealth.weighted import SQUARED

P95: Final = 0.95
Z: Final = 1.2816
"""The normal quantile of a one-sided bound of 90 %."""
ROUNDING: Final = 1e-5
"""What float32 may take from the sum of a histogram, as a share of it."""
ROWS_AT_ONCE: Final = 512
"""So many histograms by half-life stay in the processor's cache while they are read."""

_MIDDLES: Final = np.array([stats.middle(index) for index in range(len(stats.BOUNDS) + 1)])


def cumulated(histograms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Histograms (..., buckets) as sums up to each bucket (buckets, ...).

    With the buckets first, all histograms are added up at once, and not one number after another.
    """
    sums = np.moveaxis(histograms, -1, 0).copy()
    for below, upto in pairwise(sums):
        np.add(upto, below, out=upto)
    return sums


def reached(sums: NDArray[np.float32], shares: NDArray[np.float64] | float) -> NDArray[np.intp]:
    """The first bucket of each cumulated histogram at which a share of its total is reached."""
    wanted = (sums[-1] * (np.asarray(shares) * (1 - ROUNDING))).astype(np.float32)
    places: NDArray[np.intp] = (sums < wanted).sum(axis=0, dtype=np.int16).astype(np.intp)
    return places


def middles(buckets: NDArray[np.intp]) -> NDArray[np.float64]:
    """The geometric middles of fine buckets in seconds, as stats.middle."""
    return _MIDDLES[buckets]


def low_shares(sums: NDArray[np.float64], timed: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share at which the lower bound of p95 is read, from sums by column and the weight that was timed.

    A one-sided 90 % bound by order statistics: the share of requests that may well be under the true p95 is at least
    Wilson's lower bound of 95 % of n, n being the effective size of the timed requests: that of the answered ones,
    (sum of weights)^2 / (sum of squares), times the timed share (at most 1). n is at least 1. (The plain normal
    approximation would take the largest of six for a bound, and be wrong in a quarter of all cases.)
    """
    answered = sums[..., 0]
    for column in range(1, ANSWERED):
        answered = answered + sums[..., column]
    squares = sums[..., -SQUARED]
    known = squares > 0
    size = np.where(known, answered * np.minimum(timed, answered) / np.where(known, squares, 1.0), 1.0)
    return stats.wilson_lower(P95, np.maximum(1.0, size), Z)


def by_site(values: NDArray[np.float32], starts: NDArray[np.intp]) -> NDArray[np.float32]:
    """The sums of rows (the second axis) that stand side by side, beginning at `starts`.

    Much faster than reduceat for few rows each.
    """
    lengths = np.diff(starts, append=values.shape[1])
    sums = values[:, starts]
    for place in range(1, int(lengths.max())):
        longer = np.flatnonzero(lengths > place)
        sums[:, longer] += values[:, starts[longer] + place]
    return sums


class Quantiles:
    """The p95 of every row, its lower bound, and the p95 of all rows of a site: in seconds, NaN where none was timed.

    What stands for a site is kept at its first row. Whoever changes a row must `touch` it.
    """

    def __init__(self, half_lives: int) -> None:
        self._stale = np.zeros(0, dtype=np.bool_)
        self._known = np.zeros((3, 0, half_lives))

    def touch(self, rows: NDArray[np.intp] | slice, *, size: int) -> None:
        """Rows have changed, of `size` in all."""
        if size > len(self._stale):
            more = size - len(self._stale)
            self._stale = np.concatenate([self._stale, np.ones(more, dtype=np.bool_)])
            self._known = np.concatenate([self._known, np.full((3, more, self._known.shape[2]), np.nan)], axis=1)
        self._stale[rows] = True

    def read(
        self, arrays: Arrays, rows: NDArray[np.intp], starts: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """p95 and its lower bound by row and half-life, and p95 by site: all rows of each site, from `starts` on."""
        self._renew(arrays, rows, starts)
        p95, low, site = self._known
        return p95[rows], low[rows], site[rows[starts]]

    def _renew(self, arrays: Arrays, rows: NDArray[np.intp], starts: NDArray[np.intp]) -> None:
        stale = np.flatnonzero(np.logical_or.reduceat(self._stale[rows], starts))
        ends = np.append(starts[1:], len(rows))
        lengths = (ends - starts)[stale]
        upto = np.cumsum(lengths)
        first = 0
        while first < len(stale):  # whole sites, as many as fit
            before = upto[first] - lengths[first]
            last = max(first + 1, int(np.searchsorted(upto, before + ROWS_AT_ONCE, side="right")))
            some = lengths[first:last]
            begin = np.cumsum(some) - some
            places = np.repeat(starts[stale[first:last]] - begin, some) + np.arange(some.sum())
            self._compute(arrays, rows[places], begin)
            first = last

    def _compute(self, arrays: Arrays, rows: NDArray[np.intp], starts: NDArray[np.intp]) -> None:
        low, high = arrays.span or (0, 1)
        timed = cumulated(arrays.latency[rows, :, low:high])
        shares = low_shares(arrays.sums[rows], timed[-1].astype(np.float64))
        p95, p95_low, site = self._known
        together = by_site(timed, starts)
        for known, where, sums, share in (
            (p95, rows, timed, P95),
            (p95_low, rows, timed, shares),
            (site, rows[starts], together, P95),
        ):
            seconds = middles(low + reached(sums, share))
            known[where] = np.where(sums[-1] > 0, seconds, np.nan)
        self._stale[rows] = False
