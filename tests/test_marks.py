"""Marks of hours: what a verdict leaves, how two of one hour come together, and which hours teach a normal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.marks import NONE, OUTSIDE, RESTING, UNKNOWN, mark_of, marks_from, usable, worse
from crawlhealth.verdict import Band

WORST_FIRST = (OUTSIDE, RESTING, *range(101), UNKNOWN, NONE)
marks = st.sampled_from(WORST_FIRST)
bands = st.sampled_from(Band)
scores = st.none() | st.floats(-5, 105)


def row(written: str) -> list[int]:
    """Marks as a line of words: `O` outside, `R` resting, `?` unknown, `-` none, and scores."""
    words = {"O": OUTSIDE, "R": RESTING, "?": UNKNOWN, "-": NONE}
    return [words[word] if word in words else int(word) for word in written.split()]


@pytest.mark.parametrize(
    ("band", "score", "resting", "mark"),
    [
        pytest.param(Band.NORMAL, 97, False, 97, id="a normal hour bears its score"),
        pytest.param(Band.NORMAL, 70, False, 70, id="a low score that has not changed the band yet is a score"),
        pytest.param(Band.NORMAL, None, False, UNKNOWN, id="without a score it is unknown"),
        pytest.param(Band.UNKNOWN, None, False, UNKNOWN, id="so it is before the first score"),
        pytest.param(Band.DEGRADING, 90, False, OUTSIDE, id="degrading is outside, whatever the score has come to"),
        pytest.param(Band.RESISTING, None, False, OUTSIDE, id="a held band without a score is outside"),
        pytest.param(Band.NORMAL, 97, True, RESTING, id="maintenance is rest"),
        pytest.param(Band.UNKNOWN, None, True, RESTING, id="so it is where nothing is known"),
        pytest.param(Band.DEGRADING, 60, True, OUTSIDE, id="outside goes before rest"),
    ],
)
def test_mark_of(band: Band, score: float | None, resting: bool, mark: int) -> None:
    assert mark_of(band, score, resting=resting) == mark


@given(st.lists(st.tuples(bands, scores, st.booleans()), min_size=1))
def test_marks_of_many_verdicts_are_those_of_each(verdicts: list[tuple[Band, float | None, bool]]) -> None:
    found = marks_from(
        np.array([band in (Band.DEGRADING, Band.RESISTING) for band, _, _ in verdicts]),
        np.array([math.nan if score is None else score for _, score, _ in verdicts]),
        np.array([resting for _, _, resting in verdicts]),
    )
    assert found.dtype == np.uint8
    assert found.tolist() == [mark_of(band, score, resting=resting) for band, score, resting in verdicts]


@given(marks, marks, marks)
def test_the_worse_of_two_is_one_of_them_whatever_the_order(one: int, two: int, three: int) -> None:
    assert int(worse(one, two)) == min(one, two, key=WORST_FIRST.index)
    assert worse(worse(one, two), three) == worse(three, worse(two, one))
    assert worse(one, worse(one, two)) == worse(one, two)


def test_a_byte_that_is_no_mark_says_nothing() -> None:
    assert worse([101, 200, 251], [NONE, 80, OUTSIDE]).tolist() == [NONE, 80, OUTSIDE]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("100 92 91 0", "y y n n", id="hours under the least score are left out"),
        pytest.param("- ? 95", "y y y", id="hours without a verdict or a score are not"),
        pytest.param("95 R 95", "y n y", id="rest is left out, and nothing after it"),
        pytest.param("95 O 95 95 95", "y n n n y", id="so are the hours after a stay outside"),
        pytest.param("O - - - -", "n n n y y", id="also where nothing was judged after it"),
        pytest.param("O ? 95 O 95 95 95", "n n n n n n y", id="a second stay begins the quiet hours anew"),
        pytest.param("95 O - - - - - O 95 95 95", "y n n n n n n n n n y", id="unjudged between two stays: one stay"),
        pytest.param("O - - - - 95 - O", "n n n y y y y n", id="but not with a good hour between"),
        pytest.param("- - - O", "y y y n", id="what was before a stay is good"),
        pytest.param("O", "n", id="one hour"),
        pytest.param("", "", id="no hour"),
    ],
)
def test_usable(written: str, expected: str) -> None:
    found = usable(np.array(row(written), dtype=np.uint8), quiet_hours=2)
    assert ["y" if good else "n" for good in found.tolist()] == expected.split()


def test_a_site_is_quiet_for_a_day_unless_told_otherwise() -> None:
    found = usable(np.array([OUTSIDE] + [100] * 30, dtype=np.uint8))
    assert found.tolist() == [False] * 25 + [True] * 6


@given(st.lists(st.lists(marks, min_size=40, max_size=40), min_size=1, max_size=5), st.integers(0, 100))
def test_sites_side_by_side_are_as_each_alone(several: list[list[int]], least: int) -> None:
    block = np.array(several, dtype=np.uint8)
    together = usable(block, least=least, quiet_hours=3)
    assert together.tolist() == [usable(one, least=least, quiet_hours=3).tolist() for one in block]
