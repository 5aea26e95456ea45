from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth import metrics, stats

LATENCIES = st.lists(st.floats(min_value=0.001, max_value=400), min_size=1, max_size=200)


def histogram(values: list[float]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for value in values:
        index = stats.bucket(value)
        counts[index] = counts.get(index, 0) + 1
    return counts


@pytest.mark.parametrize(
    ("value", "index"),
    [
        pytest.param(0.0, 0, id="nothing falls into the first bucket"),
        pytest.param(0.001, 0, id="a bound belongs to its own bucket"),
        pytest.param(math.nextafter(0.001, 1), 1, id="just over a bound is the next bucket"),
        pytest.param(464.0, len(stats.BOUNDS) - 1, id="the last bound is the last bucket"),
        pytest.param(1e9, len(stats.BOUNDS), id="longer than any bound overflows"),
    ],
)
def test_bucket(value: float, index: int) -> None:
    assert stats.bucket(value) == index


@given(LATENCIES, st.sampled_from([0.5, 0.9, 0.95, 0.99, 1.0]))
def test_a_quantile_is_within_two_and_a_half_percent_of_the_exact_one(values: list[float], q: float) -> None:
    exact = sorted(values)[max(1, math.ceil(q * len(values))) - 1]
    assert stats.quantile(histogram(values), q) == pytest.approx(exact, rel=0.025)


def test_there_is_no_quantile_of_nothing() -> None:
    assert stats.quantile({}, 0.95) is None
    assert stats.quantile({3: 0}, 0.95) is None


@given(LATENCIES)
def test_published_counts_are_those_at_or_under_each_bound(values: list[float]) -> None:
    published = list(stats.published(histogram(values), metrics.HISTOGRAM_FIRST, metrics.HISTOGRAM_LAST))
    for label, count in published:
        assert count == sum(value <= float(label) for value in values), label
    assert published[-1] == ("+Inf", len(values))


def test_published_bounds_are_close_and_reach_from_first_to_last() -> None:
    bounds = [float(label) for label, _ in stats.published({}, metrics.HISTOGRAM_FIRST, metrics.HISTOGRAM_LAST)][:-1]
    assert (bounds[0], bounds[-1]) == (metrics.HISTOGRAM_FIRST, metrics.HISTOGRAM_LAST)
    assert all(1 < after / before <= 1.5 for before, after in pairwise(bounds))


@pytest.mark.parametrize(
    ("elapsed", "half_life", "expected"),
    [
        pytest.param(600, 600, 50, id="half of the old counts after one half-life"),
        pytest.param(1200, 600, 75, id="a quarter after two"),
        pytest.param(0, 600, 0, id="no time, no change"),
        pytest.param(-3600, 600, 0, id="a clock that steps back changes nothing"),
        pytest.param(1, 0, 100, id="no half-life is no smoothing"),
    ],
)
def test_smooth(elapsed: float, half_life: float, expected: float) -> None:
    assert stats.smooth(0, 100, elapsed, half_life) == pytest.approx(expected)


def test_smoothing_in_many_steps_is_smoothing_in_one() -> None:
    chance = random.Random(7)
    steps = [chance.uniform(0, 30) for _ in range(50)]
    value = 100.0
    for step in steps:
        value = stats.smooth(value, 20, step, 300)
    assert value == pytest.approx(stats.smooth(100, 20, sum(steps), 300))
