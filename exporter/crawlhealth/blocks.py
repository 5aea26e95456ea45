"""Blocks: hours put together until there is enough in them to have a rate, many series at once. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ANSWERED: Final = 4
"""How many of the first columns are requests that were answered."""
DAY_HOURS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The blocks of M series: shares of answered requests (three hostile kinds and all of them) and logs of p95.

    NaN is a place without a block. `number`, `days` and `total` are how many blocks there are, on how many days, and
    how many answered requests are in them.
    """

    shares: Array
    """M, 4, B."""
    logs: Array
    """M, B: of p95 in seconds."""
    sizes: Array
    """M, B: answered requests."""
    number: NDArray[np.intp]
    days: NDArray[np.intp]
    total: Array

    def levels(self, q: float) -> Array:
        """The q-quantile of the shares of the blocks: (M, 4); 0 without any."""
        return np.nan_to_num(_quantile(self.shares, self.number, q))

    def means(self) -> Array:
        """The shares of all blocks together: (M, 4)."""
        sizes = np.nan_to_num(self.sizes)[:, None]
        total = sizes.sum(axis=-1)
        summed: Array = (np.nan_to_num(self.shares) * sizes).sum(axis=-1) / np.where(total > 0, total, 1.0)
        return summed

    def latencies(self, q: float) -> Array:
        """The q-quantile of p95 in seconds over the blocks of each series: (M,); NaN without any."""
        number = (~np.isnan(self.logs)).sum(axis=1)
        return np.where(number > 0, np.exp(_quantile(self.logs[:, None], number, q)[:, 0]), np.nan)


def merged(counts: Array, p95: Array, usable: NDArray[np.bool_], *, least: float, whole: int = ANSWERED) -> Blocks:
    """The blocks of series (M, H, columns of a tally): usable hours in order, put together until `least` are answered.

    What is left at the end without having reached it makes no block. Shares are of the first `whole` columns.
    """
    outcomes = np.ascontiguousarray(counts[..., :whole].transpose(0, 2, 1))
    answered = np.where(usable, outcomes.sum(axis=1), 0.0)
    logs = np.log(np.where(p95 > 0, p95, np.nan))
    hostile = np.where(usable[:, None], outcomes[:, 1:ANSWERED], 0.0)
    served = np.where(usable & ~np.isnan(logs), outcomes[:, 0], 0.0)
    weighed = np.where(served > 0, np.nan_to_num(logs) * served, 0.0)
    sparse = np.flatnonzero(((answered > 0) & (answered < least)).any(axis=1))
    if len(sparse):
        answered[sparse], hostile[sparse], served[sparse], weighed[sparse] = _put_together(
            answered[sparse], hostile[sparse], served[sparse], weighed[sparse], least
        )
    full = answered >= least
    sizes = np.where(full, answered, np.nan)
    shares = np.concatenate([hostile, hostile.sum(axis=1, keepdims=True)], axis=1) / sizes[:, None]
    day = np.arange(answered.shape[1]) // DAY_HOURS
    return Blocks(
        shares=shares,
        logs=np.where(full & (served > 0), weighed / np.where(served > 0, served, 1.0), np.nan),
        sizes=sizes,
        number=full.sum(axis=1),
        days=_days(full, day),
        total=np.where(full, answered, 0.0).sum(axis=1),
    )


def _put_together(
    answered: Array, hostile: Array, served: Array, weighed: Array, least: float
) -> tuple[Array, Array, Array, Array]:
    """The same with each block's sums at its last hour, and nothing elsewhere."""
    values = np.concatenate([answered[:, None], hostile, served[:, None], weighed[:, None]], axis=1)
    upto = np.cumsum(values, axis=-1)
    full = _ends(upto[:, 0], least)
    hours = np.arange(full.shape[1])
    last = np.maximum.accumulate(np.where(full, hours, -1), axis=1)
    before = np.concatenate([np.full((len(full), 1), -1), last[:, :-1]], axis=1)
    begun = np.where(before[:, None] >= 0, np.take_along_axis(upto, np.maximum(before, 0)[:, None], axis=-1), 0.0)
    found = np.where(full[:, None], upto - begun, 0.0)
    return found[:, 0], found[:, 1:-2], found[:, -2], found[:, -1]


def _ends(total: Array, least: float) -> NDArray[np.bool_]:
    """Which hours end a block, from the sums up to each: it does as soon as it has enough."""
    by_hour = np.ascontiguousarray(total.T)
    found = np.empty(by_hour.shape, dtype=np.bool_)
    begun, since = np.zeros(len(total)), np.empty(len(total))
    for upto, full in zip(by_hour, found, strict=True):
        np.subtract(upto, begun, out=since)
        np.greater_equal(since, least, out=full)
        np.copyto(begun, upto, where=full)
    return found.T


def _days(full: NDArray[np.bool_], day: NDArray[np.intp]) -> NDArray[np.intp]:
    starts = np.flatnonzero(np.diff(day, prepend=-1))
    if not len(starts):
        return np.zeros(len(full), dtype=np.intp)
    found: NDArray[np.intp] = np.logical_or.reduceat(full, starts, axis=1).sum(axis=1)
    return found


def _quantile(values: Array, number: NDArray[np.intp], q: float) -> Array:
    """The q-quantile of the first `number` of sorted values along the last axis, interpolated; NaN sorts last."""
    if not values.shape[-1]:
        return np.full(values.shape[:2], np.nan)
    place = np.maximum(number - 1, 0) * q
    low = np.floor(place).astype(np.intp)
    high = np.minimum(low + 1, np.maximum(number - 1, 0))
    ordered = np.sort(values, axis=-1)
    rows = np.arange(len(values))
    share = (place - low)[:, None]
    found: Array = ordered[rows, :, low] * (1 - share) + ordered[rows, :, high] * share
    return found
