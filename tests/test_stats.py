"""The statistics: by hand, by properties, and against published tables."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth import metrics, stats
from crawlhealth.quantiles import low_shares

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


WILSON = [  # Newcombe (1998), table I, method 3: 95 %, two-sided
    pytest.param(81, 263, 0.2553, 0.3662, id="81 of 263"),
    pytest.param(15, 148, 0.0624, 0.1605, id="15 of 148"),
    pytest.param(0, 20, 0.0, 0.1611, id="none of 20"),
    pytest.param(1, 29, 0.0061, 0.1718, id="1 of 29"),
]
SIZES = st.floats(0, 1e9)
SHARES = st.floats(0, 1)


@pytest.mark.parametrize(("count", "size", "low", "high"), WILSON)
def test_wilson_bounds_are_the_published_ones(count: int, size: int, low: float, high: float) -> None:
    z = 1.959964
    assert round(float(stats.wilson_lower(count / size, size, z)), 4) == low
    assert round(1 - float(stats.wilson_lower(1 - count / size, size, z)), 4) == high


@given(SHARES, SHARES, SIZES, SIZES, st.floats(0, 6))
def test_a_wilson_bound_rises_with_the_share_and_the_size_and_stays_under_the_share(
    a: float, b: float, n: float, m: float, z: float
) -> None:
    (low, high), (few, many) = sorted((a, b)), sorted((n, m))
    bound = float(stats.wilson_lower(high, few, z))
    assert 0 <= bound <= high
    assert float(stats.wilson_lower(low, few, z)) <= bound + 1e-12
    assert bound <= float(stats.wilson_lower(high, many, z)) + 1e-12


def test_a_bound_of_nothing_is_nothing() -> None:
    assert stats.wilson_lower([0.0, 0.5, 1.0], [0.0, 0.0, 0.0], 1.1).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("weights", "size"),
    [
        pytest.param([], 0, id="of nothing"),
        pytest.param([1.0] * 7, 7, id="of equal weights their number"),
        pytest.param([0.25] * 7, 7, id="however small they are"),
        pytest.param([1.0, 0.5], 1.8, id="of unequal ones less"),
        pytest.param([1e-200] * 7, 0, id="of vanished ones nothing"),
    ],
)
def test_effective_size(weights: list[float], size: float) -> None:
    assert float(stats.effective_size(sum(weights), sum(w * w for w in weights))) == pytest.approx(size)


def test_the_moving_average_is_the_recursion_along_the_last_axis() -> None:
    assert stats.ewma([[8.0, 0.0, 4.0], [0.0, 0.0, 1.0]], 0.25).tolist() == [[2.0, 1.5, 2.125], [0.0, 0.0, 0.25]]
    assert stats.ewma([[8.0], [8.0]], 0.25, [0.0, 8.0]).tolist() == [[2.0], [8.0]], "it goes on from where each was"
    assert stats.ewma(np.zeros((3, 0)), 0.5).shape == (3, 0)


def run_length(weight: float, limit: float, shift: float, *, series: int = 20_000, seed: int = 5) -> float:
    """How many normal observations it takes, on average, until their moving average leaves its limits."""
    chance = np.random.default_rng(seed)
    bound = limit * math.sqrt(weight / (2 - weight))
    level, lasted = np.zeros(series), 0
    while len(level):
        moved = stats.ewma(chance.standard_normal((len(level), 64)) + shift, weight, level)
        beyond = np.abs(moved) > bound
        out = beyond.any(axis=1)
        lasted += int(np.where(out, beyond.argmax(axis=1) + 1, 64).sum())
        level = moved[~out, -1]
    return lasted / series


@pytest.mark.parametrize(
    ("weight", "limit", "shift", "expected"),
    [
        (0.5, 3.071, 0, 500), (0.5, 3.071, 0.25, 255), (0.5, 3.071, 0.5, 88.8), (0.5, 3.071, 1, 17.5),
        (0.5, 3.071, 2, 3.63), (0.03, 2.437, 0, 500), (0.03, 2.437, 0.25, 76.7), (0.03, 2.437, 0.5, 29.3),
        (0.03, 2.437, 1, 12.6), (0.03, 2.437, 2, 5.99), (0.05, 2.490, 0, 370.4), (0.1, 2.701, 0, 370.4),
        (0.2, 2.859, 0, 370.4), (0.3, 2.925, 0, 370.4), (0.5, 2.978, 0, 370.4),
    ],
)  # fmt: skip
def test_average_run_lengths_are_those_of_lucas_and_saccucci(
    weight: float, limit: float, shift: float, expected: float
) -> None:
    """Lucas & Saccucci (1990), tables 1 to 3, by Monte Carlo: 20,000 series have a standard error of 0.7 %."""
    assert run_length(weight, limit, shift) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 50, 200, 1000])
def test_the_lower_bound_of_p95_is_over_the_true_one_in_a_tenth_of_all_samples_at_most(size: int) -> None:
    """Reckoned, not drawn: the k-th smallest of n is over the true quantile when fewer than k of n are under it."""
    sums = np.zeros((1, 14))
    sums[0, 0] = sums[0, 12] = size
    low = float(low_shares(sums, np.array([float(size)]))[0])
    rank = max(1, math.ceil(size * low - 1e-9))
    over = sum(math.comb(size, k) * 0.95**k * 0.05 ** (size - k) for k in range(rank))
    assert over <= 0.10
    assert size < 30 or over >= 0.03, "a bound that is never reached tells nothing"
