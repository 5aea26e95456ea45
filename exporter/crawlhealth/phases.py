"""Phases: what hours hold by the hour of the day and the day of the week, and which effects that shows. Pure.

All that effects and their errors ask of many hours are a few sums by phase: least squares need no more. Time is UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

HOUR: Final = 3600.0
DAY_HOURS: Final = 24
WEEK_DAYS: Final = 7
EFFECTS: Final = DAY_HOURS + WEEK_DAYS
"""Effects of the hours of the day, and behind them those of the days of the week."""
FIRST_DAY: Final = 3
"""The day of the week, Monday being 0, on which unix time began."""
SHRUNK: Final = 1.0
"""Each effect is shrunk as by so many usual hours that show none."""


@dataclass(frozen=True, slots=True)
class Phases:
    """The hour of the day and the day of the week of H hours."""

    hour: NDArray[np.intp]
    day: NDArray[np.intp]

    @classmethod
    def at(cls, starts: Array) -> Phases:
        """Those of hours that begin at these times (unix seconds)."""
        return cls((starts // HOUR % DAY_HOURS).astype(np.intp), day_of_week(starts))

    def some(self, part: slice) -> Phases:
        """Those of some of the hours."""
        return Phases(self.hour[part], self.day[part])

    def of(self, effects: Array) -> tuple[Array, Array]:
        """What effects (..., EFFECTS) add in each hour: by the hour of the day, and by the day of the week."""
        return effects[..., self.hour], effects[..., DAY_HOURS + self.day]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSums:
    """What the hours of M series hold, as far as effects on S values ask: sums, each hour with its weight.

    `weights` (M, hours of the day, days of the week) are those of the hours, `hours` (M) their number; `by_hour`
    (M, S, hours of the day) and `by_day` (M, S, days of the week) the sums of the values, `squares` (M, S) of their
    squares.
    """

    weights: Array
    hours: NDArray[np.intp]
    by_hour: Array
    by_day: Array
    squares: Array

    @classmethod
    def of(cls, values: Array, weights: Array, hours: Phases) -> PhaseSums:
        """The sums of values (M, S, H) with the weights (M, H) of their hours."""
        weighed = values * weights[:, None]
        both = hours.hour * WEEK_DAYS + hours.day
        order = np.argsort(both, kind="stable")
        there, begins = np.unique(both[order], return_index=True)
        apart = np.zeros((len(weights), DAY_HOURS * WEEK_DAYS))
        apart[:, there] = np.add.reduceat(weights[:, order], begins, axis=1)
        return cls(
            weights=apart.reshape(-1, DAY_HOURS, WEEK_DAYS),
            hours=(weights > 0).sum(axis=-1),
            by_hour=weighed @ _places(hours.hour, DAY_HOURS),
            by_day=weighed @ _places(hours.day, WEEK_DAYS),
            squares=(weighed * values).sum(axis=-1),
        )

    def plus(self, other: PhaseSums) -> PhaseSums:
        """Those of the hours of both."""
        return PhaseSums(
            weights=self.weights + other.weights,
            hours=self.hours + other.hours,
            by_hour=self.by_hour + other.by_hour,
            by_day=self.by_day + other.by_day,
            squares=self.squares + other.squares,
        )

    def less(self, effects: Array) -> PhaseSums:
        """Those of the values without effects (M, S, EFFECTS) on them."""
        of_hour, of_day = effects[..., :DAY_HOURS], effects[..., DAY_HOURS:]
        hourly, daily = self.weights.sum(axis=2)[:, None], self.weights.sum(axis=1)[:, None]
        moved = of_hour @ self.weights  # by the effects of the hours, on each day
        squares = (of_hour**2 * hourly - 2 * of_hour * self.by_hour).sum(axis=-1)
        squares += (of_day**2 * daily + 2 * of_day * (moved - self.by_day)).sum(axis=-1)
        return replace(
            self,
            by_hour=self.by_hour - of_hour * hourly - of_day @ self.weights.transpose(0, 2, 1),
            by_day=self.by_day - of_day * daily - moved,
            squares=self.squares + squares,
        )

    def error(self) -> Array:
        """The squared error of the values about their level: (M, S)."""
        error: Array = self.squares - self.by_hour.sum(axis=-1) ** 2 / self.weights.sum(axis=(1, 2))[:, None]
        return error

    def effects(self) -> Array:
        """The effects that the hours show beside a level, shrunk towards 0: (M, S, EFFECTS)."""
        hourly, daily = self.weights.sum(axis=2)[:, None], self.weights.sum(axis=1)[:, None]
        total = daily.sum(axis=-1, keepdims=True)
        level = self.by_hour.sum(axis=-1, keepdims=True) / total
        shrunk = SHRUNK * total / np.maximum(self.hours, 1)[:, None, None]
        of_hour = (self.by_hour - level * hourly) / (hourly + shrunk)
        left = self.by_day - level * daily - of_hour @ self.weights
        return np.concatenate([of_hour, left / (daily + shrunk * DAY_HOURS / WEEK_DAYS)], axis=-1)


def day_of_week(times: Array) -> NDArray[np.intp]:
    """The days of the week at some times (unix seconds), Monday being 0."""
    found: NDArray[np.intp] = (times // (DAY_HOURS * HOUR) + FIRST_DAY).astype(np.intp) % WEEK_DAYS
    return found


def _places(phase: NDArray[np.intp], phases: int) -> Array:
    """Which hours (H) are of which phase: 1 there and 0 elsewhere (H, phases)."""
    found: Array = (phase[:, None] == np.arange(phases)).astype(np.float64)
    return found
