"""From slots to a verdict, by both methods: what is read, what it costs, and what is left for the next evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, NamedTuple

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from crawlhealth.bands import States
from crawlhealth.evaluate import Before, evaluate
from crawlhealth.normals import Table
from crawlhealth.outcome import Source
from crawlhealth.phases import DAY_HOURS, EFFECTS
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.season import packed
from crawlhealth.tally import Slot, Tally
from crawlhealth.verdict import Band, BandState, Baseline, Rates, Signal, Spread, StratumNormal, Unknown, Verdict
from crawlhealth.verdicts import verdicts
from crawlhealth.windows import Windows
from panels import rates
from samples import HOUR, NOW, slot

ROBUST: Final = ScoreSettings()
PLAIN: Final = replace(ROBUST, method="plain")
NORMAL = Baseline(
    hours=336, newest=NOW - 86400, rates=Rates(hard_block=0.0, challenge=0.0, soft_block=0.0, extraction=0.0)
)
BOTH = pytest.mark.parametrize("settings", [pytest.param(ROBUST, id="robust"), pytest.param(PLAIN, id="plain")])


class Found(NamedTuple):
    """What came of one evaluation: a verdict a site, and the window that the longer ones of a site must become."""

    verdicts: list[Verdict]
    resets: dict[str, int]


def windows(slots: Sequence[Slot], settings: ScoreSettings) -> Windows:
    made = Windows([window.total_seconds() for window in settings.windows], resolution=1.0)
    made.add(slots)
    return made


def evaluated(
    held: Windows,
    sites: Sequence[str],
    *,
    baseline: Baseline | None,
    previous: Sequence[Verdict | None],
    now: float,
    seen: int,
    settings: ScoreSettings,
) -> Found:
    """One evaluation of some sites with the same normal, of each of which `seen` requests were ever counted."""
    panel = held.panel(sites, now)
    nan = float("nan")
    before = Before(
        states=States.of([BandState(since=now) if one is None else one.state for one in previous]),
        smoothed=np.array([nan if one is None or one.smoothed is None else one.smoothed for one in previous]),
        at=np.array([nan if one is None else one.at for one in previous]),
    )
    baselines = [baseline] * len(sites)
    judged = evaluate(
        panel,
        Table().of(panel, baselines),
        before,
        new_evidence=np.array([one is None or one.evidence != seen for one in previous]),
        now=now,
        settings=settings,
    )
    resets = {
        sites[place]: window for place, window in zip(judged.reset_sites.tolist(), judged.resets.tolist(), strict=True)
    }
    return Found(list(verdicts(panel, judged, baselines=baselines, requests=[seen] * len(sites))), resets)


def judged(
    *slots: Slot,
    baseline: Baseline | None = NORMAL,
    previous: Verdict | None = None,
    now: float = NOW,
    seen: int = 1,
    settings: ScoreSettings = ROBUST,
) -> Verdict:
    """The verdict on one site with these slots."""
    held = windows(slots, settings)
    found = evaluated(held, ["books"], baseline=baseline, previous=[previous], now=now, seen=seen, settings=settings)
    (verdict,) = found.verdicts
    return verdict


def now_(tally: Tally, **what: Any) -> Slot:
    """A slot of this very second, in which nothing has decayed."""
    return slot(NOW, tally, seconds=1, **what)


@BOTH
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
        pytest.param([now_(Tally(ok=30, error=20))], (600, 50), id="errors are requests too"),
    ],
)
def test_the_window_of_a_good_site_is_the_shortest_with_fifty_requests(
    slots: list[Slot], window: tuple[float, int] | None, settings: ScoreSettings
) -> None:
    verdict = judged(*slots, settings=settings)
    seen = None if verdict.window is None else (verdict.window.seconds, verdict.window.requests)
    assert seen == window
    assert (verdict.score is None) == (window is None)


TURNED = [slot(NOW - 2 * HOUR, Tally(ok=1000, challenge=1000)), slot(NOW - 60, Tally(ok=200))]
"""Two hours ago half of all was challenged, and now nothing is."""


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        pytest.param(ROBUST, 21600, id="robust reads every window and takes the lowest score"),
        pytest.param(PLAIN, 600, id="plain reads the shortest alone"),
    ],
)
def test_what_a_longer_window_holds_counts_by_the_robust_method(settings: ScoreSettings, seconds: float) -> None:
    verdict = judged(*TURNED, settings=settings)
    assert verdict.window is not None
    assert verdict.window.seconds == seconds
    assert verdict.score_raw == 100, "the plain formula is that of the shortest"
    assert (verdict.score == 100) == (settings is PLAIN)
    assert [reason.signal for reason in verdict.reasons][:1] == ([] if settings is PLAIN else [Signal.CHALLENGE])


@BOTH
def test_a_new_site_is_unknown_and_nothing_else(settings: ScoreSettings) -> None:
    verdict = judged(baseline=None, seen=0, settings=settings)
    assert (verdict.band, verdict.unknown) == (Band.UNKNOWN, Unknown.NOT_ENOUGH_REQUESTS)
    assert (verdict.score, verdict.score_raw, verdict.parser_score, verdict.penalties) == (None, None, None, ())


@BOTH
def test_one_request_triggers_no_band(settings: ScoreSettings) -> None:
    verdict = judged(slot(NOW - 60, Tally(hard_block=1)), baseline=None, settings=settings)
    assert (verdict.band, verdict.score) == (Band.UNKNOWN, None)


@BOTH
def test_without_a_baseline_the_signals_are_seen_but_not_scored(settings: ScoreSettings) -> None:
    verdict = judged(slot(NOW - 60, Tally(ok=30, challenge=30)), baseline=None, settings=settings)
    assert (verdict.unknown, verdict.score, verdict.parser_score) == (Unknown.NO_BASELINE, None, None)
    assert (verdict.penalties, verdict.reasons, verdict.lower, verdict.drift) == ((), (), None, {})
    assert verdict.window is not None
    assert verdict.window.rates.challenge == 0.5


def test_without_the_consent_of_a_person_a_normal_of_refusals_gives_no_score() -> None:
    refused = replace(NORMAL, rates=structs.replace(NORMAL.rates, hard_block=0.6), refused=True)
    seen = slot(NOW - 60, Tally(ok=40, hard_block=60))
    verdict = judged(seen, baseline=refused)
    assert (verdict.unknown, verdict.score, verdict.reasons) == (Unknown.BASELINE_REFUSED, None, ())
    accepted = judged(seen, baseline=replace(refused, refused=False, accepted_at=NOW - 60))
    assert (accepted.unknown, accepted.score) == (None, 100)


@pytest.mark.parametrize(
    ("tally", "unknown"),
    [
        pytest.param(Tally(ok=49, error=51), Unknown.MOSTLY_ERRORS, id="more errors than answers"),
        pytest.param(Tally(ok=50, error=50), None, id="as many"),
        pytest.param(Tally(hard_block=49, error=51), Unknown.MOSTLY_ERRORS, id="refusals are answers"),
        pytest.param(Tally(error=49), Unknown.NOT_ENOUGH_REQUESTS, id="too few to say even that"),
    ],
)
def test_mostly_errors_say_nothing_of_a_site(tally: Tally, unknown: Unknown | None) -> None:
    verdict = judged(now_(tally))
    assert (verdict.unknown, verdict.score is None) == (unknown, unknown is not None)
    plain = judged(now_(tally), settings=PLAIN)
    assert (plain.score is None) == (unknown is Unknown.NOT_ENOUGH_REQUESTS), "plain counts them as served"


def test_a_window_of_errors_does_not_hide_what_the_others_hold() -> None:
    """The shortest is mostly errors: there is no score, though the long one would give a good one."""
    verdict = judged(slot(NOW - 6 * HOUR, Tally(ok=9000)), slot(NOW - 60, Tally(ok=10, error=90)))
    assert verdict.window is not None
    assert (verdict.unknown, verdict.window.seconds) == (Unknown.MOSTLY_ERRORS, 600)


def test_shares_are_of_answered_requests_by_the_robust_method() -> None:
    seen = now_(Tally(ok=100, challenge=100, error=200))
    challenges = [
        penalty.now
        for settings in (ROBUST, PLAIN)
        for penalty in judged(seen, settings=settings).penalties
        if penalty.signal is Signal.CHALLENGE
    ]
    assert challenges == [0.5, 0.25]


def test_by_the_plain_method_the_score_is_the_lower_of_plain_and_cap_and_the_penalties_add_up() -> None:
    verdict = judged(slot(NOW - 60, Tally(ok=66, challenge=34)), settings=PLAIN)
    assert (verdict.score, verdict.score_raw) == (66, 75)
    assert [(r.signal, r.points) for r in verdict.reasons] == [
        (Signal.CHALLENGE, 25.0), (Signal.REFUSED_CAP, pytest.approx(9.0)),
    ]  # fmt: skip
    assert 100 - sum(p.points for p in verdict.penalties) == pytest.approx(66)


def test_lower_bounds_cost_less_than_what_was_seen_and_the_penalties_add_up() -> None:
    verdict = judged(slot(NOW - 60, Tally(ok=66, challenge=34)))
    assert verdict.lower is not None
    assert verdict.lower.refused == verdict.lower.challenge == pytest.approx(0.2883, abs=0.002), "Wilson, 1.1, of 34 %"
    assert (verdict.score, verdict.score_raw) == (71, 75)
    assert verdict.smoothed == pytest.approx(100 * (1 - verdict.lower.refused))
    assert 100 - sum(p.points for p in verdict.penalties) == pytest.approx(verdict.smoothed)


def test_the_more_is_seen_of_the_same_share_the_more_it_costs() -> None:
    scores = [judged(now_(Tally(ok=9 * n, challenge=n))).smoothed for n in (5, 10, 100, 1000, 10_000)]
    assert scores == sorted(scores, key=lambda score: -(score or 0))
    assert scores[0] is not None
    assert scores[-1] == pytest.approx(100 - 12.5, abs=0.5), "of ten percentage points half the weight"
    assert scores[0] > 90


def test_a_restless_site_is_not_blamed_for_its_own_swings() -> None:
    swinging = Spread(hard_block=0.0, challenge=0.1, soft_block=0.0, refused=0.1)
    calm = replace(NORMAL, rates=structs.replace(NORMAL.rates, challenge=0.1))
    restless = replace(calm, spread=swinging, lasting=swinging)
    seen = now_(Tally(ok=800, challenge=200))
    assert judged(seen, baseline=calm).score == 89
    assert judged(seen, baseline=restless).score == 100


def test_traffic_that_moves_to_another_route_moves_nothing() -> None:
    """One route is refused 2 %, the other 30 %: all at once through the second is still its own normal."""
    strata = tuple(
        StratumNormal(route=route, source="traffic", rates=structs.replace(NORMAL.rates, hard_block=share))
        for route, share in (("direct", 0.02), ("dc-us", 0.3))
    )
    mixed = replace(NORMAL, rates=structs.replace(NORMAL.rates, hard_block=0.05), strata=strata)
    seen = now_(Tally(ok=700, hard_block=300), route="dc-us")
    assert judged(seen, baseline=mixed).score == 100
    assert judged(seen, baseline=replace(mixed, strata=())).score == pytest.approx(68, abs=3)


@pytest.mark.parametrize(
    ("settings", "score"),
    [
        pytest.param(ROBUST, 1, id="robust, as sure as a hundred requests can make one"),
        pytest.param(PLAIN, 0, id="plain"),
        pytest.param(replace(PLAIN, cap=False), 65, id="plain without the cap of refusals"),
    ],
)
def test_a_site_that_refuses_everything_scores_about_0(settings: ScoreSettings, score: int) -> None:
    assert judged(slot(NOW - 60, Tally(hard_block=100)), settings=settings).score == score


def test_the_first_plain_score_is_as_it_is_and_the_next_is_smoothed() -> None:
    first = judged(slot(NOW - 60, Tally(ok=100)), settings=PLAIN)
    half = NOW + PLAIN.smoothing.total_seconds()
    refused = slot(half - 60, Tally(hard_block=100))
    second = judged(refused, previous=first, now=half, seen=2, settings=PLAIN)
    assert (first.score, second.score, second.score_raw) == (100, 50, 65)
    back = judged(slot(NOW - 120, Tally(hard_block=100)), previous=second, now=NOW - 60, seen=3, settings=PLAIN)
    assert back.score == 50, "a clock that steps back keeps the score before"
    assert judged(refused, previous=first, now=half, seen=2).score == 1, "what the windows smooth is smooth enough"


def test_after_a_time_without_a_score_smoothing_begins_anew() -> None:
    first = judged(slot(NOW - 60, Tally(ok=100)), settings=PLAIN)
    silent = judged(previous=first, now=NOW + 60, settings=PLAIN)
    again = judged(slot(NOW + 60, Tally(hard_block=100)), previous=silent, now=NOW + 120, seen=2, settings=PLAIN)
    assert (silent.score, silent.band, again.score) == (None, Band.UNKNOWN, 0)


@BOTH
def test_a_bad_band_is_held_while_there_is_no_score(settings: ScoreSettings) -> None:
    verdict = judged(slot(NOW - 60, Tally(hard_block=100)), settings=settings)
    for minute in range(1, 5):
        now = NOW + minute * 60
        seen = slot(now - 60, Tally(hard_block=100))
        verdict = judged(seen, previous=verdict, now=now, seen=minute + 1, settings=settings)
    assert verdict.band is Band.RESISTING
    quiet = judged(previous=verdict, now=NOW + 86400, seen=5, settings=settings)
    assert (quiet.band, quiet.state.held, quiet.score) == (Band.RESISTING, True, None)


@BOTH
def test_an_evaluation_that_sees_nothing_new_changes_no_band(settings: ScoreSettings) -> None:
    bad = slot(NOW - 60, Tally(hard_block=100))
    verdict = judged(bad, settings=settings)
    for minute in range(1, 30):
        verdict = judged(bad, previous=verdict, now=NOW + minute * 60, settings=settings)
    assert verdict.band is Band.UNKNOWN
    assert verdict.score is not None
    assert verdict.score < 5


FAR = NOW - 86400
"""Long enough ago for any dwell."""


def state(band: Band, **clocks: float | None) -> Verdict:
    """A verdict before, whose band is to go on from."""
    known = BandState(band=band, since=FAR, evidence_at=NOW - 60)
    return Verdict(site="books", at=NOW - 60, state=structs.replace(known, **clocks), evidence=1)


@pytest.mark.parametrize(
    ("slots", "before", "after", "reset"),
    [
        pytest.param(
            [slot(NOW - 3 * HOUR, Tally(ok=9000)), now_(Tally(hard_block=100))],
            state(Band.NORMAL, under_resisting=NOW - 240), Band.RESISTING, 0,
            id="what shows that it turned bad is the shortest: the others become it",
        ),
        pytest.param(
            [slot(NOW - 12 * HOUR, Tally(ok=9000)), slot(NOW - 3 * HOUR, Tally(ok=1000, challenge=1000))],
            state(Band.NORMAL, under_degrading=FAR), Band.DEGRADING, 2,
            id="the two hours show it: only the six become them",
        ),
        pytest.param(
            [slot(NOW - 2 * HOUR, Tally(ok=1000, challenge=1000)), now_(Tally(ok=400))],
            state(Band.NORMAL, under_degrading=FAR), Band.DEGRADING, None,
            id="the longest shows it: nothing is longer",
        ),
        pytest.param(
            [slot(NOW - 3 * HOUR, Tally(ok=9000)), now_(Tally(hard_block=100))],
            state(Band.NORMAL, under_resisting=NOW - 60), Band.NORMAL, None, id="no band has changed yet",
        ),
        pytest.param(
            [slot(NOW - 3 * HOUR, Tally(hard_block=900)), now_(Tally(ok=1000))],
            state(Band.DEGRADING, over_degrading=FAR, shown=600.0), Band.NORMAL, 0,
            id="what shows that it is over is the shortest: the others forget what was",
        ),
        pytest.param(
            [slot(NOW - 10 * HOUR, Tally(hard_block=900)), now_(Tally(ok=1000))],
            state(Band.DEGRADING, over_degrading=FAR, shown=1800.0), Band.NORMAL, 1,
            id="it is over by the window that had shown it",
        ),
    ],
)  # fmt: skip
def test_a_band_that_changes_tells_which_windows_must_forget(
    slots: list[Slot], before: Verdict, after: Band, reset: int | None
) -> None:
    held = windows(slots, ROBUST)
    found = evaluated(held, ["books"], baseline=NORMAL, previous=[before], now=NOW, seen=2, settings=ROBUST)
    assert found.verdicts[0].band is after
    assert found.resets.get("books") == reset


@pytest.mark.parametrize(
    ("shown", "recovering"),
    [
        pytest.param(600.0, True, id="that of ten minutes holds good traffic alone by now"),
        pytest.param(21600.0, False, id="that of six hours does not yet"),
    ],
)
def test_recovery_is_judged_by_the_window_that_showed_the_band(shown: float, recovering: bool) -> None:
    held = [slot(NOW - 3 * HOUR, Tally(hard_block=900)), now_(Tally(ok=1000))]
    verdict = judged(*held, previous=state(Band.DEGRADING, shown=shown), seen=2)
    assert verdict.score is not None
    assert verdict.score < 80, "the score is still the lowest of all"
    assert (verdict.state.over_degrading is not None) == recovering


@BOTH
def test_extraction_is_read_where_enough_pages_were_extracted(settings: ScoreSettings) -> None:
    """Traffic fills the shortest window and says nothing of extraction; canaries say it over a day."""
    traffic = slot(NOW - 60, Tally(ok=5000))
    canary = [
        slot(NOW - n * HOUR, Tally(ok=12, extractions_ok=6, extractions_failed=6), source=Source.CANARY)
        for n in range(1, 20)
    ]
    verdict = judged(traffic, *canary, settings=settings)
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


@BOTH
def test_a_broken_parser_costs_no_health(settings: ScoreSettings) -> None:
    verdict = judged(slot(NOW - 60, Tally(ok=100, extractions_failed=100)), settings=settings)
    assert (verdict.score, verdict.parser_score) == (100, 0)


def test_routes_are_told_apart() -> None:
    verdict = judged(
        now_(Tally(ok=85, error=10)),
        now_(Tally(ok=5), source=Source.CANARY),
        now_(Tally(ok=10, hard_block=30), route="dc-us"),
        slot(NOW - 100 * HOUR, Tally(bytes=1), seconds=1, route="idle"),
    )
    assert verdict.route_refused == {"direct": 0.0, "dc-us": 0.75}
    assert verdict.route_error == {"direct": 0.1, "dc-us": 0.0}
    assert verdict.route_requests == {"direct": 100, "dc-us": 40}


@BOTH
def test_windows_and_minimum_are_configuration(settings: ScoreSettings) -> None:
    settings = replace(settings, min_requests=5, windows=(timedelta(seconds=8), timedelta(seconds=16)))
    verdict = judged(slot(NOW - 8, Tally(ok=10), seconds=1), settings=settings)
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


@BOTH
@hypothesis.settings(max_examples=40)
@given(slots=SLOTS, steps=st.lists(st.sampled_from([15.0, 600.0, 7200.0]), min_size=1, max_size=4))
def test_judging_many_sites_is_judging_each_to_the_digit(
    settings: ScoreSettings, slots: list[Slot], steps: list[float]
) -> None:
    held = windows(slots, settings)
    names = SITES * 10
    together: list[Verdict | None] = [None] * len(names)
    alone: dict[str, Verdict] = {}
    now = NOW
    for seen, step in enumerate(steps):
        now += step
        found = evaluated(held, names, baseline=NORMAL, previous=together, now=now, seen=seen, settings=settings)
        together = list(found.verdicts)
        for site in SITES:
            (alone[site],) = evaluated(
                held, [site], baseline=NORMAL, previous=[alone.get(site)], now=now, seen=seen, settings=settings
            ).verdicts
        assert together == [alone[site] for site in names]


def test_the_normal_of_a_verdict_is_that_of_its_routes_and_of_its_hours() -> None:
    strict = StratumNormal(route="slow", source="traffic", rates=rates(challenge=0.3))
    routed = replace(NORMAL, strata=(strict,))
    both = judged(now_(Tally(ok=100)), now_(Tally(ok=200, challenge=100), route="slow"), baseline=routed)
    assert both.normal is not None
    assert both.normal.challenge == pytest.approx(0.3 * 300 / 400)
    assert both.normal.extraction == 0.0

    effects = np.zeros((5, EFFECTS))
    effects[[1, 3], :DAY_HOURS] = 2.0  # at every hour: windows of all widths expect the same
    usual = replace(NORMAL, rates=rates(challenge=0.1), season=packed(effects))
    seen = judged(now_(Tally(ok=60, challenge=40)), baseline=usual)
    assert seen.normal is not None
    assert seen.normal.challenge == pytest.approx(0.451, abs=0.001)
    assert seen.score == 100
    assert judged(now_(Tally(ok=60, challenge=40)), baseline=replace(usual, season=b"")).score < 80  # type: ignore[operator] # there is one
    assert judged(now_(Tally(ok=9)), baseline=usual).normal == usual.rates
