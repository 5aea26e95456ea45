"""Latency as others summarise it, quantiles or buckets of their own bounds, into our histogram. Approximate, pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import Final

from crawlhealth import stats

_Z95: Final = NormalDist().inv_cdf(0.95)
OPEN_END: Final = 2.0
"""The bucket without a lower (upper) end is taken to reach down (up) by this factor."""


def from_quantiles(count: int, p50: float, p95: float) -> dict[int, int]:
    """A histogram of `count` latencies with these quantiles in seconds, log-normal between and beyond them.

    Its own p95 falls into the bucket of `p95`, however few there are.
    """
    if count == 0:
        return {}
    if p95 <= p50:
        return {stats.bucket(p95): count}
    spread = NormalDist(math.log(p50), math.log(p95 / p50) / _Z95)
    rank, slow = math.ceil(0.95 * count), stats.bucket(p95)
    histogram: dict[int, int] = {}
    below = 0
    for index, bound in enumerate(stats.BOUNDS):
        upto = math.floor(count * spread.cdf(math.log(bound)) + 0.5)
        upto = min(upto, rank - 1) if index < slow else max(upto, rank)
        _put(histogram, index, upto - below)
        below = upto
    _put(histogram, len(stats.BOUNDS), count - below)
    return histogram


def from_buckets(buckets: Sequence[tuple[float, int]]) -> dict[int, int]:
    """A histogram from cumulative counts at rising upper bounds in seconds (the last may be infinite).

    The counts between two bounds are spread evenly over our finer buckets between them.
    """
    histogram: dict[int, int] = {}
    lower, below = 0.0, 0
    for bound, upto in buckets:
        if upto > below:
            low = lower or bound / OPEN_END
            high = bound if math.isfinite(bound) else max(lower, stats.BOUNDS[0]) * OPEN_END
            _spread(histogram, low, high, upto - below)
        lower, below = bound, upto
    return histogram


def total_seconds(histogram: Mapping[int, int]) -> float:
    """About how many seconds a histogram stands for."""
    return sum(stats.middle(index) * count for index, count in histogram.items())


def _spread(histogram: dict[int, int], low: float, high: float, count: int) -> None:
    first = min(stats.bucket(math.nextafter(low, math.inf)), stats.bucket(high))
    width = stats.bucket(high) - first + 1
    edges = [count * step // width for step in range(width + 1)]
    for step, (left, right) in enumerate(pairwise(edges)):
        _put(histogram, first + step, right - left)


def _put(histogram: dict[int, int], index: int, count: int) -> None:
    if count > 0:
        histogram[index] = histogram.get(index, 0) + count
