from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from crawlhealth.config import ScoreSettings
from crawlhealth.evaluate import SiteRecord, evaluate
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally
from crawlhealth.verdict import Band, Baseline, Rates, Signal, Unknown, Verdict
from crawlhealth.windows import Windows
from samples import HOUR, NOW, slot

SETTINGS = ScoreSettings()
NORMAL = Baseline(
    hours=336, newest=NOW - 86400, rates=Rates(hard_block=0.0, challenge=0.0, soft_block=0.0, extraction=0.0)
)


def judged(
    *slots: Slot, baseline: Baseline | None = NORMAL, previous: Verdict | None = None, now: float = NOW, seen: int = 1
) -> Verdict:
    return evaluate(record(*slots, now=now, seen=seen), baseline, previous, now, SETTINGS)


def record(*slots: Slot, now: float = NOW, seen: int = 1, settings: ScoreSettings = SETTINGS) -> SiteRecord:
    """What is on record of a site with these slots, as the history would tell it."""
    windows = Windows([window.total_seconds() for window in settings.windows], resolution=1.0)
    windows.add(slots)
    (views,) = windows.read(["books"], now, enough=settings.min_requests)
    return SiteRecord(site="books", windows=views, requests=seen)


def now_(tally: Tally, **what: Any) -> Slot:
    """A slot of this very second, in which nothing has decayed."""
    return slot(NOW, tally, seconds=1, **what)


@pytest.mark.parametrize(
    ("slots", "window"),
    [
        pytest.param([now_(Tally(ok=50))], (600, 50), id="ten minutes, when it holds fifty"),
        pytest.param([now_(Tally(ok=49))], None, id="49 are too few everywhere"),
        pytest.param([slot(NOW - 600, Tally(ok=98), seconds=1)], (1800, 77), id="a half-life ago each counts half"),
        pytest.param([slot(NOW - 1800, Tally(ok=99), seconds=1)], (7200, 83), id="else two hours"),
        pytest.param([slot(NOW - 7200, Tally(ok=99), seconds=1)], (21600, 78), id="else six"),
        pytest.param([slot(NOW - 6 * HOUR, Tally(ok=99), seconds=1)], None, id="of six hours ago 99 are too few"),
        pytest.param(
            [slot(NOW - HOUR, Tally(ok=180), seconds=HOUR)], (1800, 97), id="those of an hour are spread over it"
        ),
        pytest.param([now_(Tally(ok=25), source=source) for source in Source], (600, 50), id="both sources together"),
        pytest.param([now_(Tally(ok=25), route=route) for route in ("a", "b")], (600, 50), id="all routes together"),
        pytest.param([now_(Tally(ok=20, error=30))], (600, 50), id="errors are requests too"),
    ],
)
def test_the_window_is_the_shortest_with_fifty_requests(slots: list[Slot], window: tuple[float, int] | None) -> None:
    verdict = judged(*slots)
    seen = None if verdict.window is None else (verdict.window.seconds, verdict.window.requests)
    assert seen == window
    assert (verdict.score is None) == (window is None)


def test_a_new_site_is_unknown_and_nothing_else() -> None:
    verdict = judged(baseline=None, seen=0)
    assert (verdict.band, verdict.unknown) == (Band.UNKNOWN, Unknown.NOT_ENOUGH_REQUESTS)
    assert (verdict.score, verdict.score_raw, verdict.parser_score, verdict.penalties) == (None, None, None, ())


def test_one_request_triggers_no_band() -> None:
    verdict = judged(slot(NOW - 60, Tally(hard_block=1)), baseline=None)
    assert (verdict.band, verdict.score) == (Band.UNKNOWN, None)


def test_without_a_baseline_the_signals_are_seen_but_not_scored() -> None:
    verdict = judged(slot(NOW - 60, Tally(ok=30, challenge=30)), baseline=None)
    assert (verdict.unknown, verdict.score, verdict.parser_score) == (Unknown.NO_BASELINE, None, None)
    assert verdict.window is not None
    assert verdict.window.rates.challenge == 0.5


def test_the_score_is_the_lower_of_plain_and_cap_and_the_penalties_add_up() -> None:
    verdict = judged(slot(NOW - 60, Tally(ok=66, challenge=34)))
    assert (verdict.score, verdict.score_raw) == (66, 75)
    assert [(r.signal, r.points) for r in verdict.reasons] == [
        (Signal.CHALLENGE, 25.0), (Signal.REFUSED_CAP, pytest.approx(9.0)),
    ]  # fmt: skip
    assert 100 - sum(p.points for p in verdict.penalties) == pytest.approx(66)


def test_a_site_that_refuses_everything_scores_0() -> None:
    assert judged(slot(NOW - 60, Tally(hard_block=100))).score == 0


def test_the_first_score_is_as_it_is_and_the_next_is_smoothed() -> None:
    first = judged(slot(NOW - 60, Tally(ok=100)))
    half = NOW + SETTINGS.smoothing.total_seconds()
    second = judged(slot(half - 60, Tally(hard_block=100)), previous=first, now=half, seen=2)
    assert (first.score, second.score, second.score_raw) == (100, 50, 65)
    back = judged(slot(NOW - 120, Tally(hard_block=100)), previous=second, now=NOW - 60, seen=3)
    assert back.score == 50, "a clock that steps back keeps the score before"


def test_after_a_time_without_a_score_smoothing_begins_anew() -> None:
    first = judged(slot(NOW - 60, Tally(ok=100)))
    silent = judged(previous=first, now=NOW + 60)
    again = judged(slot(NOW + 60, Tally(hard_block=100)), previous=silent, now=NOW + 120, seen=2)
    assert (silent.score, silent.band, again.score) == (None, Band.UNKNOWN, 0)


