"""The simulator draws what it says: rates, volumes, over-dispersion, autocorrelation, effects."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from crawlhealth.backtest.scenarios import ALL, CHALLENGE, HARD, Added, Scenario
from crawlhealth.backtest.simulator import HOUR, PHI, RHO, SD, SHARES, VOLUMES, Population, Season, Simulation
from crawlhealth.stretch import dense

Array = NDArray[np.float64]
HOURS = 26 * 168
SITES = 9
KIND = np.arange(SITES) % len(SHARES)


def drawn(**options: object) -> Array:
    """The counts of the four outcomes by site and hour."""
    given = {"seed": 3, "before": HOURS, "after": 0, **options}
    return dense(Simulation(Population.mixed(SITES), **given).hourly())[..., :4]  # type: ignore[arg-type] # tests name them


@pytest.fixture(scope="module")
def calm() -> Array:
    return drawn()


def shares(counts: Array) -> Array:
    found: Array = counts[..., 1:] / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    return found


def test_all_base_shares_come_at_all_volumes() -> None:
    population = Population.mixed(SITES)
    pairs = zip(map(tuple, population.shares.tolist()), population.volume.tolist(), strict=True)
    assert set(pairs) == {(kind, volume) for kind in SHARES for volume in VOLUMES}
    assert Population.mixed(5, volume=200.0).volume.tolist() == [200.0] * 5


def test_shares_are_those_of_their_kind_on_average(calm: Array) -> None:
    for site, share in enumerate(calm[..., 1:].sum(axis=1) / calm.sum(axis=(1, 2))[:, None]):
        base = np.array(SHARES[KIND[site]])
        assert share == pytest.approx(base * (1 + SD**2 / 2 * (1 - 2 * base)), rel=0.15), (
            "the mean of log-odds that move"
        )


def test_volume_follows_the_day_and_falls_at_weekends(calm: Array) -> None:
    volume = calm.sum(axis=-1).reshape(SITES, -1, 7, 24)
    assert volume[:, :, :5].mean(axis=(1, 2, 3)) == pytest.approx(np.repeat(VOLUMES, 3), rel=0.02)
    assert volume[:, :, 5:].mean(axis=(1, 2, 3)) == pytest.approx(0.7 * np.repeat(VOLUMES, 3), rel=0.02)
    day = volume.mean(axis=(0, 1, 2))
    assert day.argmax() == 14
    assert day.argmin() == 2
    assert day.max() / day.min() == pytest.approx(3.0, rel=0.05)


@pytest.mark.parametrize("signal", range(3))
def test_hours_vary_beyond_chance_by_the_intraclass_correlation_and_the_walk(calm: Array, signal: int) -> None:
    for site in (6, 7, 8):  # 2,000 requests an hour: chance is small
        base = SHARES[KIND[site]][signal]
        chance = base * (1 - base) * np.mean(1 / calm[site].sum(axis=-1))
        walk = (base * (1 - base) * SD) ** 2
        variance = shares(calm)[site, :, signal].var() - chance
        assert variance == pytest.approx(base * (1 - base) * RHO + walk, rel=0.25)


def test_the_walk_lasts_from_hour_to_hour(calm: Array) -> None:
    values = shares(calm)[8, :, CHALLENGE]
    base = SHARES[KIND[8]][CHALLENGE]
    covariances = [
        np.mean((values[lag:] - values.mean()) * (values[: len(values) - lag] - values.mean())) for lag in (1, 2, 5, 10)
    ]
    expected = (base * (1 - base) * SD) ** 2 * PHI ** np.array([1, 2, 5, 10])
    assert covariances == pytest.approx(expected, rel=0.35), "over-dispersion is drawn anew every hour, the walk is not"
    assert abs(np.mean((values[200:] - values.mean()) * (values[:-200] - values.mean()))) < expected[0] / 5


def test_the_same_seed_draws_the_same_and_another_one_does_not(calm: Array) -> None:
    assert np.array_equal(calm, drawn())
    assert not np.array_equal(calm, drawn(seed=4))


@pytest.mark.parametrize(
    ("added", "risen"),
    [
        pytest.param(Added(at_once=0.2), [0, 0.2, 0], id="20 points more challenges at once"),
        pytest.param(Added(column=HARD, at_once=0.1), [0.1, 0, 0], id="10 points more hard blocks"),
        pytest.param(Added(an_hour=0.3 / 2000), [0, 0.15, 0], id="a rise is half as high on average"),
        pytest.param(Added(at_once=0.2, begins=1000), [0, 0.1, 0], id="it may begin later"),
        pytest.param(Added(at_once=0.2, ends=500), [0, 0.05, 0], id="it may end"),
    ],
)
def test_an_effect_adds_percentage_points_from_its_beginning_on(added: Added, risen: list[float]) -> None:
    scenario = Scenario(name="one", hours=2000, added=(added,))
    counts = drawn(before=2000, after=2000, effect=scenario.effect)
    for site in (6, 7):
        before, after = (shares(part).mean(axis=0) for part in (counts[site, :2000], counts[site, 2000:]))
        assert after - before == pytest.approx(risen, abs=0.012)


def test_who_refuses_everything_serves_nothing() -> None:
    scenario = Scenario(name="all", hours=100, added=(Added(column=HARD, at_once=ALL, most=ALL),))
    counts = drawn(before=100, after=100, effect=scenario.effect)
    assert shares(counts[:, 100:])[..., HARD].mean() > 0.999
    assert counts[:, :100, 0].mean() > counts[:, :100, 1:].sum(axis=-1).mean()


def test_a_season_moves_the_log_odds_of_challenges_over_the_day_and_at_weekends() -> None:
    values = shares(drawn(season=Season(hourly=1.0, weekend=1.0)))[7:].reshape(2, -1, 7, 24, 3).mean(axis=1)
    odds = np.log(values[..., CHALLENGE] / (1 - values[..., CHALLENGE]))
    assert (odds[:, 5:] - odds[:, :5].mean(axis=1, keepdims=True)).mean(axis=(1, 2)) == pytest.approx(
        [1.0] * 2, abs=0.2
    )
    day = odds[:, :5].mean(axis=1)
    assert (day[:, 6] - day[:, 18]) == pytest.approx([2.0] * 2, abs=0.3)
    assert values[:, :5, :, HARD].mean(axis=(1, 2)) == pytest.approx([share[HARD] for share in SHARES[1:]], rel=0.2)


def test_minutes_are_those_of_their_hour() -> None:
    simulation = Simulation(Population.mixed(SITES), seed=3, before=100, after=0)
    pieces = list(simulation.minutes(40, 60))
    assert [(piece.start, piece.seconds, piece.steps) for piece in pieces] == [
        (h * HOUR, 60.0, 60) for h in range(40, 60)
    ]
    minutes = np.array([dense(piece)[..., :4].sum(axis=1) for piece in pieces])
    hours = dense(Simulation(Population.mixed(SITES), seed=3, before=100, after=0).hourly())[:, 40:60, :4].transpose(
        1, 0, 2
    )
    assert minutes[:, 6:].sum(axis=-1) == pytest.approx(hours[:, 6:].sum(axis=-1), rel=0.2)
    assert shares(minutes)[:, 6:] == pytest.approx(shares(hours)[:, 6:], abs=0.06), "the same shares, drawn again"
