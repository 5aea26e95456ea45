"""The early warning: how far shares and latency are from a normal, in standard deviations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crawlhealth.drift import LEAST_SIZE, standardised
from someslots import LIVES

Array = NDArray[np.float64]
WIDE = (7200.0, 21600.0)
NAN = math.nan


def z(
    share: float,
    *,
    usual: float = 0.1,
    size: float = 400.0,
    swing: float = 0.0,
    seconds: float = 1.0,
    usually: float = 1.0,
    lives: tuple[float, ...] = WIDE,
) -> Array:
    """The early warning of one site, whose windows all hold the same; the fourth share is the third again."""
    shape = (1, len(lives), 5)
    values, normal, swings = np.zeros(shape), np.zeros(shape), np.full(shape, swing)
    values[..., :4], normal[..., :4] = share, usual
    values[..., 4], normal[..., 4] = seconds, usually
    sizes = np.full((1, len(lives)), size)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = standardised(values, sizes, normal=normal, swings=swings, half_lives=np.array(lives))[0]
    return found


@pytest.mark.parametrize(
    ("share", "usual", "swing", "expected"),
    [
        pytest.param(0.1, 0.1, 0.0, 0.0, id="at its normal"),
        pytest.param(0.0, 0.0, 0.0, 0.0, id="at a normal of nothing"),
        pytest.param(0.01, 0.0, 0.0, 0.0, id="as good as nothing"),
        pytest.param(1.0, 1.0, 0.0, 0.0, id="at a normal of everything"),
        pytest.param(0.13, 0.1, 0.0, 0.03 / 0.015, id="two standard deviations of 400 requests"),
        pytest.param(0.07, 0.1, 0.0, -0.03 / 0.015, id="as many below"),
        pytest.param(0.13, 0.1, 0.02, 0.03 / 0.025, id="less of a restless site: 0.015 and 0.02 make 0.025"),
    ],
)
def test_shares(share: float, usual: float, swing: float, expected: float) -> None:
    assert z(share, usual=usual, swing=swing)[0] == pytest.approx(expected, abs=0.2)
    assert np.sign(round(float(z(share, usual=usual, swing=swing)[0]), 9)) == np.sign(expected)


def test_latency_is_its_logarithm_over_the_dispersion_of_the_sites_own_hours() -> None:
    assert z(0.1, seconds=2.0, swing=0.2, size=1e9)[4] == pytest.approx(math.log(2) / 0.2, rel=1e-3)
    assert z(0.1, seconds=0.5, swing=0.2, size=1e9)[4] == pytest.approx(-math.log(2) / 0.2, rel=1e-3)
    assert z(0.1, seconds=2.0, swing=0.0, size=1e9)[4] == pytest.approx(math.log(2) / 0.05, rel=1e-3), "with a floor"


@pytest.mark.parametrize(
    ("lives", "size", "known"),
    [
        pytest.param(LIVES, 400.0, True, id="the windows of two and six hours"),
        pytest.param((600.0,), 400.0, True, id="the longest where none is an hour long"),
        pytest.param(LIVES, LEAST_SIZE - 1, False, id="windows of too few requests say nothing"),
        pytest.param(LIVES, 0.0, False, id="empty ones neither"),
    ],
)
def test_what_is_read(lives: tuple[float, ...], size: float, known: bool) -> None:
    assert np.isnan(z(0.2, lives=lives, size=size)).all() == (not known)


def test_short_windows_are_not_read() -> None:
    values, normal = np.full((1, 4, 5), 0.1), np.full((1, 4, 5), 0.1)
    values[0, :2, :4] = 0.9
    found = standardised(
        values, np.full((1, 4), 400.0), normal=normal, swings=np.zeros((1, 4, 5)), half_lives=np.array(LIVES)
    )
    assert found[0].tolist() == [0.0] * 5


def test_without_a_normal_there_is_none() -> None:
    assert np.isnan(z(0.1, usual=NAN, usually=NAN)).all()
    assert np.isnan(z(0.1, seconds=NAN)[4])
    assert not np.isnan(z(0.1, seconds=NAN)[:4]).any()


def test_at_a_normal_it_is_standard_normal() -> None:
    """Of windows that hold binomial counts the mean is 0 and the standard deviation 1: 4 of them are rare."""
    chance = np.random.default_rng(8)
    for share, size in ((0.05, 2000), (0.2, 300), (0.5, 100)):
        drawn = chance.binomial(size, share, 5000) / size
        values = np.repeat(drawn[:, None], 5, axis=1)[:, None, :]
        known = np.full((5000, 1, 5), share)
        found = standardised(
            values, np.full((5000, 1), float(size)), normal=known, swings=np.zeros((5000, 1, 5)),
            half_lives=np.array([21600.0]),
        )[:, 0]  # fmt: skip
        assert found.mean() == pytest.approx(0, abs=0.1)
        assert found.std() == pytest.approx(1, abs=0.08)
        assert np.mean(found > 4) < 0.001


SHARE = st.floats(0, 1)


@given(SHARE, SHARE, SHARE, st.floats(0, 1e9), st.floats(0, 2))
def test_it_rises_with_the_share(a: float, b: float, usual: float, size: float, swing: float) -> None:
    low, high = (z(share, usual=usual, size=size, swing=swing)[:4] for share in sorted((a, b)))
    assert np.isnan(low).all() == np.isnan(high).all() == (size < LEAST_SIZE)
    assert np.all(np.isnan(low) | (low <= high + 1e-9))


@given(SHARE, SHARE, st.floats(LEAST_SIZE, 1e9), st.floats(0, 2), st.floats(1e-3, 464), st.floats(1e-3, 464))
@pytest.mark.filterwarnings("error")
def test_it_is_a_number_whatever_comes(
    share: float, usual: float, size: float, swing: float, seconds: float, usually: float
) -> None:
    assert np.isfinite(z(share, usual=usual, size=size, swing=swing, seconds=seconds, usually=usually)).all()
