"""What canaries alone decide: rows of runs, a pause without a score, a slow return, and that silence does nothing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawlhealth.advice import advise
from crawlhealth.config import Canary
from crawlhealth.outcome import Outcome
from crawlhealth.recovery import Followed, Kind, Streak, by_site, full_after, in_a_row, lead
from crawlhealth.scoresettings import AdviceSettings, CanaryLed, LeaveAfter, ScoreSettings
from crawlhealth.verdict import Band, BandState, Baseline, Rates, StratumNormal, Verdict
from samples import DAY, HOUR, NOW, run

MINUTE = 60.0
EVERY = timedelta(minutes=5)
SETTINGS, ADVICE = ScoreSettings(), AdviceSettings()
OUTCOMES = {"r": Outcome.HARD_BLOCK, "c": Outcome.CHALLENGE, "o": Outcome.OK, "e": Outcome.ERROR}


def streak(course: str, *, every: float = 5 * MINUTE, until: float = NOW, before: Streak | None = None) -> Streak:
    """What runs come to, the last of them at `until`: r refused, c challenged, o ok, e error, - none."""
    found = before or Streak()
    for back, letter in zip(range(len(course) - 1, -1, -1), course, strict=True):
        if letter != "-":
            found = found.after(run(at=until - back * every, outcome=OUTCOMES[letter]))
    return found


def followed(*courses: str, every: timedelta = EVERY, until: float = NOW) -> tuple[Followed, ...]:
    return tuple((streak(course, every=every.total_seconds(), until=until), every) for course in courses)


@pytest.mark.parametrize(
    ("course", "kind", "runs", "first", "before"),
    [
        pytest.param("", None, 0, None, None, id="no run"),
        pytest.param("ooo", Kind.SERVED, 3, 10, None, id="served runs in a row"),
        pytest.param("oorrc", Kind.REFUSED, 3, 10, 15, id="refused ones of any kind, after served ones"),
        pytest.param("rro", Kind.SERVED, 1, 0, 5, id="a served one after refused ones"),
        pytest.param("rrer", Kind.REFUSED, 3, 15, None, id="an error breaks no refused row, and does not count"),
        pytest.param("ooeo", Kind.SERVED, 3, 15, None, id="nor a served one"),
        pytest.param("rree", Kind.REFUSED, 2, 15, None, id="and is not the last of it"),
        pytest.param("ee", None, 0, None, None, id="errors only: nothing is known"),
    ],
)
def test_a_streak_of_runs(course: str, kind: Kind | None, runs: int, first: float | None, before: float | None) -> None:
    found = streak(course)
    ago = [None if at is None else (NOW - at) / MINUTE for at in (found.first, found.before)]
    assert (found.kind, found.runs, *ago) == (kind, runs, first, before)


def test_a_long_streak_stays_small_and_knows_its_beginning() -> None:
    found = streak("o" * 500)
    assert (found.runs, found.first, len(found.times)) == (500, NOW - 499 * 5 * MINUTE, 32)


def test_a_clock_that_steps_back_begins_the_streak_anew() -> None:
    found = streak("oo", until=NOW - HOUR, before=streak("roooo"))
    assert (found.kind, found.runs, found.first, found.before) == (
        Kind.SERVED, 2, NOW - HOUR - 5 * MINUTE, NOW - HOUR - 5 * MINUTE
    )  # fmt: skip


@pytest.mark.parametrize(
    ("courses", "kind", "runs", "minutes"),
    [
        pytest.param(["rrrrrr"], Kind.REFUSED, 6, 25, id="one canary refused six times"),
        pytest.param(["rrrr", "rrrr"], Kind.REFUSED, 8, 15, id="two together"),
        pytest.param(["rrrr", "rrro"], Kind.REFUSED, 0, 0, id="not while another is served"),
        pytest.param(["rrrr", "oorr"], Kind.REFUSED, 4, 5, id="a row begins after the last served run of any"),
        pytest.param(["rrrr", "----"], Kind.REFUSED, 4, 15, id="one that never ran has no say"),
        pytest.param(["rrrr", "eeee"], Kind.REFUSED, 4, 15, id="nor one with errors only"),
        pytest.param(["rrrr", "rrre"], Kind.REFUSED, 7, 15, id="an error stands in no row's way"),
        pytest.param(["oooo", "oroo"], Kind.SERVED, 4, 5, id="a served row begins after the last refused run of any"),
        pytest.param(["oooo", "ooor"], Kind.SERVED, 0, 0, id="no served row while one is refused"),
        pytest.param(["o" + "-" * 20, "r"], Kind.REFUSED, 1, 0, id="what was served long ago is no objection"),
        pytest.param(["r" + "-" * 20, "o"], Kind.REFUSED, 0, 0, id="and what was refused long ago no claim"),
        pytest.param([], Kind.SERVED, 0, 0, id="no canaries"),
    ],
)
def test_a_row_over_all_canaries_and_routes(courses: list[str], kind: Kind, runs: int, minutes: float) -> None:
    found = in_a_row(kind, followed(*courses), now=NOW)
    assert (found.runs, found.seconds / MINUTE) == (runs, minutes)


@pytest.mark.parametrize(
    ("after", "runs", "minutes"),
    [
        pytest.param(NOW - 12 * MINUTE, 3, 10, id="runs begun after a time"),
        pytest.param(NOW - 10 * MINUTE, 2, 5, id="not at it"),
        pytest.param(NOW, 0, 0, id="none of them"),
        pytest.param(NOW - 600 * MINUTE, 32, 600, id="more than are remembered: as many as are, and for all that time"),
    ],
)
def test_a_row_after_a_time(after: float, runs: int, minutes: float) -> None:
    found = in_a_row(Kind.SERVED, followed("o" * 500), now=NOW, after=after)
    assert (found.runs, found.seconds / MINUTE) == (runs, minutes)


def test_only_configured_canaries_and_their_routes_are_followed() -> None:
    canaries = [
        Canary(name="front", site="books", url="", routes=("direct", "us")),
        Canary(name="new", site="books", url="", every=EVERY * 2),
        Canary(name="front", site="news", url=""),
    ]
    one, two, other = streak("o"), streak("oo"), streak("r")
    known = {
        ("books", "front", "us"): one,
        ("books", "front", "gone"): other,
        ("books", "gone", "direct"): other,
        ("books", "new", "direct"): two,
    }
    assert by_site(canaries, known) == {"books": ((one, EVERY), (two, EVERY * 2)), "news": ()}


def test_a_rare_canary_is_fresh_for_three_times_its_every() -> None:
    rare = followed("rrrrrr", every=timedelta(hours=6))
    assert in_a_row(Kind.REFUSED, rare, now=NOW + 18 * HOUR).runs == 6
    assert in_a_row(Kind.REFUSED, rare, now=NOW + 18 * HOUR + 1).runs == 0


def resisting(hours: float = 2.0, *, held: bool = False) -> BandState:
    return BandState(band=Band.RESISTING, since=NOW - hours * HOUR, held=held, evidence_at=NOW - 60)


def degrading(*, eased: float | None = None) -> BandState:
    at = None if eased is None else NOW - eased * HOUR
    return BandState(band=Band.DEGRADING, since=NOW - 30 * HOUR, held=True, evidence_at=NOW - 60, eased_at=at)


UNKNOWN = BandState(since=NOW - DAY)
PAUSED = BandState(band=Band.RESISTING, since=NOW, held=True)
BEGUN = BandState(band=Band.DEGRADING, since=NOW, held=True, evidence_at=NOW - 60, eased_at=NOW)


def led(
    state: BandState,
    streaks: Iterable[Followed],
    *,
    scored: bool = False,
    paused: bool = True,
    now: float = NOW,
    baseline: Baseline | None = None,
) -> tuple[BandState, bool]:
    return lead(
        state,
        tuple(streaks),
        scored=scored,
        paused=paused,
        now=now,
        settings=SETTINGS,
        advice=ADVICE,
        baseline=baseline,
    )


@pytest.mark.parametrize(
    ("state", "courses", "scored", "state_after", "emptied"),
    [
        pytest.param(UNKNOWN, ["rrrrrr"], False, PAUSED, False, id="six refused runs pause a site without a score"),
        pytest.param(UNKNOWN, ["rrrrrr"], True, UNKNOWN, False, id="never one with a score"),
        pytest.param(UNKNOWN, ["rrrrr"], False, UNKNOWN, False, id="five are too few"),
        pytest.param(UNKNOWN, ["rr", "rr", "rr"], False, UNKNOWN, False, id="six within five minutes are too soon"),
        pytest.param(UNKNOWN, ["rrrr", "rrrr"], False, PAUSED, False, id="eight of two canaries will do"),
        pytest.param(UNKNOWN, ["rrrrrrrr", "ooooooooo"], False, UNKNOWN, False, id="not while another is served"),
        pytest.param(UNKNOWN, ["oooooo"], False, UNKNOWN, False, id="served runs of an unknown site say nothing"),
        pytest.param(resisting(), ["r" * 20], False, resisting(), False, id="a paused site that refuses on stays so"),
        pytest.param(resisting(), ["rrrroooooo"], True, BEGUN, True, id="six served runs end a pause"),
        pytest.param(resisting(held=True), ["rrrroooooo"], False, BEGUN, True, id="of a held band too"),
        pytest.param(resisting(), ["rrrrooooo"], True, resisting(), False, id="five are too few to end it"),
        pytest.param(resisting(), ["ooo", "ooo"], True, resisting(), False, id="six within ten minutes are too soon"),
        pytest.param(resisting(), ["ooooooooo", "oooooorrr"], True, resisting(), False, id="not while one is refused"),
        pytest.param(resisting(), ["o" * 9, "o" * 6 + "rro"], True, resisting(), False, id="nor after one good run"),
        pytest.param(resisting(0.3), ["o" * 40], True, resisting(0.3), False, id="older runs do not count"),
        pytest.param(resisting(0.6), ["o" * 40], True, BEGUN, True, id="those after it do"),
        pytest.param(resisting(), ["rrrooo" + "e" * 6 + "ooo"], True, BEGUN, True, id="errors are no objection"),
        pytest.param(resisting(), ["rrrooo" + "e" * 6], True, resisting(), False, id="and no served runs"),
        pytest.param(resisting(), [], False, resisting(), False, id="silence ends no pause"),
        pytest.param(degrading(), [], False, degrading(), False, id="nor lifts a degrading without a score"),
        pytest.param(degrading(), ["r" * 5], False, degrading(), False, id="nor do a few refused runs"),
        pytest.param(degrading(), ["r" * 6], False, PAUSED, False, id="enough of them pause it"),
    ],
)  # fmt: skip
def test_what_follows_from_canaries(
    state: BandState, courses: list[str], scored: bool, state_after: BandState, emptied: bool
) -> None:
    expected = replace(state_after, evidence_at=state.evidence_at)
    assert led(state, followed(*courses), scored=scored) == (expected, emptied)


def test_a_site_whose_crawlers_go_on_is_judged_by_them_and_not_by_its_canaries() -> None:
    assert led(resisting(), followed("o" * 9), scored=True, paused=False) == (resisting(), False)
    assert led(resisting(), followed("o" * 9), scored=False, paused=False) == (replace(BEGUN), True)


def test_a_degrading_site_whose_score_is_gone_is_let_return_as_well() -> None:
    assert led(degrading(), followed("o" * 9)) == (degrading(eased=0), False)
    assert led(degrading(), followed("o" * 9), scored=True) == (degrading(), False)


@pytest.mark.parametrize(
    ("eased", "courses", "after"),
    [
        pytest.param(1.0, ["o" * 99], degrading(eased=1.0), id="served runs let it go on"),
        pytest.param(6.49, ["o" * 99], degrading(eased=6.49), id="until six hours at full concurrency are over"),
        pytest.param(
            6.5, ["o" * 99], BandState(band=Band.UNKNOWN, since=NOW, evidence_at=NOW - 60), id="and then it is over"
        ),
        pytest.param(6.5, ["o" * 80 + "e" * 9], BandState(band=Band.UNKNOWN, since=NOW, evidence_at=NOW - 60),
                     id="errors do not keep it"),
        pytest.param(6.5, ["o" * 80 + "e" * 13], degrading(eased=0), id="nothing but errors for an hour do"),
        pytest.param(6.5, ["o" * 99 + "r"], degrading(eased=0), id="a refused run begins it again"),
        pytest.param(6.5, ["o" * 90 + "rooo"], degrading(eased=0.25), id="also one that no evaluation saw"),
        pytest.param(6.5, ["o" * 99, "rrr"], degrading(eased=0), id="of any canary"),
        pytest.param(6.5, ["o" * 50 + "-" * 13], degrading(eased=0), id="silence begins it again"),
        pytest.param(6.5, [], degrading(eased=0), id="so does a site whose canaries are gone"),
        pytest.param(1.0, ["o" * 99 + "r" * 6], PAUSED, id="enough refused runs pause it again"),
    ],
)  # fmt: skip
def test_a_site_on_its_way_back_without_a_score(eased: float, courses: list[str], after: BandState) -> None:
    found, emptied = led(degrading(eased=eased), followed(*courses))
    assert (found, emptied) == (replace(after, evidence_at=NOW - 60), False)


def test_a_site_on_its_way_back_that_traffic_scores_is_left_to_its_score() -> None:
    assert led(degrading(eased=9), followed("o" * 99), scored=True) == (degrading(eased=9), False)


def normal(refused: float, *, canary: float | None = None, unaccepted: bool = False) -> Baseline:
    def rates(share: float) -> Rates:
        return Rates(hard_block=share, challenge=0.0, soft_block=0.0)

    own = () if canary is None else (StratumNormal(route="direct", source="canary", rates=rates(canary)),)
    traffic = StratumNormal(route="direct", source="traffic", rates=rates(refused))
    return Baseline(
        hours=300, newest=NOW - DAY, rates=rates(refused), strata=(traffic, *own), refused=unaccepted
    )  # fmt: skip


@pytest.mark.parametrize(
    ("baseline", "runs"),
    [
        pytest.param(None, 6, id="a site without a baseline: six"),
        pytest.param(normal(0.02), 6, id="one that refuses next to nothing: six"),
        pytest.param(normal(0.4), 11, id="one that refuses two of five: so many that chance is no excuse"),
        pytest.param(normal(0.9), None, id="one that refuses most: no number"),
        pytest.param(normal(1.0), None, id="one that refuses all: no number"),
        pytest.param(normal(1.0, unaccepted=True), 6, id="one whose refusals nobody has accepted: six"),
        pytest.param(normal(0.02, canary=0.9), None, id="canaries that are refused normally: no number"),
        pytest.param(normal(0.9, canary=0.02), 6, id="traffic that is refused while canaries are served: six"),
    ],
)
def test_how_many_refused_runs_tell_something(baseline: Baseline | None, runs: int | None) -> None:
    enough = (count for count in range(1, 33) if led(UNKNOWN, followed("r" * count), baseline=baseline)[0].held)
    assert next(enough, None) == runs


def test_the_rows_are_configuration() -> None:
    settings = ScoreSettings(
        canaries=CanaryLed(refused=2, served=3, over=timedelta(0), double_every=timedelta(minutes=1)),
        leave_after=LeaveAfter(degrading=timedelta(minutes=10)),
    )
    paused, _ = lead(UNKNOWN, followed("rr"), scored=False, now=NOW, settings=settings, advice=ADVICE)
    assert paused == replace(PAUSED, evidence_at=None)
    later = NOW + 15 * MINUTE
    eased, emptied = lead(
        paused, followed("ooo", until=later), scored=False, now=later, settings=settings, advice=ADVICE
    )  # fmt: skip
    assert (eased.band, eased.eased_at, emptied) == (Band.DEGRADING, later, True)
    end = later + 12 * MINUTE
    over, _ = lead(eased, followed("o" * 6, until=end), scored=False, now=end, settings=settings, advice=ADVICE)
    assert over.band is Band.UNKNOWN


@pytest.mark.parametrize(
    ("least", "minutes"),
    [pytest.param(0.25, 30, id="a quarter"), pytest.param(0.3, 30, id="three tenths"), pytest.param(1.0, 0, id="all"),
     pytest.param(0.0, 75, id="nothing: a twentieth")],
)  # fmt: skip
def test_how_long_a_return_takes(least: float, minutes: float) -> None:
    assert full_after(least=least, double_every=timedelta(minutes=15)) == timedelta(minutes=minutes)


class Site:
    """A canary-only site, evaluated every 15 seconds, or as often as is said."""

    def __init__(self, state: BandState = UNKNOWN, *, per_hour: int = 12) -> None:
        self.state, self.now, self.emptied = state, NOW, 0
        self.every = timedelta(hours=1) / per_hour
        self.streak = Streak()

    def live(self, hours: float, outcome: Outcome | None, *, step: float = 60.0) -> list[tuple[float, Band, float]]:
        """Pass some time with runs that all come to one thing (None: none); each change of band and concurrency."""
        seen: list[tuple[float, Band, float]] = []
        begun, due = self.now, self.now
        while self.now <= begun + hours * HOUR:
            if outcome is not None and self.now >= due:
                self.streak = self.streak.after(run(at=self.now, outcome=outcome))
                due += self.every.total_seconds()
            self.state, emptied = led(self.state, [(self.streak, self.every)], now=self.now)
            self.emptied += emptied
            verdict = Verdict(site="books", at=self.now, state=self.state)
            ratio = advise(verdict, None, ADVICE, SETTINGS).concurrency_ratio
            if not seen or seen[-1][1:] != (self.state.band, ratio):
                seen.append(((self.now - begun) / MINUTE, self.state.band, ratio))
            self.now += step
        return seen


@pytest.mark.parametrize(
    ("per_hour", "pause", "free"),
    [
        pytest.param(4, 75, 75 + 30 + 360, id="four runs an hour"),
        pytest.param(12, 25, 25 + 30 + 360, id="twelve"),
        pytest.param(24, 15, 15 + 30 + 360, id="twenty-four"),
    ],
)
def test_a_canary_only_site_is_paused_and_comes_back_in_its_configured_time(
    per_hour: int, pause: float, free: float
) -> None:
    site = Site(per_hour=per_hour)
    assert site.live(8, Outcome.OK) == [(0, Band.UNKNOWN, 1.0)]
    refused = site.live(5, Outcome.CHALLENGE)
    assert refused == [(0, Band.UNKNOWN, 1.0), (pytest.approx(pause, abs=2.5), Band.RESISTING, 0.0)]
    back = site.live(12, Outcome.OK)
    assert [(band, ratio) for _, band, ratio in back] == [
        (Band.RESISTING, 0.0), (Band.DEGRADING, 0.25), (Band.DEGRADING, 0.5), (Band.DEGRADING, 1.0),
        (Band.UNKNOWN, 1.0),
    ]  # fmt: skip
    eased = back[1][0]
    assert eased == pytest.approx(pause, abs=2.5)
    assert [at - eased for at, _, _ in back[2:]] == [15, 30, 390]
    assert back[-1][0] == pytest.approx(free, abs=2.5)
    assert site.emptied == 1


@pytest.mark.parametrize("state", [resisting(), resisting(held=True), degrading(), degrading(eased=1.0)], ids=str)
@pytest.mark.parametrize("outcome", [None, Outcome.ERROR], ids=["nothing comes", "only errors come"])
def test_two_days_of_silence_recover_nothing(state: BandState, outcome: Outcome | None) -> None:
    site = Site(state)
    changes = site.live(48, outcome)
    assert {band for _, band, _ in changes} == {state.band}
    assert max(ratio for _, _, ratio in changes) <= 0.25 if state.eased_at is None else changes[-1][2] == 0.25


EVENTS = st.lists(st.sampled_from("rcoe-"), max_size=60).map("".join)
STATES = st.sampled_from(
    [UNKNOWN, BandState(band=Band.NORMAL, since=NOW - DAY), resisting(), resisting(0.4, held=True), degrading(),
     degrading(eased=0.2), degrading(eased=1.0), degrading(eased=7.0)]
)  # fmt: skip


def goodness(state: BandState, now: float) -> tuple[int, float]:
    """A band, and within it the concurrency: more is better."""
    rank = {Band.RESISTING: 0, Band.DEGRADING: 1, Band.UNKNOWN: 2, Band.NORMAL: 2}[state.band]
    ratio = advise(Verdict(site="books", at=now, state=state), None, ADVICE, SETTINGS).concurrency_ratio
    return rank, ratio


@example(UNKNOWN, ["rrrrrr"], False, True, 0, 0.0)  # at the very moment of the last one
@given(STATES, st.lists(EVENTS, max_size=3), st.booleans(), st.booleans(), st.sampled_from([0, 1, 2]),
       st.floats(0, 4 * HOUR))  # fmt: skip
def test_a_refused_run_never_helps(
    state: BandState, courses: list[str], scored: bool, paused: bool, which: int, later: float
) -> None:
    now = NOW + later
    streaks = list(followed(*courses, ""))
    without, _ = led(state, streaks, scored=scored, paused=paused, now=now)
    number = which % len(streaks)
    more = streaks[number][0].after(run(at=now, outcome=Outcome.HARD_BLOCK))
    streaks[number] = (more, streaks[number][1])
    with_it, _ = led(state, streaks, scored=scored, paused=paused, now=now)
    assert goodness(with_it, now) <= goodness(without, now)


@given(STATES, st.lists(EVENTS, max_size=3), st.lists(st.floats(0, 6 * HOUR), min_size=1, max_size=6))
def test_silence_alone_never_improves_a_band(state: BandState, courses: list[str], waits: list[float]) -> None:
    """What was seen may still count for the first evaluation; from then on nothing new comes for good."""
    streaks, now = followed(*courses), NOW
    while any(now - one.times[-1] <= HOUR for one, _ in streaks if one.times):
        now += HOUR
    state, _ = led(state, streaks, now=now)
    for wait in waits:
        now += wait
        before, (state, emptied) = state, led(state, streaks, now=now)
        assert goodness(state, now) <= goodness(before, now)
        assert not emptied


@given(STATES, st.lists(EVENTS, max_size=3), st.booleans(), st.floats(-2 * DAY, 2 * DAY))
def test_no_time_breaks_it_and_no_pause_ends_at_more_than_the_least(
    state: BandState, courses: list[str], scored: bool, later: float
) -> None:
    now = NOW + later
    found, emptied = led(state, followed(*courses), scored=scored, now=now)
    assert found.since <= max(now, state.since)
    if emptied:
        assert state.band is Band.RESISTING
        assert goodness(found, now) == (1, 0.25)
    if state.band is Band.RESISTING:
        assert found.band in (Band.RESISTING, Band.DEGRADING)
