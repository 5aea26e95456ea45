"""The latency signal over a site's past, replayed: what the alert on it tells, and what it does not.

The alert is what ships: latency costs a fifth of its weight for a quarter of an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crawlhealth.bands import NORMAL, RESISTING, UNKNOWN
from crawlhealth.dispersion import spread_and_lasting
from crawlhealth.model import Observation
from crawlhealth.outcome import Outcome, Reason, Source
from crawlhealth.replay import Replay
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.stats import BOUNDS
from crawlhealth.stretch import Stretch
from crawlhealth.tally import Slot, Tally
from panels import Row, normal, panel, rates, score_of

Array = NDArray[np.float64]
SETTINGS = ScoreSettings()
LEAST = SETTINGS.weights.latency / 5
HOUR, STEP = 3600, 900
EACH = HOUR // STEP
DAY = 24
SIGMA = 0.6
"""Of the logarithm of latency within an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What an hour brings through a route: the 95th percentile in seconds, and requests that were served and refused.

    Refusals are answered in 50 ms.
    """

    p95: float = 0.4
    ok: int = 240
    refused: int = 0


Past = Sequence[Mapping[str, Traffic]]
"""What each hour brings, by route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was found of a site, step by step."""

    points: Array
    now: Array
    score: Array
    raw: Array
    band: NDArray[np.int8]

    @property
    def alert(self) -> NDArray[np.bool_]:
        """Whether the alert fires in each hour."""
        calm = np.where(self.points >= LEAST, -1, np.arange(len(self.points)))
        firing = np.arange(len(self.points)) - np.maximum.accumulate(calm) > 1
        return np.asarray(firing.reshape(-1, EACH).any(axis=1))


def calm(hours: int, *, seed: int = 1, swing: float = 0.08, route: str = "direct") -> list[dict[str, Traffic]]:
    chance = np.random.default_rng(seed)
    return [{route: Traffic(p95=0.4 * float(np.exp(swing * chance.normal())))} for _ in range(hours)]


def slower(past: Past, factor: float) -> list[dict[str, Traffic]]:
    return [
        {route: Traffic(p95=one.p95 * factor, ok=one.ok, refused=one.refused) for route, one in hour.items()}
        for hour in past
    ]


def told(past: Past, *, seed: int = 2) -> Told:
    """What is judged of one site."""
    return told_of([past], seed=seed)[0]


def told_of(pasts: Sequence[Past], *, seed: int = 2) -> list[Told]:
    """The replay of the pasts of some sites, from their slots to what is judged."""
    chance = np.random.default_rng(seed)
    slots = [
        Slot(
            site=f"shop-{site:02}", route=route, source=Source.TRAFFIC, start=hour * HOUR + part * STEP, seconds=STEP,
            tally=tally(one, chance),
        )
        for site, past in enumerate(pasts)
        for hour, routes in enumerate(past)
        for route, one in routes.items()
        for part in range(EACH)
    ]  # fmt: skip
    stretch = Stretch.of(slots, start=0, seconds=STEP, steps=max(map(len, pasts)) * EACH)
    seen = [
        (one.scored.points[:, 3], one.scored.now[:, 4], one.score, one.scored.raw, one.states.band)
        for one in Replay(stretch.keys, SETTINGS, seconds=STEP).steps(stretch)
    ]
    points, now, score, raw, band = np.array(seen, dtype=np.float64).transpose(1, 2, 0)
    return [
        Told(points=points[site], now=now[site], score=score[site], raw=raw[site], band=band[site].astype(np.int8))
        for site in range(len(pasts))
    ]


def tally(one: Traffic, chance: np.random.Generator) -> Tally:
    seconds = one.p95 * np.exp(SIGMA * (chance.normal(size=one.ok // EACH) - 1.6449))
    buckets, counts = np.unique(np.searchsorted(BOUNDS, seconds), return_counts=True)
    found = Tally(ok=one.ok // EACH, latency=dict(zip(buckets.tolist(), counts.tolist(), strict=True)))
    if one.refused:
        found.add(
            Observation(
                site="shop", route="direct", source=Source.TRAFFIC, outcome=Outcome.HARD_BLOCK, at=0.0, seconds=0.05,
                reason=Reason.HTTP_403, count=one.refused // EACH,
            )
        )  # fmt: skip
    return found


def test_tripled_latency_is_told_and_ends_no_band() -> None:
    usual = calm(11 * DAY)
    found = told([*usual[: 9 * DAY], *slower(usual[9 * DAY : 10 * DAY], 3), *usual[10 * DAY :]])
    begin = 9 * DAY
    assert not found.alert[:begin].any()
    assert found.alert[begin + 2 : begin + DAY].all()
    assert found.points[(begin + 3) * EACH : (begin + DAY) * EACH].min() > 9
    assert not found.alert[begin + DAY + 18 :].any(), "and ends when the widest window has forgotten it"
    assert set(found.band.tolist()) <= {NORMAL, UNKNOWN}
    assert np.nanmin(found.score) >= 85


def test_twice_as_slow_is_told_of_a_steady_site() -> None:
    usual = calm(9 * DAY)
    found = told([*usual[: 8 * DAY], *slower(usual[8 * DAY :], 2)])
    assert not found.alert[: 8 * DAY].any()
    assert found.alert[8 * DAY + 4 :].all()


def test_a_rise_does_not_hide_the_next() -> None:
    """By a standard deviation of all hours, the three that were thirty times as slow would cover what follows."""
    usual = calm(13 * DAY)
    first, second = 8 * DAY, 12 * DAY
    found = told(
        [*usual[:first], *slower(usual[first : first + 3], 30), *usual[first + 3 : second],
         *slower(usual[second : second + 6], 2), *usual[second + 6 :]]
    )  # fmt: skip
    assert found.alert[first : first + 6].any()
    assert found.alert[second : second + 8].any()


def independent(chance: np.random.Generator, hours: int) -> Array:
    return np.asarray(np.exp(0.3 * chance.normal(size=hours)))


def wandering(chance: np.random.Generator, hours: int) -> Array:
    walk = 0.3 * chance.normal(size=hours)
    for hour in range(1, hours):
        walk[hour] = 0.9 * walk[hour - 1] + np.sqrt(1 - 0.9**2) * walk[hour]
    return np.exp(walk)


def by_day(chance: np.random.Generator, hours: int) -> Array:
    return np.asarray(1.6 ** np.sin(np.arange(hours) / 24 * 2 * np.pi) * np.exp(0.1 * chance.normal(size=hours)))


def by_batches(chance: np.random.Generator, hours: int) -> Array:
    """One hour in twenty is twice as slow."""
    return np.asarray(np.where(chance.random(hours) < 0.05, 2.0, 1.0) * np.exp(0.08 * chance.normal(size=hours)))


def nightly(chance: np.random.Generator, hours: int) -> Array:
    """The same hour of every day is two and a half times as slow."""
    return np.asarray(np.where(np.arange(hours) % DAY == 3, 2.5, 1.0) * np.exp(0.08 * chance.normal(size=hours)))


def once_a_day(chance: np.random.Generator, hours: int) -> Array:
    """There is traffic in one hour of the day only."""
    return np.asarray(np.where(np.arange(hours) % DAY == 3, np.exp(0.3 * chance.normal(size=hours)), np.nan))


RESTLESS = [independent, wandering, by_day, by_batches, nightly, once_a_day]
DAYS, LEARNT, SITES = 18, 4, 4


@pytest.fixture(scope="module")
def restless() -> dict[str, list[Told]]:
    """All restless sites, replayed together."""
    pasts = [
        [{} if np.isnan(swing) else {"direct": Traffic(p95=0.4 * swing)} for swing in swings]
        for pattern in RESTLESS
        for swings in (pattern(np.random.default_rng(seed), DAYS * DAY).tolist() for seed in range(SITES))
    ]
    found = told_of(pasts)
    return {pattern.__name__: found[SITES * n : SITES * (n + 1)] for n, pattern in enumerate(RESTLESS)}


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        pytest.param("independent", 1.0, id="hours that vary by a third"),
        pytest.param("wandering", 1.0, id="a slow walk"),
        pytest.param("by_day", 0.25, id="evenings that are slow"),
        pytest.param("by_batches", 1.5, id="eight slow hours a week, at any time"),
        pytest.param("nightly", 0.5, id="a slow hour every night"),
        pytest.param("once_a_day", 1.0, id="a burst a day"),
    ],
)
def test_restless_latency_is_seldom_told(pattern: str, most: float, restless: dict[str, list[Told]]) -> None:
    """So many times a week at most."""
    times = [np.diff(site.alert[LEARNT * DAY :].astype(int), prepend=0) > 0 for site in restless[pattern]]
    assert np.mean(times) * DAY * 7 <= most


def test_a_ban_with_fast_refusals_is_neither_better_nor_worse_latency() -> None:
    usual = calm(9 * DAY)
    banned = [{"direct": Traffic(p95=one["direct"].p95, ok=60, refused=2400)} for one in usual[8 * DAY :]]
    found = told([*usual[: 8 * DAY], *banned])
    ban = slice(8 * DAY * EACH, None)
    assert found.points[ban].max() < 1
    assert 0.25 < found.now[ban].min() < found.now[ban].max() < 0.65, "measured on few that were served"
    assert found.band[-1] == RESISTING, "it is told by what it is"


def test_of_a_site_that_serves_nothing_latency_says_nothing() -> None:
    usual = calm(8 * DAY)
    found = told([*usual, *[{"direct": Traffic(ok=0, refused=240)}] * DAY])
    assert found.points[8 * DAY * EACH :].max() == 0
    assert found.band[-1] == RESISTING


def test_traffic_that_moves_to_a_slower_route_moves_nothing() -> None:
    def mixed(near: int, far: int, hours: int, seed: int) -> list[dict[str, Traffic]]:
        return [
            {"direct": Traffic(p95=a["direct"].p95, ok=near), "home": Traffic(p95=b["home"].p95 * 5, ok=far)}
            for a, b in zip(calm(hours, seed=seed), calm(hours, seed=seed + 1, route="home"), strict=True)
        ]

    before, after = mixed(900, 120, 8 * DAY, 3), mixed(120, 900, DAY, 5)
    found = told([*before, *after])
    moved = slice((8 * DAY + 2) * EACH, None)
    assert np.nanmax(found.raw[moved]) < 90, "the plain formula takes the mix for a slowdown"
    assert found.points[moved].max() < 1
    assert np.nanmin(found.score[moved]) >= 99
    assert told([*before, *slower(after, 3)]).alert[-DAY + 3 :].all(), "and a slowdown is one whatever the mix"


@given(
    usual=st.floats(0.001, 400),
    share=st.floats(0, 1),
    noise=st.floats(0, 1),
    swing=st.floats(0, 3),
    ok=st.integers(50, 100_000),
)
def test_latency_at_or_under_its_normal_costs_nothing(
    usual: float, share: float, noise: float, swing: float, ok: int
) -> None:
    now = max(0.001, usual * share)
    rows = [Row(counts=[ok, 0, 0, 0, 0], p95=now, low=max(0.001, now * noise))]
    found = score_of(panel({"shop": rows}), normal(rates(latency=usual), swing=swing))
    assert found.points[0, 3] == 0
    assert found.score[0] == 100


@pytest.mark.parametrize(
    ("change", "widens"),
    [
        pytest.param(lambda logs: np.where(np.arange(336) == 100, 4.0, logs), False, id="one terrible hour"),
        pytest.param(lambda logs: np.where(np.arange(336) % 3 == 0, logs - 1.0, logs), False, id="hours that are fast"),
        pytest.param(lambda logs: np.where(np.arange(336) % 10 == 0, logs + 1.0, logs), True, id="one hour in ten"),
    ],
)
def test_how_far_latency_rises_of_itself(change: Callable[[Array], Array], widens: bool) -> None:
    logs = np.random.default_rng(4).normal(0, 0.1, 336)
    past, every = np.zeros((1, 336, 12)), np.ones((1, 336), dtype=np.bool_)
    past[..., 0] = 200
    usual, changed = (
        float(spread_and_lasting(past, np.exp(one)[None], every, least=50)[0][0, 4]) for one in (logs, change(logs))
    )
    assert usual == pytest.approx(0.1, rel=0.15)
    assert (changed > 2 * usual) == widens
