"""When bands begin and end, of one site and of many at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from crawlhealth import bands
from crawlhealth.bands import Scores, States, next_state, next_states
from crawlhealth.scoresettings import EnterAfter, LeaveAfter, ScoreSettings
from crawlhealth.verdict import Band, BandState

SETTINGS = ScoreSettings(enter_after=EnterAfter(degrading=timedelta(minutes=30)))
MINUTE = 60.0
N, D, R, U = Band.NORMAL, Band.DEGRADING, Band.RESISTING, Band.UNKNOWN


def played(*steps: tuple[float, float | None], start: Band = Band.NORMAL, every: float = 15.0) -> list[Band]:
    """The bands after stretches of (minutes, score), judged every 15 s with new evidence each time."""
    state, now, found = BandState(band=start, since=0.0, evidence_at=0.0), 0.0, []
    for minutes, value in steps:
        for _ in range(round(minutes * MINUTE / every)):
            now += every
            state = next_state(state, value, at=now, new_evidence=True, settings=SETTINGS)
        found.append(state.band)
    return found


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([(30, 70), (0.25, 70)], [N, D], id="degrading begins after thirty minutes under 80"),
        pytest.param([(3, 20), (0.25, 20)], [N, R], id="resisting begins after three minutes, straight from normal"),
        pytest.param([(1, 0), (60, 95)], [N, N], id="one bad minute changes no band"),
        pytest.param([(600, 79), (1, 0), (60, 79)], [D, D, D], id="nor does it turn degrading into resisting"),
        pytest.param([(29, 70), (1, 80), (29, 70)], [N, N, N], id="a score at the threshold starts the time anew"),
        pytest.param([(2.75, 49), (0.25, 50), (2.75, 49)], [N, N, N], id="of resisting as well"),
        pytest.param([(31, 70), (60, 84), (600, 84)], [D, D, D], id="84 does not end degrading"),
        pytest.param([(31, 70), (360, 85), (0.25, 85)], [D, D, N], id="degrading ends after six hours at 85"),
        pytest.param([(31, 70), (350, 90), (1, 84), (350, 90)], [D, D, D, D], id="a lapse starts the six hours anew"),
        pytest.param([(4, 20), (600, 59), (119, 60), (2, 60)], [R, R, R, D], id="resisting ends after two hours at 60"),
        pytest.param([(4, 20), (360, 99), (0.25, 99)], [R, D, N], id="recovery passes through degrading"),
        pytest.param([(31, 70), (4, 10)], [D, R], id="degrading turns into resisting"),
        pytest.param([(1, None)], [U], id="normal without a score is unknown"),
        pytest.param([(31, 70), (600, None)], [D, D], id="degrading without a score is held"),
        pytest.param([(4, 0), (1500, None)], [R, R], id="silence never recovers"),
        pytest.param([(31, 70), (290, 90), (600, None), (9, 90), (2, 90)], [D, D, D, D, N], id="it adds an hour"),
        pytest.param([(20, 70), (600, None), (4, 70), (2, 70)], [N, U, U, D], id="an onset goes on after silence"),
    ],
)
def test_bands(steps: list[tuple[float, float | None]], expected: list[Band]) -> None:
    assert played(*steps) == expected


@pytest.mark.parametrize(
    ("value", "band"),
    [
        pytest.param(95, N, id="a good first score is normal at once"),
        pytest.param(80, N, id="as is one at the threshold"),
        pytest.param(60, U, id="a bad first score waits for its time"),
        pytest.param(None, U, id="no score stays unknown"),
    ],
)
@pytest.mark.parametrize("new_evidence", [True, False], ids=["with evidence", "of an import"])
def test_the_first_score(value: float | None, band: Band, new_evidence: bool) -> None:
    state = next_state(BandState(), value, at=5.0, new_evidence=new_evidence, settings=SETTINGS)
    assert state.band is band


def test_a_held_band_says_so_and_keeps_its_beginning() -> None:
    bad = BandState(band=Band.RESISTING, since=100.0, evidence_at=500.0, shown=600.0)
    held = next_state(bad, None, at=600.0, new_evidence=False, settings=SETTINGS)
    assert (held.band, held.held, held.since, held.shown) == (Band.RESISTING, True, 100.0, 600.0)
    back = next_state(held, 30, at=700.0, new_evidence=True, settings=SETTINGS)
    assert (back.band, back.held, back.since, back.shown) == (Band.RESISTING, False, 100.0, 600.0)


def test_time_without_evidence_is_not_counted() -> None:
    state = BandState(band=Band.NORMAL, since=0.0, evidence_at=0.0)
    state = next_state(state, 70, at=60.0, new_evidence=True, settings=SETTINGS)
    for now in range(75, 8000, 15):  # two hours of looking at the same old window
        state = next_state(state, 70, at=float(now), new_evidence=False, settings=SETTINGS)
    assert state.band is Band.NORMAL
    quick = replace(SETTINGS, windows=(timedelta(minutes=10),))  # an observation vouches for five minutes
    for now in range(8000, 8000 + 6 * 900, 900):
        state = next_state(state, 70, at=float(now), new_evidence=True, settings=quick)
        assert state.band is Band.NORMAL, "five minutes of evidence each are not yet thirty after five gaps"
        if now == 8000 + 4 * 900:
            break
    state = next_state(state, 70, at=8000.0 + 5 * 900, new_evidence=True, settings=quick)
    assert state.band is Band.DEGRADING, "six gaps are"


def test_rare_evidence_counts_for_the_time_up_to_it() -> None:
    """A canary every five minutes, judged every 15 seconds: thirty minutes are thirty minutes."""
    state = BandState(band=Band.NORMAL, since=0.0, evidence_at=0.0)
    for now in range(15, 2101, 15):
        state = next_state(state, 70, at=float(now), new_evidence=now % 300 == 0, settings=SETTINGS)
    assert (state.band, state.since) == (Band.DEGRADING, 2100.0)


@pytest.mark.parametrize(("value", "band", "days"), [(0, R, 1), (70, D, 6)])
def test_bursts_once_a_day_without_a_score_between_them_add_up(value: int, band: Band, days: int) -> None:
    """All of a burst comes at once, as one push; each vouches for five minutes, and for an hour of recovery."""
    state, bands_ = BandState(band=Band.NORMAL, since=1.0), []
    for day in range(30):
        at = day * 86400.0
        score = float(value) if day < 10 else 100.0
        state = next_state(state, score, at=at + 15, new_evidence=True, settings=SETTINGS)
        bands_.append(state.band)
        for idle in (30.0, 3600.0):
            state = next_state(state, score, at=at + idle, new_evidence=False, settings=SETTINGS)
        state = next_state(state, None, at=at + 50_000, new_evidence=False, settings=SETTINGS)
    assert bands_[days] is band
    assert set(bands_[:days]) <= {N, U}
    assert bands_[15] is D
    assert set(bands_[16:]) <= {N, U}


def test_a_clock_that_steps_back_loses_no_dwell_and_gains_none() -> None:
    state = BandState(band=Band.NORMAL, since=0.0, evidence_at=10_000.0)
    for now in range(10_060, 10_060 + 16 * 60, 60):  # fifteen minutes of bad score
        state = next_state(state, 70, at=float(now), new_evidence=True, settings=SETTINGS)
    for now in range(5_000, 5_000 + 15 * 60, 60):  # the clock was set back; fourteen minutes more
        state = next_state(state, 70, at=float(now), new_evidence=True, settings=SETTINGS)
        assert state.band is Band.NORMAL
    state = next_state(state, 70, at=5_900.0, new_evidence=True, settings=SETTINGS)
    assert (state.band, state.since) == (Band.DEGRADING, 5_900.0)


def test_a_clock_that_leaps_ahead_gains_what_one_observation_vouches_for() -> None:
    state = BandState(band=Band.NORMAL, since=0.0, evidence_at=0.0)
    state = next_state(state, 70, at=60.0, new_evidence=True, settings=SETTINGS)
    state = next_state(state, 70, at=1e9, new_evidence=True, settings=SETTINGS)
    assert state.band is Band.NORMAL
    assert state.under_degrading == 1e9 - 300


def scores(at: float, score: list[float], recovery: list[float], new: list[bool], window: float = 600.0) -> Scores:
    return Scores(
        at=at, score=np.array(score), recovery=np.array(recovery), window=np.full(len(score), window),
        new_evidence=np.array(new), vouched=bands.vouched(SETTINGS),
    )  # fmt: skip


def test_a_band_ends_by_the_score_that_recovery_is_judged_by() -> None:
    """The longer windows remember what is over: they begin a band, and do not keep it."""
    states = States.of([BandState(band=Band.RESISTING, since=1.0, evidence_at=0.0, shown=600.0)] * 2)
    for minute in range(1, 2 * 366):
        states = next_states(states, scores(minute * MINUTE, [30, 95], [95, 30], [True, True]), SETTINGS)
    after = states.each()
    assert after[0].band is not Band.NORMAL, "a score under 50 goes on to begin its band"
    assert after[1].band is Band.RESISTING, "by the score alone nothing ends"


def test_the_window_that_showed_a_band_is_kept_until_it_ends() -> None:
    state = States.of([BandState(band=Band.NORMAL, since=0.0, evidence_at=0.0)])
    seen = []
    for minute in range(1, 500):
        bad = minute <= 40
        value = [60.0 if bad else 95.0]
        state = next_states(state, scores(minute * MINUTE, value, value, [True], 7200.0 if bad else 600.0), SETTINGS)
        seen.append((BAND[int(state.band[0])], None if np.isnan(state.shown[0]) else float(state.shown[0])))
    assert sorted(set(seen), key=str) == [(D, 7200.0), (N, None)]


BAND = bands.BANDS
TIMES = st.none() | st.floats(1, 1e6)
STATES = st.builds(
    BandState, band=st.sampled_from(BAND), since=st.floats(1, 1e6), held=st.booleans(), under_degrading=TIMES,
    under_resisting=TIMES, over_degrading=TIMES, over_resisting=TIMES, evidence_at=TIMES, eased_at=TIMES, shown=TIMES,
)  # fmt: skip
VALUES = st.just(float("nan")) | st.integers(0, 100).map(float) | st.sampled_from([49.0, 50.0, 55.0, 79.0, 80.0, 85.0])


@given(st.lists(STATES, max_size=20))
def test_states_are_the_same_as_arrays(states: list[BandState]) -> None:
    assert States.of(states).each() == states


@given(st.lists(st.tuples(STATES, VALUES, VALUES, st.booleans()), min_size=1, max_size=8), st.floats(1, 2e6))
def test_sites_do_not_touch_each_other(several: list[tuple[BandState, float, float, bool]], at: float) -> None:
    states, score, recovery, new = (list(column) for column in zip(*several, strict=True))
    together = next_states(States.of(states), scores(at, score, recovery, new), SETTINGS).each()
    alone = [
        next_states(States.of([one]), scores(at, [s], [r], [n]), SETTINGS).each()[0]
        for one, s, r, n in zip(states, score, recovery, new, strict=True)
    ]
    assert together == alone


@given(STATES, VALUES, VALUES, st.floats(1, 2e6))
def test_without_new_evidence_no_band_begins_or_ends(
    state: BandState, score: float, recovery: float, at: float
) -> None:
    after = next_states(States.of([state]), scores(at, [score], [recovery], [False]), SETTINGS).each()[0]
    if state.band in (D, R):
        assert after.band is state.band
        assert after.held == np.isnan(score)
    else:
        assert after.band in (N, U)
        assert (after.band is U) == bool(np.isnan(score) or (state.band is U and score < 80))
    assert after.evidence_at == state.evidence_at


class Counted:
    """The same rules written down with seconds of evidence that are counted in place of clocks."""

    def __init__(self, settings: ScoreSettings) -> None:
        enter, leave, levels = settings.enter_after, settings.leave_after, settings.bands
        vouched = min(settings.windows).total_seconds() / 2
        long = max(3600.0, vouched)
        self.rules: list[tuple[Callable[[float], bool], float, float]] = [
            (lambda s: s < levels.degrading, enter.degrading.total_seconds(), vouched),
            (lambda s: s < levels.resisting, enter.resisting.total_seconds(), vouched),
            (lambda s: s >= levels.leave_degrading, leave.degrading.total_seconds(), long),
            (lambda s: s >= levels.leave_resisting, leave.resisting.total_seconds(), long),
        ]
        self.band = N
        self.seen: float | None = None
        self.dwelt: list[float | None] = [None] * 4

    def step(self, at: float, score: float | None, new: bool) -> Band:
        before = self.band
        if score is None:
            self.band = before if before in (D, R) else U
            return self.band
        gap = 0.0 if self.seen is None else at - self.seen
        for place, (holds, _, bound) in enumerate(self.rules):
            if not holds(score):
                self.dwelt[place] = None
            elif new:
                known = self.dwelt[place]
                self.dwelt[place] = 0.0 if known is None else known + min(max(gap, 0.0), bound)
        if new:
            self.seen = at
            over = [
                spent is not None and spent >= needed
                for spent, (_, needed, _) in zip(self.dwelt, self.rules, strict=True)
            ]
            if before is R:
                self.band = D if over[3] else R
            elif over[1]:
                self.band = R
            elif before is D:
                self.band = N if over[2] else D
            elif over[0]:
                self.band = D
        if before is U and score >= 80:
            self.band = N
        self._changed(before)
        return self.band

    def _changed(self, before: Band) -> None:
        rank = {N: 0, U: 0, D: 1, R: 2}
        if self.band is before:
            return
        if rank[self.band] > rank[before]:
            self.dwelt[2:] = [None, None]
        elif before in (D, R):
            self.dwelt[:2] = [None, None]


STEPS = st.lists(
    st.tuples(
        st.sampled_from([15, 15, 60, 60, 60, 300, 600, 3600, 7200, -30, -3600]),
        st.none() | st.sampled_from([0, 20, 49, 50, 54, 55, 79, 80, 84, 85, 100]),
        st.sampled_from([True, True, True, False]),
        st.integers(1, 12),
    ),
    max_size=10,
)


@given(STEPS, st.sampled_from([0, 5, 30]), st.sampled_from([0, 3]), st.sampled_from([0, 60, 360]))
def test_clocks_do_what_counted_seconds_of_evidence_do(
    steps: list[tuple[int, int | None, bool, int]], degrading: int, resisting: int, leave: int
) -> None:
    """Whatever the clock does: it may stand still, leap, or step back."""
    settings = replace(
        SETTINGS,
        enter_after=EnterAfter(degrading=timedelta(minutes=degrading), resisting=timedelta(minutes=resisting)),
        leave_after=LeaveAfter(degrading=timedelta(minutes=leave), resisting=timedelta(minutes=leave / 60)),
    )
    at, state, counted = 1e6, BandState(band=N, since=1.0), Counted(settings)
    for elapsed, value, new, times in steps:
        for _ in range(times):
            at += elapsed
            state = next_state(state, value, at=at, new_evidence=new, settings=settings)
            assert state.band is counted.step(at, value, new)
            assert state.since <= at


def test_a_slow_return_ends_when_the_site_scores_badly_again() -> None:
    eased = BandState(band=Band.DEGRADING, since=1.0, held=True, evidence_at=1.0, eased_at=500.0)
    for value, kept in ((None, 500.0), (85.0, 500.0), (79.0, None)):
        after = next_state(eased, value, at=600.0, new_evidence=True, settings=SETTINGS)
        assert after.eased_at == kept
    assert (
        next_state(structs.replace(eased, band=R), 20, at=600.0, new_evidence=True, settings=SETTINGS).eased_at is None
    )
