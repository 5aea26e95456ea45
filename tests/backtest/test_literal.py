"""The plain formula on raw hours, to the digit."""

from __future__ import annotations

import numpy as np
import pytest

from crawlhealth.backtest import literal

HOURS = 400
NORMAL = (880, 20, 80, 20)


def score(
    last: tuple[int, int, int, int], *, at: int = HOURS - 1, also: dict[int, tuple[int, int, int, int]] | None = None
) -> float:
    counts = np.zeros((1, HOURS, 12))
    counts[0, :, :4] = NORMAL
    for hour, one in {**(also or {}), at: last}.items():
        counts[0, hour, :4] = one
    return float(literal.plain(literal.scores(counts, first=HOURS - 1))[0, 0])


@pytest.mark.parametrize(
    ("last", "points"),
    [
        pytest.param(NORMAL, 100.0, id="its own normal"),
        pytest.param((780, 20, 180, 20), 87.5, id="10 points more challenges cost half of 25"),
        pytest.param((0, 1000, 0, 0), 65.0, id="all 403"),
        pytest.param((0, 0, 1000, 0), 75.0, id="all challenges"),
        pytest.param((0, 0, 0, 1000), 75.0, id="all soft blocks"),
        pytest.param((0, 300, 400, 300), 15.0, id="a mix of all: without latency 15 is the least"),
        pytest.param((0, 0, 0, 0), 100.0, id="nothing came"),
        pytest.param((0, 0, 1, 0), 75.0, id="a single request is enough"),
    ],
)
def test_an_hour_by_itself(last: tuple[int, int, int, int], points: float) -> None:
    assert score(last) == pytest.approx(points, abs=1e-4)


def test_the_normal_is_the_mean_of_fourteen_days_without_the_last() -> None:
    half = (500, 0, 500, 0)
    last = HOURS - 1
    assert score((820, 20, 140, 20), also={last - 10: half}) == pytest.approx(92.5), "the last day does not count"
    expected = (0.08 * 335 + 0.5) / 336
    assert score((820, 20, 140, 20), also={last - 25: half}) == pytest.approx(
        100 - 25 * (0.14 - expected) / 0.2, abs=0.1
    )
    assert score((820, 20, 140, 20), also={last - 24 - 337: half}) == pytest.approx(92.5), "nor what is older"


def test_smoothing_is_an_ewma_of_the_score() -> None:
    counts = np.zeros((1, HOURS, 12))
    counts[0, :, :4] = NORMAL
    counts[0, -3:, :4] = (0, 1000, 0, 0)
    found = literal.smoothed(literal.scores(counts, first=HOURS - 3))
    assert found[0] == pytest.approx([100 - 35 * 0.3, 100 - 35 * (1 - 0.7**2), 100 - 35 * (1 - 0.7**3)], abs=1e-4)
