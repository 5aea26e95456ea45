"""Margins: what chance explains of a share, by hand and as properties that must hold for all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crawlhealth.margins import lower_bounds
from crawlhealth.scoresettings import Margins
from panels import HALF_LIVES

pytestmark = pytest.mark.filterwarnings("error")

SHARES = st.floats(0, 1)
SIZES = st.just(0.0) | st.floats(1e-3, 1e7) | st.floats(0, 1e-200) | st.floats(1, 500)
SWINGS = st.floats(0, 0.5)
CRITICAL = st.floats(0.01, 1)
MARGINS = st.builds(Margins, noise=st.floats(0, 4), swing=st.floats(0, 4), rare=st.floats(0, 8))
LIVES = st.floats(60, 7 * 86400)


def lower(
    share: float,
    size: float,
    *,
    normal: float,
    swing: float = 0.0,
    critical: float = 0.16,
    half_life: float = 600.0,
    margins: Margins | None = None,
) -> float:
    found = lower_bounds(
        np.array([[[share]]]), np.array([[size]]), normal=np.array([[[normal]]]), swings=np.array([[[swing]]]),
        critical=np.array([[[critical]]]), half_lives=np.array([half_life]), margins=margins or Margins(),
    )  # fmt: skip
    return float(found[0, 0, 0])


@given(SHARES, SHARES, SIZES, SHARES, SWINGS, CRITICAL, LIVES, MARGINS)
def test_a_lower_bound_never_falls_when_the_share_rises(
    a: float, b: float, size: float, normal: float, swing: float, critical: float, half_life: float, margins: Margins
) -> None:
    less, more = (
        lower(share, size, normal=normal, swing=swing, critical=critical, half_life=half_life, margins=margins)
        for share in sorted((a, b))
    )
    assert less <= more + 1e-9


@given(SHARES, SIZES, SHARES, SWINGS, CRITICAL, LIVES, MARGINS)
def test_a_lower_bound_is_a_share_and_under_the_share(
    share: float, size: float, normal: float, swing: float, critical: float, half_life: float, margins: Margins
) -> None:
    found = lower(share, size, normal=normal, swing=swing, critical=critical, half_life=half_life, margins=margins)
    assert 0 <= found <= share + 1e-12


@given(SHARES, SIZES, SIZES, SHARES, SWINGS)
def test_more_requests_never_explain_more(share: float, few: float, many: float, normal: float, swing: float) -> None:
    few, many = sorted((few, many))
    assert lower(share, few, normal=normal, swing=swing) <= lower(share, many, normal=normal, swing=swing) + 1e-9


@given(SHARES, SIZES, SHARES, SWINGS, SWINGS)
def test_a_restless_site_is_never_judged_harder(
    share: float, size: float, normal: float, calm: float, restless: float
) -> None:
    calm, restless = sorted((calm, restless))
    assert lower(share, size, normal=normal, swing=restless) <= lower(share, size, normal=normal, swing=calm) + 1e-9


@given(SHARES, SIZES, SWINGS)
def test_nothing_is_left_of_no_share(normal: float, size: float, swing: float) -> None:
    assert lower(0.0, size, normal=normal, swing=swing) == 0


@pytest.mark.parametrize(
    ("share", "size", "normal", "swing", "expected"),
    [
        pytest.param(0.0, 50, 0.0, 0.0, 0.0, id="nothing of nothing"),
        pytest.param(1.0, 50, 0.0, 0.0, 50 / (50 + 1.21), id="all of fifty: Wilson alone, n / (n + z^2)"),
        pytest.param(0.5, 1e12, 0.0, 0.0, 0.5, id="of very many nothing is chance"),
        pytest.param(0.5, 1e12, 0.5, 0.1, 0.5 - 0.1 * 0.99335, id="one swing, on the scale of the arcsine"),
        pytest.param(0.5, 0, 0.5, 0.0, 0.0, id="nothing is known of none"),
    ],
)
def test_by_hand(share: float, size: float, normal: float, swing: float, expected: float) -> None:
    assert lower(share, size, normal=normal, swing=swing, margins=Margins(rare=0)) == pytest.approx(expected, abs=1e-5)


def test_what_happens_once_in_a_long_while_is_left_what_ends_no_band() -> None:
    """A site with swings of 5 points around 25 %: 3.5 of them end no band, and twice as much is believed."""
    settings = Margins(noise=0, swing=0, rare=3.5)
    reach = np.sin(np.arcsin(0.5) + 3.5 * 0.05 / (2 * np.sqrt(0.25 * 0.75))) ** 2 - 0.25
    found: NDArray[np.float64] = np.array([
        lower(0.25 + part * reach, 1e12, normal=0.25, swing=0.05, critical=0.16, half_life=600, margins=settings)
        for part in (0.9, 1.0, 1.5, 2.0)
    ])  # fmt: skip
    excess = found - 0.25
    assert excess[0] < 0.16
    assert excess[1] == pytest.approx(0.16, abs=1e-6)
    assert excess[2] == pytest.approx(1.5 * reach - (reach - 0.16) / 2, abs=1e-6)
    assert excess[3] == pytest.approx(2 * reach, abs=1e-6)


def test_a_small_swing_of_a_site_that_refuses_nothing_does_not_reach_to_anywhere() -> None:
    """Two points of dispersion around nothing explain a few points, and no fifth."""
    for half_life in (600.0, 21600.0):
        assert lower(0.2, 5000, normal=0.0, swing=0.02, half_life=half_life) > 0.16
    assert lower(0.04, 5000, normal=0.0, swing=0.02) < 0.03


def test_many_at_once_are_each_as_alone() -> None:
    chance = np.random.default_rng(11)
    shares, normal, swings = (chance.uniform(0, top, (20, 4, 4)) for top in (1, 0.6, 0.1))
    sizes, critical = chance.uniform(0, 500, (20, 4)), np.full((20, 1, 4), 0.16)
    found = lower_bounds(
        shares, sizes, normal=normal, swings=swings, critical=critical, half_lives=HALF_LIVES, margins=Margins()
    )
    for n, k, s in np.ndindex(20, 4, 4):
        at = (n, k, s)
        alone = lower(
            float(shares[at]), float(sizes[n, k]), normal=float(normal[at]), swing=float(swings[at]),
            half_life=float(HALF_LIVES[k]),
        )  # fmt: skip
        assert found[at] == pytest.approx(alone, abs=1e-12)
