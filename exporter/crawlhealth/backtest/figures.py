"""Figures: the table of figures to beat, and that of minutes, from what came of the scenarios. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from crawlhealth.backtest import literal
from crawlhealth.backtest.episodes import Found, a_week, threshold
from crawlhealth.backtest.scenarios import QUIET, QUIET_MINUTES, REFUSED, REFUSED_MINUTES, STEP_MINUTES, TABLE
from crawlhealth.backtest.traces import Results
from crawlhealth.scoresettings import ScoreSettings

WARNING_HOLDS: Final = 6
"""Hours: an early warning is over after so many without one, as its alert has it."""
LITERAL: Final = (("plain formula", literal.plain), ("plain formula, EWMA 0.3", literal.smoothed))
"""The rows that have thresholds of their own."""
LITERAL_GAP: Final = 1
AT: Final = 80.0
LOW: Final = 50.0
AN_HOUR: Final = 60
"""Minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one detector made of every scenario.

    `false_alarms` are a site-week in the calm run; `at_80` those of the plain formula under a score of 80 in place of
    its threshold. `under_50` is how soon a site that refuses everything scores less than 50, `final` the highest score
    that any such site ends with; None where a detector has no score.
    """

    name: str
    threshold: float
    found: Mapping[str, Found]
    false_alarms: float
    at_80: float | None = None
    under_50: Found | None = None
    final: float | None = None


def rows(results: Results, methods: Mapping[str, ScoreSettings]) -> tuple[Row, ...]:
    """The plain formula by itself, each method by its bands, and each robust one by its early warning."""
    found = [_literal(results, name, reading) for name, reading in LITERAL]
    for name, settings in methods.items():
        found.append(_by_bands(results, name, settings))
        if settings.method == "robust":
            found.append(_by_warning(results, name, settings))
    return tuple(found)


def minute_rows(results: Results, methods: Mapping[str, ScoreSettings]) -> tuple[Row, ...]:
    """Each method by its bands, minute by minute; steps are found outside normal, refusals when resisting. Hours."""
    step = 1 / AN_HOUR
    return tuple(
        Row(
            name=name,
            threshold=settings.bands.degrading,
            found={
                **{one.name: Found.of(results.traces(one, name).outside, step=step) for one in STEP_MINUTES},
                **{one.name: Found.of(results.traces(one, name).resisting, step=step) for one in REFUSED_MINUTES},
            },
            false_alarms=a_week(results.traces(QUIET_MINUTES, name).outside, step=step),
        )
        for name, settings in methods.items()
    )


def _literal(results: Results, name: str, reading: literal.Reading) -> Row:
    calm, refused = reading(results.raw(QUIET)), reading(results.raw(REFUSED))
    level = threshold(calm, gap=LITERAL_GAP)
    return Row(
        name=name,
        threshold=level,
        found={one.name: Found.of(reading(results.raw(one)) < level) for one in TABLE},
        false_alarms=a_week(calm < level, gap=LITERAL_GAP),
        at_80=a_week(calm < AT, gap=LITERAL_GAP),
        under_50=Found.of(refused < LOW),
        final=float(refused[:, -1].max()),
    )


def _by_bands(results: Results, name: str, settings: ScoreSettings) -> Row:
    refused = results.traces(REFUSED, name).score
    return Row(
        name=name,
        threshold=settings.bands.degrading,
        found={one.name: Found.of(results.traces(one, name).outside) for one in TABLE},
        false_alarms=a_week(results.traces(QUIET, name).outside),
        under_50=Found.of(refused < LOW),
        final=float(np.nanmax(refused[:, -1])),
    )


def _by_warning(results: Results, name: str, settings: ScoreSettings) -> Row:
    level = settings.drift_threshold
    return Row(
        name=f"{name}, early warning",
        threshold=level,
        found={one.name: Found.of(results.traces(one, name).drift >= level) for one in TABLE},
        false_alarms=a_week(results.traces(QUIET, name).drift >= level, gap=WARNING_HOLDS),
    )
