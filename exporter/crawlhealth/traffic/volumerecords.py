"""What the rules record of a volume (`bundle/volume.py`), made from the hours of the history.

Prometheus cannot make it itself of an imported past: promtool fills in no rule that reads itself, nothing says that the
exporter was scraped then, and a sample an hour is too few for the increase of an hour. Without it a volume is judged
after days, not after the first hour.

An hour's visits count as spread evenly over it. Only what is read later is recorded, and nothing of what has never had
`ENOUGH` a day, for nothing is judged of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.history.visits import HOUR

STEP: Final = 240
"""Seconds between two results: as often as the rules are evaluated, so that an average takes all alike."""
ENOUGH: Final = 100
_MINUTE: Final = 60
_DAY: Final = 86_400 // STEP
Values = NDArray[np.float64]


def recorded(hours: Mapping[int, float], known: Set[int], record: str, *, end: int) -> Iterator[tuple[int, float]]:
    """The results of one of `RECORDS` for one volume, each with its time (unix seconds).

    `hours` has counts by the start of their hour. `known` are the hours of which something is known: a volume without a
    count had 0 there. Nothing is said of hours before its first one, and of those that end after `end`.
    """
    first = min(hours)
    places = range(first, end // HOUR * HOUR, HOUR)
    counts = np.array([hours.get(hour, 0.0) if hour in known else np.nan for hour in places])
    if not _enough(counts):
        return
    make, days = _MAKERS[record]
    times = np.arange(first + HOUR, places[-1] + HOUR + 1, STEP)
    begin = np.searchsorted(times, times[-1] - days * 86_400)
    ends = np.array(places, dtype=np.float64) + HOUR
    values = make(np.interp(times, ends, counts))
    for at, value in zip(times[begin:].tolist(), values[begin:].tolist(), strict=True):
        if not math.isnan(value):
            yield at, value


def _enough(counts: Values) -> bool:
    so_far = np.concatenate([[0.0], np.nancumsum(counts)])
    return bool(len(counts)) and float((so_far[24:] - so_far[:-24] if len(counts) > 24 else so_far).max()) >= ENOUGH


def _before(values: Values, steps: int) -> Values:
    """The values so many steps before each moment."""
    steps = min(steps, len(values))
    return np.concatenate([np.full(steps, np.nan), values[: len(values) - steps]])


def _over(summary: Callable[[Values], Values], values: Values, lags: range) -> Values:
    """A summary of the known ones among earlier values, where there is one."""
    stack = np.stack([_before(values, lag) for lag in lags])
    some = ~np.isnan(stack).all(axis=0)
    found = np.full(len(values), np.nan)
    found[some] = summary(stack[:, some])
    return found


def _median7d(hourly: Values) -> Values:
    return _over(lambda stack: np.nanmedian(stack, axis=0), hourly, range(_DAY, 8 * _DAY, _DAY))


def _least(hourly: Values) -> Values:
    """The least median between 22 h 45 min and 25 h 15 min ago."""
    lags = range(-(-(22 * 60 + 45) * _MINUTE // STEP), (25 * 60 + 15) * _MINUTE // STEP + 1)
    return _over(lambda stack: np.nanmin(stack, axis=0), _median7d(hourly), lags)


def _daily(hourly: Values) -> Values:
    """24 times the mean of a day, where there was something 20 to 26 hours ago."""
    known = ~np.isnan(hourly)

    def sums(values: Values) -> Values:
        so_far = np.cumsum(values)
        return so_far - np.nan_to_num(_before(so_far, _DAY + 1))

    with np.errstate(invalid="ignore"):
        mean = sums(np.nan_to_num(hourly)) / sums(known.astype(np.float64))
    began = _over(lambda stack: np.nanmax(stack, axis=0), hourly, range(20 * _DAY // 24, 26 * _DAY // 24 + 1))
    return np.where(np.isnan(began), np.nan, 24 * mean)


def _daily_avg3d(hourly: Values) -> Values:
    daily = _daily(hourly)
    return (daily + _before(daily, _DAY) + _before(daily, 2 * _DAY)) / 3


_MAKERS: Final[Mapping[str, tuple[Callable[[Values], Values], int]]] = {
    "increase1h": (lambda hourly: hourly, 15),
    "increase1h_median7d": (_median7d, 2),
    "increase1h_least": (_least, 2),
    "increase1d": (_daily, 15),
    "increase1d_avg3d": (_daily_avg3d, 29),
}
"""By the operations of a record: how it is made of the increases of an hour, and for how many days it is read."""
RECORDS: Final = tuple(_MAKERS)
