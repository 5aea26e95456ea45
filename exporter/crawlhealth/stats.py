"""Small statistics, pure: mergeable latency histograms, exponential smoothing, and bounds of a share."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

SUBDIVISIONS: Final = 8
"""Fine buckets to one published bucket."""
PER_DECADE: Final = 6
"""Published buckets to a factor of ten: a ratio of 10^(1/6) = 1.468 between neighbours."""
_FIRST_DECADE: Final = -3
_LAST_STEP: Final = 34

BOUNDS: Final[tuple[float, ...]] = tuple(
    float(f"{10 ** (_FIRST_DECADE + i / (PER_DECADE * SUBDIVISIONS)):.3g}")
    if i % SUBDIVISIONS == 0
    else 10 ** (_FIRST_DECADE + i / (PER_DECADE * SUBDIVISIONS))
    for i in range(_LAST_STEP * SUBDIVISIONS + 1)
)
"""Upper bounds in seconds of the fine buckets, 1 ms to 464 s; neighbours differ by 4.9 %, so that the geometric middle
of a bucket is within 2.5 % of every value in it. Every `SUBDIVISIONS`-th is a published bound."""

_PUBLISHED: Final = BOUNDS[::SUBDIVISIONS]
_LABELS: Final = tuple(repr(bound) for bound in _PUBLISHED)

Histogram = Mapping[int, int]
"""Counts by index of fine bucket (`len(BOUNDS)` is the overflow): mergeable by adding."""


def bucket(seconds: float) -> int:
    """The fine bucket that a latency falls into: the first whose bound is not below it."""
    return bisect_left(BOUNDS, seconds)


def quantile(histogram: Histogram, q: float) -> float | None:
    """The q-quantile of a histogram in seconds, within 2.5 %; None for an empty one.

    The rank is ceil(q * n), the value the geometric middle of the bucket that holds it.
    """
    total = sum(histogram.values())
    if total <= 0:
        return None
    rank = max(1, math.ceil(q * total))
    seen = 0
    for index in sorted(histogram):
        seen += histogram[index]
        if seen >= rank:
            return middle(index)
    return middle(max(histogram))


def middle(index: int) -> float:
    """The geometric middle of a fine bucket in seconds; the edge for the first and the overflow bucket."""
    if index <= 0:
        return BOUNDS[0]
    if index >= len(BOUNDS):
        return BOUNDS[-1]
    return math.sqrt(BOUNDS[index - 1] * BOUNDS[index])


def published(histogram: Histogram, first: float, last: float) -> Iterable[tuple[str, int]]:
    """Cumulative counts at the published bounds from `first` to `last` seconds, as (label, count), ending with +Inf."""
    coarse = [0] * (len(_PUBLISHED) + 1)
    for index, count in histogram.items():
        coarse[min(-(-index // SUBDIVISIONS), len(_PUBLISHED))] += count
    upto = list(accumulate(coarse))
    begin, end = bisect_left(_PUBLISHED, first), bisect_right(_PUBLISHED, last)
    yield from zip(_LABELS[begin:end], upto[begin:end], strict=True)
    yield "+Inf", upto[-1]


def smooth(previous: float, value: float, elapsed: float, half_life: float) -> float:
    """Exponential smoothing over uneven steps: the old value counts half after `half_life` seconds.

    An elapsed time of zero or less (a clock that stepped back) keeps the previous value.
    """
    if half_life <= 0:
        return value
    keep: float = 0.5 ** (max(0.0, elapsed) / half_life)
    return keep * previous + (1 - keep) * value


def wilson_lower(share: ArrayLike, size: ArrayLike, z: float) -> NDArray[np.float64]:
    """The lower bound of a share by Wilson's score interval, `z` standard deviations down; 0 for a size of 0.

    `size` is the sample size, for weighted sums the effective one, (sum of weights)^2 / (sum of squares). Element by
    element. Wilson (1927); Newcombe (1998), method 3.
    """
    p, n = np.asarray(share, dtype=np.float64), np.asarray(size, dtype=np.float64)
    known = n > 0
    square = z * z
    middle = n * p + square / 2  # all of it times n: nothing is divided by a size that may be next to nothing
    half = z * np.sqrt(np.maximum(n * p * (1 - p) + square / 4, 0.0))
    return np.where(known, np.clip((middle - half) / np.where(known, n + square, 1.0), 0.0, p), 0.0)


def effective_size(weights: ArrayLike, squares: ArrayLike) -> NDArray[np.float64]:
    """How many equal observations weighted ones are worth: (sum of weights)^2 / (sum of squares); Kish (1965)."""
    total, square = np.asarray(weights, dtype=np.float64), np.asarray(squares, dtype=np.float64)
    known = square > 0
    return np.where(known, total * total / np.where(known, square, 1.0), 0.0)


def ewma(values: ArrayLike, weight: float, start: ArrayLike = 0.0) -> NDArray[np.float64]:
    """The exponentially weighted moving average of a sequence along its last axis, from `start`; Roberts (1959)."""
    found = np.array(values, dtype=np.float64)
    kept = np.full(found.shape[:-1], start, dtype=np.float64)
    for step in range(found.shape[-1]):
        kept = found[..., step] = weight * found[..., step] + (1 - weight) * kept
    return found
