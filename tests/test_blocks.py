"""Hours put together into blocks, against a few lines that do it one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crawlhealth.blocks import Blocks, merged
from pasts import Counts, counts

pytestmark = pytest.mark.filterwarnings("error")

HOURS = 40
NEVER = np.full((1, HOURS), np.nan)
ALL = np.ones((1, HOURS), dtype=np.bool_)


def blocks(
    past: Counts, *, p95: NDArray[np.float64] = NEVER, usable: NDArray[np.bool_] = ALL, whole: int = 4
) -> Blocks:
    return merged(past[None], p95, usable, least=50, whole=whole)


def found(of: Blocks) -> list[tuple[float, float]]:
    """Size and refused share of each block, in order."""
    there = ~np.isnan(of.sizes[0])
    return [(float(n), round(float(s), 9)) for n, s in zip(of.sizes[0][there], of.shares[0, 3][there], strict=True)]


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        pytest.param(counts(HOURS), [], id="nothing"),
        pytest.param(counts(HOURS, ok=[50, 49, *[0] * 38]), [(50, 0)], id="49 at the end make no block"),
        pytest.param(counts(HOURS, ok=[25, 25, *[0] * 38]), [(50, 0)], id="two halves make one"),
        pytest.param(counts(HOURS, ok=[49, 80, *[0] * 38]), [(129, 0)], id="a sparse hour goes with the next"),
        pytest.param(counts(HOURS, ok=[20, 0, 0, 30, *[0] * 36]), [(50, 0)], id="over hours without anything"),
        pytest.param(
            counts(HOURS, ok=[60, 20, 30, *[0] * 37], challenge=[0, 30, 0, *[0] * 37]), [(60, 0), (50, 0.6)],
            id="each with its own share",
        ),
        pytest.param(counts(HOURS, error=100), [], id="errors answer nothing"),
    ],
)  # fmt: skip
def test_blocks(past: Counts, expected: list[tuple[float, float]]) -> None:
    assert found(blocks(past)) == expected


def test_of_all_requests_errors_are_part() -> None:
    of = blocks(counts(HOURS, ok=[40, *[0] * 39], challenge=[10, *[0] * 39], error=[50, *[0] * 39]), whole=5)
    assert found(of) == [(100, 0.1)]
    assert of.total.tolist() == [100]


def test_hours_that_are_not_usable_are_left_out_of_blocks_that_go_on() -> None:
    usable = ALL.copy()
    usable[0, 1] = False
    past = counts(HOURS, ok=[30, 0, 30, *[0] * 37], hard_block=[0, 500, 0, *[0] * 37])
    assert found(blocks(past, usable=usable)) == [(60, 0.0)]


def test_days_are_those_on_which_a_block_ends() -> None:
    past = counts(72, ok=[60 if hour in (3, 5, 30) else 0 for hour in range(72)])
    of = merged(past[None], np.full((1, 72), np.nan), np.ones((1, 72), dtype=np.bool_), least=50)
    assert (of.number.tolist(), of.days.tolist()) == ([3], [2])


def test_latency_is_the_geometric_mean_by_what_was_served() -> None:
    slow = NEVER.copy()
    slow[0, :3] = [1.0, 16.0, np.nan]
    of = blocks(counts(HOURS, ok=[30, 10, 10, *[0] * 37]), p95=slow)
    assert of.latencies(0.5)[0] == pytest.approx(16 ** (10 / 40)), "what was not timed does not count"
    assert math.isnan(blocks(counts(HOURS, ok=100)).latencies(0.5)[0])
    assert math.isnan(blocks(counts(HOURS, hard_block=100), p95=np.full((1, HOURS), 3.0)).latencies(0.5)[0])


def test_levels_are_quantiles_of_the_blocks_and_means_weigh_by_size() -> None:
    past = counts(HOURS, ok=90, challenge=10)
    past[:10] = counts(1, ok=500, hard_block=500)
    of = blocks(past)
    assert of.levels(0.5)[0].tolist() == [0.0, 0.1, 0.0, 0.1]
    assert of.levels(1.0)[0].tolist() == [0.5, 0.1, 0.0, 0.5]
    assert of.means()[0] == pytest.approx([5000 / 13000, 300 / 13000, 0, 5300 / 13000])
    assert blocks(counts(HOURS)).levels(0.5)[0].tolist() == [0.0] * 4
    assert blocks(counts(HOURS)).means()[0].tolist() == [0.0] * 4


COUNT = st.integers(0, 120)
PAST = st.lists(st.tuples(COUNT, COUNT, COUNT, COUNT, st.booleans(), st.floats(0.01, 9)), min_size=1, max_size=30)


@given(st.lists(PAST, min_size=1, max_size=3), st.sampled_from([1, 50, 200]), st.floats(0, 1))
def test_blocks_are_those_of_one_series_at_a_time(
    several: list[list[tuple[int, int, int, int, bool, float]]], least: int, q: float
) -> None:
    length = max(map(len, several))
    past, slow = np.zeros((len(several), length, 12)), np.full((len(several), length), np.nan)
    usable = np.zeros((len(several), length), dtype=np.bool_)
    for n, one in enumerate(several):
        for hour, (ok, hard, challenge, soft, good, seconds) in enumerate(one):
            past[n, hour, :4] = ok, hard, challenge, soft
            usable[n, hour], slow[n, hour] = good, seconds
    of = merged(past, slow, usable, least=least)
    for n, one in enumerate(several):
        expected = one_by_one(one, least)
        there = ~np.isnan(of.sizes[n])
        assert of.number[n] == there.sum() == len(expected)
        assert of.sizes[n][there].tolist() == [size for size, _, _ in expected]
        assert of.shares[n, :, there].tolist() == [pytest.approx(shares) for _, shares, _ in expected]
        np.testing.assert_allclose(of.logs[n][there], [log for _, _, log in expected])
        if expected:
            levels = np.quantile([shares for _, shares, _ in expected], q, axis=0)
            assert of.levels(q)[n] == pytest.approx(levels)


def one_by_one(
    past: list[tuple[int, int, int, int, bool, float]], least: int
) -> list[tuple[float, list[float], float]]:
    made, held, logs = [], np.zeros(4), 0.0
    for *outcomes, good, seconds in past:
        if not good:
            continue
        held, logs = held + outcomes, logs + outcomes[0] * math.log(seconds)
        if held.sum() >= least:
            shares = [*(held[1:] / held.sum()), held[1:].sum() / held.sum()]
            made.append((held.sum(), shares, logs / held[0] if held[0] else math.nan))
            held, logs = np.zeros(4), 0.0
    return made
