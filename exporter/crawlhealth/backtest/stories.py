"""Stories: what must hold over weeks, each some scenarios and what is measured in them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from crawlhealth.backtest.episodes import Found, a_week
from crawlhealth.backtest.figures import WARNING_HOLDS
from crawlhealth.backtest.scenarios import (
    ACCEPTED,
    ACCEPTED_AT,
    DAY,
    DRIFT,
    DRIFT_SEASON,
    PAST,
    QUIET,
    QUIET_SEASON,
    STEP,
    UNFIXED,
    Scenario,
)
from crawlhealth.backtest.traces import Results
from crawlhealth.scoresettings import ScoreSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure: a share of sites, false alarms a site-week, or the hours of the median site (None: not found)."""

    name: str
    share: float | None = None
    a_week: float | None = None
    hours: float | None = None


Measured = Callable[[Results, str, ScoreSettings], tuple[Measure, ...]]
"""What is measured of a method by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Some scenarios, and what is measured in them."""

    scenarios: tuple[Scenario, ...]
    measured: Measured


def _season(results: Results, name: str, settings: ScoreSettings) -> tuple[Measure, ...]:
    found = []
    for calm, drift, where in ((QUIET, DRIFT, "without a season"), (QUIET_SEASON, DRIFT_SEASON, "with a season")):
        still, moving = results.traces(calm, name), results.traces(drift, name)
        level = settings.drift_threshold
        found += [
            Measure(name=f"false alarms {where}", a_week=a_week(still.outside)),
            _found(f"+1 pp/day {where}", Found.of(moving.outside)),
            Measure(name=f"false early warnings {where}", a_week=a_week(still.drift >= level, gap=WARNING_HOLDS)),
            _found(f"+1 pp/day {where}, early warning", Found.of(moving.drift >= level)),
        ]
    return tuple(found)


def _unfixed(results: Results, name: str, settings: ScoreSettings) -> tuple[Measure, ...]:
    del settings
    return tuple(
        Measure(name=f"{one.name}: outside normal after 30 days", share=_at(results, one, name, one.hours - 1))
        for one in UNFIXED
    )


def _accepted(results: Results, name: str, settings: ScoreSettings) -> tuple[Measure, ...]:
    del settings
    before, after = ACCEPTED_AT - 1, ACCEPTED_AT + DAY - 1
    return (
        Measure(name="outside normal when accepted", share=_at(results, ACCEPTED, name, before)),
        Measure(name="outside normal a day later", share=_at(results, ACCEPTED, name, after)),
        _found("a further +20 pp step", _from_onset(results, ACCEPTED, name)),
        _found("a +20 pp step without all that", Found.of(results.traces(STEP, name).outside)),
    )


def _past(results: Results, name: str, settings: ScoreSettings) -> tuple[Measure, ...]:
    del settings
    return (
        Measure(name="outside normal when it comes", share=_at(results, PAST, name, PAST.onset - 1)),
        _found("a +20 pp step a week after an incident", _from_onset(results, PAST, name)),
        _found("a +20 pp step without one", Found.of(results.traces(STEP, name).outside)),
    )


STORIES: Final[Mapping[str, Story]] = {
    "season": Story(scenarios=(QUIET, DRIFT, QUIET_SEASON, DRIFT_SEASON), measured=_season),
    "unfixed": Story(scenarios=UNFIXED, measured=_unfixed),
    "accept": Story(scenarios=(ACCEPTED, STEP), measured=_accepted),
    "past": Story(scenarios=(PAST, STEP), measured=_past),
}
"""By the name that `--scenario` takes."""


def _found(name: str, found: Found) -> Measure:
    return Measure(name=name, share=found.share, hours=found.median)


def _at(results: Results, scenario: Scenario, name: str, hour: int) -> float:
    """The share of sites that are outside normal at the end of an hour."""
    return float(results.traces(scenario, name).outside[:, hour].mean())


def _from_onset(results: Results, scenario: Scenario, name: str) -> Found:
    return Found.of(results.traces(scenario, name).outside[:, scenario.onset :])
