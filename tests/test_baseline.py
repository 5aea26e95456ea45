"""What is a site's own normal, and what must never become it."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from crawlhealth import marks
from crawlhealth.baseline import Hours, learn
from crawlhealth.outcome import Source
from crawlhealth.verdict import Accepted, Baseline
from pasts import BOOKS, REACH, SETTINGS, Counts, certain, counts, hours, learnt, steady
from samples import DAY, HOUR, NOW

pytestmark = pytest.mark.filterwarnings("error")


def test_it_is_the_median_of_the_hourly_rates_and_not_their_mean() -> None:
    past = counts(REACH, ok=100)
    past[-300:-150] = counts(1, challenge=100)  # a past block of six days that nobody had judged
    found = certain(learnt(hours(past)))
    assert found.rates.challenge == 0
    assert found.hours == 14 * 24


def test_a_level_is_that_of_the_hours_of_all_routes_and_sources_together() -> None:
    strata = {
        ("books", "direct", Source.TRAFFIC): counts(REACH, ok=80, hard_block=20),
        ("books", "dc-us", Source.TRAFFIC): counts(REACH, ok=100),
        ("books", "direct", Source.CANARY): counts(REACH, ok=12),
    }
    found = certain(learnt(hours(strata)))
    assert found.rates.hard_block == pytest.approx(20 / 212)
    assert {(own.route, own.source): own.rates.hard_block for own in found.strata} == {
        ("direct", "traffic"): pytest.approx(0.2), ("dc-us", "traffic"): 0.0, ("direct", "canary"): 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        pytest.param(counts(REACH), None, id="nothing to learn from"),
        pytest.param(steady(at=slice(-47, -24)), None, id="23 blocks are too few"),
        pytest.param(steady(at=slice(-48, -24)), 24, id="24 blocks are enough"),
        pytest.param(steady(at=slice(-24 * 4, -24 * 3)), 24, id="also if nothing came since"),
        pytest.param(steady(at=slice(-24, None)), None, id="the last 6 hours teach nothing, so a day is too little"),
        pytest.param(steady(at=slice(-30, None)), 24, id="under three days only the last 6 hours are left out"),
        pytest.param(steady(at=slice(-71, None)), 65, id="of 71 hours as well"),
        pytest.param(steady(at=slice(-72, None)), 48, id="from three days on the last day is left out"),
        pytest.param(steady(), 14 * 24, id="no more than fourteen days"),
        pytest.param(steady(requests=10), 14 * 24, id="sparse hours are put together"),
        pytest.param(steady(at=slice(12, None, 24), requests=80), 14, id="bursts once a day: 14 blocks on 14 days"),
        pytest.param(steady(at=slice(-8 * 24 + 12, None, 24), requests=80), 7, id="7 bursts on 7 days"),
        pytest.param(steady(at=slice(-7 * 24 + 12, None, 24), requests=80), None, id="6 bursts are too few"),
        pytest.param(steady(at=slice(12, None, 24), requests=49), 14, id="of two bursts each block"),
        pytest.param(steady(requests=1.4), None, id="under 500 requests are too few"),
        pytest.param(steady(ok=0.0, challenge=0.0, error=100), None, id="errors are no answer"),
    ],
)
def test_how_much_is_enough(past: Counts, expected: int | None) -> None:
    found = learnt(hours(past))
    assert (None if found is None else found.hours) == expected


def test_the_newest_hour_is_the_end_of_the_last_that_counts() -> None:
    assert certain(learnt(hours(steady()))).newest == NOW - DAY
    assert certain(learnt(hours(steady(at=slice(-200, -100))))).newest == NOW - 100 * HOUR
    behind = certain(learnt(hours(steady(), end=NOW - 3 * HOUR)))
    assert behind.newest == NOW - DAY, "a history that ends earlier is left out no longer"


@pytest.mark.parametrize(
    ("mark", "left_out"),
    [
        pytest.param(marks.NONE, 0, id="no verdict"),
        pytest.param(marks.UNKNOWN, 0, id="no score"),
        pytest.param(100, 0, id="a good score"),
        pytest.param(92, 0, id="92"),
        pytest.param(91, 10, id="a score under 92"),
        pytest.param(0, 10, id="a score of 0 that was no band yet"),
        pytest.param(marks.RESTING, 10, id="planned work"),
        pytest.param(marks.OUTSIDE, 10 + 24 + 2, id="a bad band, the 24 hours after it and the two before it"),
    ],
)
def test_hours_that_teach_nothing(mark: int, left_out: int) -> None:
    judged = np.full(REACH, 100)
    judged[200:210] = mark
    assert certain(learnt(hours(steady(), judged={"books": judged}))).hours == 14 * 24 - left_out


def test_an_incident_never_becomes_the_normal() -> None:
    """Of a site that has been challenged for a month nothing is left to learn from: the normal before is kept."""
    before = certain(learnt(hours(steady())))
    worse = counts(REACH, ok=50, challenge=50)
    assert learnt(hours(worse, judged={"books": marks.OUTSIDE}), known=before) is before
    assert learnt(hours(worse, judged={"books": 60}), known=before) is before
    assert learnt(hours(worse, judged={"books": marks.OUTSIDE})) is None


@pytest.mark.parametrize(("first", "proved"), [(40, True), (0, False)], ids=["of two weeks", "of more than them"])
def test_what_comes_back_every_day_teaches_a_season_in_the_first_weeks_alone(first: int, proved: bool) -> None:
    """Later a bad hour teaches nothing, or whatever refuses every night would become the normal."""
    peak = np.arange(REACH) % 24 < 6
    past, judged = counts(REACH, ok=95, challenge=5), np.where(peak, 70, 100)
    past[peak] = counts(1, ok=40, challenge=60)
    past[:first] = 0.0
    found = certain(learnt(hours(past, judged={"books": judged})))
    assert bool(found.season) is proved
    assert found.rates.challenge == pytest.approx(0.05, abs=0.12), "the level is that of good hours"


def test_what_is_left_after_an_incident_is_learnt_from() -> None:
    past, judged = steady(), np.full(REACH, 100)
    past[100:300] = counts(1, challenge=100)
    judged[100:300] = marks.OUTSIDE
    found = certain(learnt(hours(past, judged={"books": judged})))
    assert found.rates.challenge == pytest.approx(0.02)
    assert found.hours == 14 * 24 - 200 - 24 - 2


def test_the_first_hours_of_an_incident_are_no_dispersion() -> None:
    """A site that never refuses anything, and then a fifth: its score falls over hours before the band begins."""
    past, judged = steady(), np.full(REACH, 100)
    past[200:209] = counts(1, ok=80, challenge=20)
    judged[200:209] = [95, 90, 88, 86, 84, 82, 81, marks.OUTSIDE, marks.OUTSIDE]
    spread = certain(learnt(hours(past, judged={"books": judged}))).spread
    assert spread is not None
    assert spread.challenge == 0
    judged[200:] = 85  # no incident came of it: this is how the site is
    spread = certain(learnt(hours(past, judged={"books": judged}))).spread
    assert spread is not None
    assert spread.challenge > 0.02


def test_a_first_normal_that_serves_less_than_half_waits_for_a_person() -> None:
    refusing = counts(REACH, ok=3, hard_block=97)
    first = certain(learnt(hours(refusing)))
    assert first.refused
    assert certain(learnt(hours(refusing), known=first)).refused, "it waits for as long as it takes"
    served = certain(learnt(hours(steady())))
    assert not certain(learnt(hours(refusing), known=served)).refused, "one that is no first one"
    person = Accepted(site="books", at=NOW, since=NOW - 14 * DAY)
    taken = certain(learnt(hours(refusing), known=first, accepted=person))
    assert (taken.refused, taken.accepted_at) == (False, NOW)
    assert taken.rates.hard_block == pytest.approx(0.97)
    assert not certain(learnt(hours(counts(REACH, ok=50, soft_block=50)))).refused, "half is served"


def test_latency_is_the_median_of_hourly_p95_and_extraction_the_failed_share() -> None:
    past = steady(extractions_ok=90.0, extractions_failed=10.0)
    slow = np.where(np.arange(REACH) % 3 == 0, 9.0, 0.5)
    found = certain(learnt(hours(past, p95={BOOKS: slow})))
    assert found.rates.latency_p95 == pytest.approx(0.5)
    assert found.rates.extraction == pytest.approx(0.1)
    assert certain(learnt(hours(steady()))).rates.latency_p95 is None
    assert certain(learnt(hours(steady()))).rates.extraction is None


def test_the_latency_of_several_routes_is_each_its_own() -> None:
    direct, us = ("books", "direct", Source.TRAFFIC), ("books", "dc-us", Source.TRAFFIC)
    past = hours({direct: steady(), us: steady()}, p95={direct: 4.0, us: 1.0})
    found = certain(learnt(past))
    assert {own.route: own.rates.latency_p95 for own in found.strata} == {
        "direct": pytest.approx(4.0), "dc-us": pytest.approx(1.0),
    }  # fmt: skip
    assert found.rates.latency_p95 == pytest.approx(2.0)


def test_a_stratum_with_too_little_has_no_normal_of_its_own() -> None:
    strata = {BOOKS: steady(), ("books", "dc-us", Source.TRAFFIC): steady(at=slice(-60, None), requests=20)}
    assert [own.route for own in certain(learnt(hours(strata))).strata] == ["direct"]


def test_the_cost_of_a_record_is_that_of_traffic() -> None:
    strata = {
        BOOKS: steady(records_valid=50.0, bytes=1e6, credits=3.0, retries=5.0),
        ("books", "direct", Source.CANARY): steady(records_valid=1e6),
    }
    cost = certain(learnt(hours(strata))).cost
    assert cost is not None
    assert [cost.requests, cost.bytes, cost.credits, cost.retries] == pytest.approx([2.0, 2e4, 0.06, 0.1])


def test_the_plain_normal_is_the_ratio_of_summed_counts_errors_and_all() -> None:
    past = counts(REACH, ok=90, challenge=10)
    past[::2] = counts(1, ok=500, challenge=300, error=200)
    found = certain(learnt(hours(past, judged={"books": marks.OUTSIDE}), robust=False))
    assert found.rates.challenge == pytest.approx(310 / 1100), "whatever the verdicts were"
    assert (found.strata, found.refused) == ((), False)


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        pytest.param(steady(at=slice(-47, -24)), None, id="23 hours are too few"),
        pytest.param(steady(at=slice(-48, -24)), 24, id="24 hours are enough"),
        pytest.param(steady(at=slice(-24, None)), None, id="the last day teaches nothing"),
        pytest.param(steady(), 14 * 24, id="no more than fourteen days"),
    ],
)
def test_the_hours_of_the_plain_normal(past: Counts, expected: int | None) -> None:
    found = learnt(hours(past), robust=False)
    assert (None if found is None else found.hours) == expected


def test_hours_of_a_wrong_clock_teach_nothing() -> None:
    assert learnt(hours(steady(), end=NOW + 30 * DAY)) is None


def test_many_sites_are_each_learnt_as_alone() -> None:
    chance = np.random.default_rng(5)
    strata = {}
    for site in range(12):
        for route in ("direct", "dc-us")[: 1 + site % 2]:
            volume = chance.choice([3, 30, 300])
            past = counts(REACH)
            past[:, :5] = chance.poisson(volume * chance.dirichlet([80, 3, 6, 2, 5]), (REACH, 5))
            past[: chance.integers(0, REACH)] = 0.0
            strata[f"site-{site}", route, Source.TRAFFIC] = past
    slow = {key: np.exp(chance.normal(0, 0.3, REACH)) for key in strata}
    judged = {f"site-{n}": np.where(chance.uniform(size=REACH) < 0.02, marks.OUTSIDE, 97) for n in range(12)}
    known: list[Baseline | None] = [certain(learnt(hours(steady())))] * 12
    together = learn(hours(strata, p95=slow, judged=judged), SETTINGS, now=NOW, known=known)
    assert sum(one is known[0] for one in together) < 8
    for number, found in enumerate(together):
        name = f"site-{number}"
        own = {key: past for key, past in strata.items() if key[0] == name}
        (alone,) = learn(hours(own, p95=slow, judged=judged), SETTINGS, now=NOW, known=known[:1])
        assert numbers(found) == pytest.approx(numbers(alone), nan_ok=True)


def numbers(of: Baseline | None) -> list[float]:
    """Everything in a baseline that was learnt."""
    one = certain(of)
    found = [one.hours, one.newest]
    for part in (one.rates, one.spread, one.lasting, *(own.rates for own in one.strata)):
        assert part is not None
        found += [float("nan") if value is None else value for value in structs.astuple(part)]
    return found


def test_sites_without_rows_or_hours_have_no_normal_and_do_no_harm() -> None:
    nothing = Hours(
        sites=("books", "quotes"), keys=[], owner=np.zeros(0, dtype=np.intp), counts=np.zeros((0, REACH, 12)),
        p95=np.zeros((0, REACH)), marks=np.full((2, REACH), marks.NONE, dtype=np.uint8), end=NOW,
    )  # fmt: skip
    assert learn(nothing, SETTINGS, now=NOW) == [None, None]
    assert learn(hours(counts(0)), SETTINGS, now=NOW) == [None]
    beside = Hours(
        sites=("books", "quotes"), keys=[("direct", Source.TRAFFIC)], owner=np.array([1]), counts=steady()[None],
        p95=np.full((1, REACH), np.nan), marks=np.full((2, REACH), marks.NONE, dtype=np.uint8), end=NOW,
    )  # fmt: skip
    first, second = learn(beside, SETTINGS, now=NOW)
    assert first is None
    assert certain(second).hours == 14 * 24
