"""Scenarios: what happens to simulated sites, and for how long it is watched. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.backtest.simulator import VOLUMES, Season

Array = NDArray[np.float64]

HARD, CHALLENGE, SOFT = range(3)
"""The columns of effects."""
WEEK: Final = 168
"""Hours."""
DAY: Final = 24
FOUND_WITHIN: Final = 96
"""A step or a quick rise counts as found within so many hours."""
SLOW_WITHIN: Final = 800
"""And a slow drift within so many."""
CALM: Final = 4 * WEEK


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What is added to one share from hour `begins` until `ends`: at once, and more in every hour, up to `most`.

    A rise is that of the middle of each hour.
    """

    column: int = CHALLENGE
    at_once: float = 0.0
    an_hour: float = 0.0
    most: float = 0.9
    begins: float = 0.0
    ends: float = float("inf")

    def at(self, hours: Array) -> Array:
        """What is added at these hours."""
        lasted = hours + 0.5 - self.begins
        value = np.minimum(self.at_once + self.an_hour * lasted, self.most)
        return np.where((lasted > 0) & (hours < self.ends), value, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is added to which shares of simulated sites, and for how many hours they are watched.

    They count as found from hour `onset` on. At hour `accepted` a person accepts what every site does since hour 0.
    `volume` is how many requests an hour they all have; as many as in the mixed population where it is None. With
    `minutes` they are judged minute by minute.
    """

    name: str
    hours: int = FOUND_WITHIN
    added: tuple[Added, ...] = ()
    onset: int = 0
    season: Season | None = None
    accepted: int | None = None
    volume: float | None = None
    minutes: bool = False

    def effect(self, hours: Array) -> Array:
        """What is added at these hours to the three shares: (hours, 3)."""
        found = np.zeros((len(hours), 3))
        for one in self.added:
            found[:, one.column] += one.at(hours)
        return found


ALL: Final = 1e4
"""Added to a share, it leaves nothing of the others."""
TWENTY: Final = Added(at_once=0.2)
REFUSAL: Final = Added(column=HARD, at_once=ALL, most=ALL)

QUIET: Final = Scenario(name="calm", hours=CALM)
RISE: Final = Scenario(name="+1 pp/h", added=(Added(an_hour=0.01),))
STEP: Final = Scenario(name="+20 pp step", added=(TWENTY,))
REFUSED: Final = Scenario(name="hard 100 %", added=(REFUSAL,))
DRIFT: Final = Scenario(name="+1 pp/day", hours=SLOW_WITHIN, added=(Added(an_hour=0.01 / DAY),))
HARD_STEP: Final = Scenario(name="+10 pp hard", added=(Added(column=HARD, at_once=0.1),))
TABLE: Final = (RISE, STEP, REFUSED, DRIFT, HARD_STEP)
"""The columns of the table of figures to beat, beside that of false alarms."""

QUIET_MINUTES: Final = Scenario(name="calm, by the minute", hours=WEEK, minutes=True)
STEP_MINUTES: Final = tuple(
    Scenario(name=f"+20 pp at {volume:,.0f}/h", hours=48, added=(TWENTY,), volume=volume, minutes=True)
    for volume in VOLUMES[1:]
)
REFUSED_MINUTES: Final = tuple(
    Scenario(name=f"all refused at {volume:,.0f}/h", hours=4, added=(REFUSAL,), volume=volume, minutes=True)
    for volume in VOLUMES[1:]
)

SEASON: Final = Season(hourly=1.0, weekend=1.0)
QUIET_SEASON: Final = Scenario(name="calm, with a season", hours=CALM, season=SEASON)
DRIFT_SEASON: Final = replace(DRIFT, name="+1 pp/day, with a season", season=SEASON)
MONTH: Final = 30 * DAY
UNFIXED: Final = (
    Scenario(name="+20 pp, never fixed", hours=MONTH, added=(TWENTY,)),
    Scenario(name="+50 pp, never fixed", hours=MONTH, added=(Added(at_once=0.5),)),
    Scenario(name="all refused, never fixed", hours=MONTH, added=(REFUSAL,)),
)
ACCEPTED_AT: Final = 3 * DAY
AGAIN_AT: Final = ACCEPTED_AT + WEEK
ACCEPTED: Final = Scenario(
    name="+20 pp, accepted, +20 pp more",
    hours=AGAIN_AT + FOUND_WITHIN,
    added=(TWENTY, replace(TWENTY, begins=AGAIN_AT)),
    accepted=ACCEPTED_AT,
    onset=AGAIN_AT,
)
PAST_HOURS: Final = 72
PAST: Final = Scenario(
    name="+90 pp for three days, a week, +20 pp",
    hours=PAST_HOURS + WEEK + FOUND_WITHIN,
    added=(Added(at_once=0.9, ends=PAST_HOURS), replace(TWENTY, begins=PAST_HOURS + WEEK)),
    onset=PAST_HOURS + WEEK,
)