def test_a_bad_band_is_held_while_there_is_no_score() -> None:
    verdict = judged(slot(NOW - 60, Tally(hard_block=100)))
    for minute in range(1, 5):
        now = NOW + minute * 60
        verdict = judged(slot(now - 60, Tally(hard_block=100)), previous=verdict, now=now, seen=minute + 1)
    assert verdict.band is Band.RESISTING
    quiet = judged(previous=verdict, now=NOW + 86400, seen=5)
    assert (quiet.band, quiet.state.held, quiet.score) == (Band.RESISTING, True, None)


def test_an_evaluation_that_sees_nothing_new_changes_no_band() -> None:
    bad = slot(NOW - 60, Tally(hard_block=100))
    verdict = judged(bad)
    for minute in range(1, 30):
        verdict = judged(bad, previous=verdict, now=NOW + minute * 60)
    assert (verdict.band, verdict.score) == (Band.UNKNOWN, 0)


def test_extraction_is_read_where_enough_pages_were_extracted() -> None:
    """Traffic fills the shortest window and says nothing of extraction; canaries say it over a day."""
    traffic = slot(NOW - 60, Tally(ok=5000))
    canary = [
        slot(NOW - n * HOUR, Tally(ok=12, extractions_ok=6, extractions_failed=6), source=Source.CANARY)
        for n in range(1, 20)
    ]
    verdict = judged(traffic, *canary)
    assert verdict.window is not None
    weighted = sum(12 * 2 ** (-n / 6) for n in range(1, 20))
    assert verdict.window.seconds == 600
    assert verdict.window.extractions == pytest.approx(weighted, abs=1)
    assert verdict.window.rates.extraction == 0.5
    assert (verdict.score, verdict.parser_score) == (100, 50)


@pytest.mark.parametrize(
    ("tally", "normal"),
    [
        pytest.param(Tally(ok=100, extractions_failed=49), 0.0, id="too few extractions"),
        pytest.param(Tally(ok=100, extractions_failed=60), None, id="no normal of extraction"),
    ],
)
def test_the_parser_score_is_absent_while_unknown(tally: Tally, normal: float | None) -> None:
    baseline = replace(NORMAL, rates=structs.replace(NORMAL.rates, extraction=normal))
    assert judged(slot(NOW - 60, tally), baseline=baseline).parser_score is None


def test_a_broken_parser_costs_no_health() -> None:
    verdict = judged(slot(NOW - 60, Tally(ok=100, extractions_failed=100)))
    assert (verdict.score, verdict.parser_score) == (100, 0)


def test_routes_are_told_apart() -> None:
    verdict = judged(slot(NOW - 60, Tally(ok=90, error=10)), slot(NOW - 60, Tally(ok=10, hard_block=30), route="dc-us"))
    assert verdict.route_refused == {"direct": 0.0, "dc-us": 0.75}
    assert verdict.route_error == {"direct": 0.1, "dc-us": 0.0}


def test_windows_and_minimum_are_configuration() -> None:
    settings = replace(SETTINGS, min_requests=5, windows=(timedelta(seconds=8), timedelta(seconds=16)))
    seen = record(slot(NOW - 8, Tally(ok=10), seconds=1), settings=settings)
    verdict = evaluate(seen, NORMAL, None, NOW, settings)
    assert verdict.window is not None
    assert verdict.window.seconds == 8


COUNT = st.one_of(st.just(0), st.integers(0, 200))
LATENCY = st.integers(0, 250)
SITES = ("books", "quotes", "news")
SLOTS = st.lists(
    st.builds(
        slot,
        st.integers(0, 36 * 60).map(lambda minutes: NOW - 60 * minutes),
        st.builds(
            Tally, ok=COUNT, hard_block=COUNT, challenge=COUNT, error=COUNT, extractions_failed=COUNT, bytes=COUNT,
            records_valid=COUNT, credits=st.floats(0, 9), latency=st.dictionaries(LATENCY, COUNT, max_size=3),
        ),
        site=st.sampled_from(SITES),
        route=st.sampled_from(["direct", "dc-us"]),
        source=st.sampled_from(list(Source)),
    ),
    max_size=25,
)  # fmt: skip


@given(slots=SLOTS, steps=st.lists(st.sampled_from([15.0, 600.0, 7200.0]), min_size=1, max_size=4))
def test_judging_many_sites_is_judging_each_to_the_digit(slots: list[Slot], steps: list[float]) -> None:
    windows = Windows([window.total_seconds() for window in SETTINGS.windows], resolution=60.0)
    windows.add(slots)
    names = SITES * 100  # more than are read in one piece
    together: dict[str, Verdict] = {}
    alone: dict[str, Verdict] = {}
    now = NOW
    for seen, step in enumerate(steps):
        now += step
        for site, views in zip(names, windows.read(names, now, enough=SETTINGS.min_requests), strict=True):
            read = SiteRecord(site=site, windows=views, requests=seen)
            before = together.get(site)
            if before is None or before.at < now:
                together[site] = evaluate(read, NORMAL, before, now, SETTINGS)
        for site in SITES:
            (views,) = windows.read([site], now, enough=SETTINGS.min_requests)
            read = SiteRecord(site=site, windows=views, requests=seen)
            alone[site] = evaluate(read, NORMAL, alone.get(site), now, SETTINGS)
        assert together == alone
