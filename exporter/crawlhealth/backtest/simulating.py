"""Simulating: everything that `crawlhealth backtest --simulate` works out, by the names of what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from crawlhealth.backtest.figures import Row, minute_rows, rows
from crawlhealth.backtest.scenarios import (
    QUIET,
    QUIET_MINUTES,
    REFUSED_MINUTES,
    STEP_MINUTES,
    TABLE,
    Scenario,
)
from crawlhealth.backtest.stories import STORIES, Measure
from crawlhealth.backtest.traces import Part, Results, Work, groups
from crawlhealth.scoresettings import ScoreSettings

Methods = Mapping[str, ScoreSettings]

HOURLY: Final = "table"
BY_THE_MINUTE: Final = "minutes"
NAMES: Final = (HOURLY, BY_THE_MINUTE, *STORIES)
_HOURS: Final = (QUIET, *TABLE)
_MINUTES: Final = (QUIET_MINUTES, *STEP_MINUTES, *REFUSED_MINUTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What came of a simulation: the table of hours, that of minutes, and the measures of each story by method."""

    sites: int
    seed: int
    hours: tuple[Row, ...] = ()
    minutes: tuple[Row, ...] = ()
    stories: Mapping[str, Mapping[str, tuple[Measure, ...]]]


def work(names: Sequence[str], methods: Methods, *, sites: int, seed: int) -> list[Work]:
    """The work for what was asked for; no scenario is done twice."""
    wanted = dict.fromkeys(scenario for name in names for scenario in _scenarios(name))
    raw = _HOURS if HOURLY in names else ()
    return [
        Work(group=group, methods=methods, raw=scenario in raw)
        for scenario in wanted
        for group in groups(scenario, sites, seed)
    ]


def simulated(
    names: Sequence[str],
    methods: Methods,
    *,
    sites: int,
    seed: int,
    each: Callable[[list[Work]], Iterable[Part]],
) -> Simulated:
    """What was asked for; `each` does the work."""
    results = Results()
    for part in each(work(names, methods, sites=sites, seed=seed)):
        results.take(part)
    return Simulated(
        sites=sites,
        seed=seed,
        hours=rows(results, methods) if HOURLY in names else (),
        minutes=minute_rows(results, methods) if BY_THE_MINUTE in names else (),
        stories={
            name: {method: STORIES[name].measured(results, method, settings) for method, settings in methods.items()}
            for name in names
            if name in STORIES
        },
    )


def _scenarios(name: str) -> Sequence[Scenario]:
    if name == HOURLY:
        return _HOURS
    return _MINUTES if name == BY_THE_MINUTE else STORIES[name].scenarios
