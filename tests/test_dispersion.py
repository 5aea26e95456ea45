"""How much a site varies of itself: what is put into simulated hours is found again, and chance is none of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crawlhealth.dispersion import spread_and_lasting

pytestmark = pytest.mark.filterwarnings("error")

Array = NDArray[np.float64]
HOURS = 336
MANY = 60
"""Series of each kind: their mean is what is compared."""


def drawn(shares: Array, volume: float, seed: int = 3) -> Array:
    """Hours with these shares of challenges."""
    chance = np.random.default_rng(seed)
    total = chance.poisson(volume, shares.shape)
    past = np.zeros((*shares.shape, 12))
    past[..., 2] = chance.binomial(total, shares)
    past[..., 0] = total - past[..., 2]
    return past


def spreads(past: Array, p95: Array | None = None, usable: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
    slow = np.full(past.shape[:2], np.nan) if p95 is None else p95
    every = np.ones(past.shape[:2], dtype=np.bool_) if usable is None else usable
    return spread_and_lasting(past, slow, every, least=50)


def beta(level: float, rho: float, shape: tuple[int, ...], seed: int = 4) -> Array:
    chance, size = np.random.default_rng(seed), (1 - rho) / rho
    return chance.beta(level * size, (1 - level) * size, shape)


@pytest.mark.parametrize("volume", [60, 200, 2000])
@pytest.mark.parametrize("level", [0.02, 0.1, 0.5])
def test_chance_is_no_dispersion(volume: float, level: float) -> None:
    spread, lasting = spreads(drawn(np.full((MANY, HOURS), level), volume))
    chance = np.sqrt(level * (1 - level) / volume)
    assert np.sqrt(np.mean(spread[:, 1] ** 2)) < 0.3 * chance
    assert np.all(lasting <= spread + 1e-12)


@pytest.mark.parametrize("volume", [60, 200, 2000])
@pytest.mark.parametrize(("level", "rho"), [(0.08, 0.02), (0.25, 0.02), (0.1, 0.14)])
def test_over_dispersion_is_found_again_whatever_the_volume(volume: float, level: float, rho: float) -> None:
    """Beta-binomial hours: the variance of the rate beyond chance is rho p (1 - p)."""
    spread, lasting = spreads(drawn(beta(level, rho, (MANY, HOURS)), volume))
    expected = np.sqrt(rho * level * (1 - level))
    for column in (1, 3):
        assert np.sqrt(np.mean(spread[:, column] ** 2)) == pytest.approx(expected, rel=0.1)
    assert np.sqrt(np.mean(lasting[:, 1] ** 2)) < 0.5 * expected, "hours that vary each for itself leave little"
    assert spread[:, [0, 2]].max() < 1e-9


def test_what_stays_for_hours_lasts() -> None:
    slow = np.repeat(beta(0.2, 0.05, (MANY, HOURS // 24)), 24, axis=1)  # one level a day
    spread, lasting = spreads(drawn(slow, 500))
    assert lasting[:, 1].mean() > 0.9 * spread[:, 1].mean() > 0.06


def test_a_slow_drift_is_no_dispersion() -> None:
    """Nor may it be: a site that refuses ever more would be forgiven ever more."""
    spread, _ = spreads(drawn(np.tile(np.linspace(0.02, 0.3, HOURS), (MANY, 1)), 2000))
    assert np.sqrt(np.mean(spread[:, 1] ** 2)) < 0.01


def test_of_latency_it_is_that_of_the_logarithm() -> None:
    chance = np.random.default_rng(6)
    slow = np.exp(chance.normal(0.5, 0.3, (MANY, HOURS)))
    spread, lasting = spreads(drawn(np.zeros((MANY, HOURS)), 200), slow)
    assert spread[:, 4].mean() == pytest.approx(0.3, rel=0.05)
    assert lasting[:, 4].tolist() == spread[:, 4].tolist(), "a wide window follows its slow hours"
    assert spread[:, :4].max() == 0


def test_hours_that_are_not_usable_do_not_count() -> None:
    level = np.full((MANY, HOURS), 0.1)
    level[:, 100:150] = 0.9
    usable = level == 0.1
    spread, _ = spreads(drawn(level, 200), usable=usable)
    assert spread[:, 1].max() < 0.02
    assert spreads(drawn(level, 200))[0][:, 1].min() > 0.2


def test_of_too_few_blocks_there_is_none() -> None:
    past = drawn(np.full((2, HOURS), 0.5), 200)
    past[:, 2:] = 0.0
    spread, lasting = spreads(past)
    assert not spread.any()
    assert not lasting.any()


COUNT = st.sampled_from([0, 0, 1, 30, 50, 1000])
HOUR = st.tuples(COUNT, COUNT, COUNT, COUNT, st.sampled_from([np.nan, 0.001, 0.5, 464.0]), st.booleans())


@given(st.lists(HOUR, max_size=30))
def test_whatever_comes_it_is_a_number_and_what_lasts_is_part_of_it(
    past: list[tuple[float, float, float, float, float, bool]],
) -> None:
    values = np.zeros((1, len(past), 12))
    for hour, (ok, hard, challenge, soft, _, _) in enumerate(past):
        values[0, hour, :4] = ok, hard, challenge, soft
    slow = np.array([[one[4] for one in past]], dtype=np.float64).reshape(1, -1)
    usable = np.array([[one[5] for one in past]], dtype=np.bool_).reshape(1, -1)
    spread, lasting = spreads(values, slow, usable)
    assert np.isfinite(spread).all()
    assert np.all(lasting >= 0)
    assert np.all(lasting <= spread + 1e-9)
