"""Phases: a few sums of many hours tell the same errors and effects as the hours themselves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from crawlhealth.phases import DAY_HOURS, EFFECTS, HOUR, SHRUNK, WEEK_DAYS, Phases, PhaseSums, day_of_week

Array = NDArray[np.float64]

SERIES, VALUES, HOURS = 3, 2, 200
PHASES = Phases.at(1_767_571_200.0 + HOUR * np.arange(HOURS, dtype=np.float64))  # from a Monday on


def given(seed: int) -> tuple[Array, Array, Array]:
    """Values, weights (some of them 0), and effects."""
    chance = np.random.default_rng(seed)
    weights = chance.random((SERIES, HOURS)) * (chance.random((SERIES, HOURS)) < 0.8)
    return chance.normal(-2, 1, (SERIES, VALUES, HOURS)), weights, chance.normal(0, 0.5, (SERIES, VALUES, EFFECTS))


def squared_error(values: Array, weights: Array) -> Array:
    """About the weighted mean, hour by hour."""
    shares = np.broadcast_to(weights[:, None], values.shape)
    level = np.average(values, axis=-1, weights=shares)
    found: Array = (shares * (values - level[..., None]) ** 2).sum(axis=-1)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_error_beside_effects_is_that_of_the_hours(seed: int) -> None:
    values, weights, effects = given(seed)
    sums = PhaseSums.of(values, weights, PHASES)
    assert sums.error() == pytest.approx(squared_error(values, weights))
    left = values - np.add(*PHASES.of(effects))
    assert sums.less(effects).error() == pytest.approx(squared_error(left, weights))


@pytest.mark.parametrize("seed", range(5))
def test_two_parts_of_the_hours_are_together_all_of_them(seed: int) -> None:
    values, weights, effects = given(seed)
    early, late = (
        PhaseSums.of(values[..., part], weights[:, part], PHASES.some(part))
        for part in (slice(None, 90), slice(90, None))
    )
    both, whole = early.plus(late), PhaseSums.of(values, weights, PHASES)
    assert both.less(effects).effects() == pytest.approx(whole.less(effects).effects())
    assert both.error() == pytest.approx(whole.error())


def test_effects_are_means_of_what_is_left_of_the_level_shrunk_by_one_usual_hour() -> None:
    values, weights, _ = given(7)
    found = PhaseSums.of(values, weights, PHASES).effects()
    for series in range(SERIES):
        own = weights[series]
        left = values[series, 0] - np.average(values[series, 0], weights=own)
        shrunk = SHRUNK * own.sum() / np.count_nonzero(own)
        for phases, count, first, usual in (
            (PHASES.hour, DAY_HOURS, 0, shrunk),
            (PHASES.day, WEEK_DAYS, DAY_HOURS, shrunk * DAY_HOURS / WEEK_DAYS),
        ):
            means = np.array(
                [(own * left)[phases == at].sum() / (own[phases == at].sum() + usual) for at in range(count)]
            )
            assert found[series, 0, first : first + count] == pytest.approx(means)
            left = left - means[phases]


def test_unix_time_began_on_a_thursday() -> None:
    assert day_of_week(np.array([0.0, 4 * DAY_HOURS * HOUR])).tolist() == [3, 0]
