"""Counting false alarms and delays, on small series that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from crawlhealth.backtest.episodes import Found, a_week, threshold


def on(*sites: str) -> NDArray[np.bool_]:
    return np.array([[mark == "x" for mark in site] for site in sites])


@pytest.mark.parametrize(
    ("sites", "gap", "episodes"),
    [
        pytest.param(("....",), 0, 0, id="nothing"),
        pytest.param(("xxxx",), 0, 1, id="on from the beginning to the end is one"),
        pytest.param((".x.x",), 0, 2, id="two"),
        pytest.param((".x.x",), 1, 1, id="with one step between them they are one"),
        pytest.param(("x..x",), 1, 2, id="with two between them they are two"),
        pytest.param(("x..x",), 2, 1, id="unless two may be between"),
        pytest.param(("...x", "x...", "...."), 1, 2, id="sites have nothing to do with one another"),
    ],
)
def test_episodes(sites: tuple[str, ...], gap: int, episodes: int) -> None:
    weeks = len(sites) * len(sites[0]) / 168
    assert a_week(on(*sites), gap=gap) == pytest.approx(episodes / weeks)
    assert a_week(on(*sites), gap=gap, step=1 / 60) == pytest.approx(episodes / weeks * 60)


@pytest.mark.parametrize(
    ("sites", "median", "share"),
    [
        pytest.param(("x...", ".x..", "..x."), 2.0, 1.0, id="found at the end of the first step that is on"),
        pytest.param(("x...", "....", "..x."), 3.0, 2 / 3, id="who is never found comes last"),
        pytest.param(("x...", "....", "...."), None, 1 / 3, id="no median where less than half are found"),
        pytest.param(("....",), None, 0.0, id="none"),
    ],
)
def test_found(sites: tuple[str, ...], median: float | None, share: float) -> None:
    assert Found.of(on(*sites)) == Found(median=median, share=share)
    assert Found.of(on(*sites), step=0.5).median == (None if median is None else median / 2)


def test_a_threshold_is_the_highest_with_few_enough_false_alarms() -> None:
    scores = np.full((10, 168), 100.0, dtype=np.float32)
    scores[0, 5], scores[1, 5], scores[2, 5] = 40, 60, 70.1
    assert threshold(scores, gap=0) == 60.0, "one in ten site-weeks: the 40; at 60.25 the 60 would be another"
    assert threshold(scores, gap=0, rate=0.2) == 70.0
