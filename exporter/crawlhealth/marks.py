"""Marks: how a site was judged in each hour, one byte an hour, and which hours may teach its normal. Pure.

A mark from 0 to GOOD is the worst score of the hour; the others are named below.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawlhealth.verdict import Band

Marks = NDArray[np.uint8]

GOOD: Final = 100
"""The best score, and the largest mark that is one."""
RESTING: Final = 252
"""Planned work on the site, or a dead uplink, at some moment of the hour."""
OUTSIDE: Final = 253
"""Degrading or resisting at some moment of the hour, held or not."""
UNKNOWN: Final = 254
"""Judged, but without a score and in no bad band."""
NONE: Final = 255
"""No verdict in that hour."""

LEAST: Final = 92
"""An hour that scored less teaches nothing."""
QUIET_HOURS: Final = 24
"""So many hours after a site came back teach nothing."""

_BAD: Final = (Band.DEGRADING, Band.RESISTING)
_WORST_FIRST: Final = np.array([OUTSIDE, RESTING, *range(GOOD + 1), UNKNOWN, NONE], dtype=np.uint8)
_RANKS: Final = np.full(256, len(_WORST_FIRST) - 1, dtype=np.uint8)  # a byte that is no mark says nothing
_RANKS[_WORST_FIRST] = np.arange(len(_WORST_FIRST), dtype=np.uint8)


def mark_of(band: Band, score: float | None, *, resting: bool = False) -> int:
    """The mark of one verdict. A bad band counts whether it is held or not, and before everything else."""
    if band in _BAD:
        return OUTSIDE
    if resting:
        return RESTING
    return UNKNOWN if score is None else min(GOOD, max(0, round(score)))


def marks_from(outside: NDArray[np.bool_], score: NDArray[np.float64], resting: NDArray[np.bool_]) -> Marks:
    """The marks of many verdicts, as `mark_of`: which are in a bad band, their scores (NaN for none), which rest."""
    unknown = np.isnan(score)
    known = np.minimum(np.maximum(np.rint(np.where(unknown, 0.0, score)), 0), GOOD).astype(np.uint8)
    found = np.where(unknown, np.uint8(UNKNOWN), known)
    return np.where(outside, np.uint8(OUTSIDE), np.where(resting, np.uint8(RESTING), found))


def worse(one: ArrayLike, other: ArrayLike) -> Marks:
    """The mark of an hour that bears both: OUTSIDE before RESTING, the lower score, UNKNOWN before NONE.

    Of marks or arrays of them, element by element. Order and repetition change nothing.
    """
    ranks = np.minimum(_RANKS[np.asarray(one, dtype=np.uint8)], _RANKS[np.asarray(other, dtype=np.uint8)])
    return np.asarray(_WORST_FIRST[ranks])


def usable(marks: Marks, *, least: int = LEAST, quiet_hours: int = QUIET_HOURS) -> NDArray[np.bool_]:
    """Which hours (the last axis, one after another) may teach a site's normal.

    Left out are OUTSIDE, RESTING, scores under `least`, and `quiet_hours` hours after each stay OUTSIDE; UNKNOWN and
    NONE are not, but for hours without a verdict between two that were OUTSIDE: that was one stay. To know what
    ended before the first hour that matters, begin `quiet_hours` earlier.
    """
    if not marks.shape[-1]:
        return np.zeros(marks.shape, dtype=np.bool_)
    hours = np.arange(marks.shape[-1], dtype=np.int32)
    last = np.maximum.accumulate(np.where(_outside(marks), hours, np.int32(-1)), axis=-1)
    recovering = (last >= 0) & (hours - last <= quiet_hours)
    bad: NDArray[np.bool_] = recovering | (marks == RESTING) | ((marks <= GOOD) & (marks < least))
    return ~bad


def _outside(marks: Marks) -> NDArray[np.bool_]:
    """The hours that are OUTSIDE, or without a verdict while those known before and after are."""
    count = marks.shape[-1]
    hours = np.arange(count, dtype=np.int32)
    unjudged = marks == NONE
    before = np.maximum.accumulate(np.where(unjudged, np.int32(0), hours), axis=-1)
    after = np.minimum.accumulate(np.where(unjudged, np.int32(count - 1), hours)[..., ::-1], axis=-1)[..., ::-1]
    outside: NDArray[np.bool_] = marks == OUTSIDE
    return np.logical_and(np.take_along_axis(outside, before, axis=-1), np.take_along_axis(outside, after, axis=-1))
