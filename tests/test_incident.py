"""Incidents as verdicts make them: when one begins and ends, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.incident import MOST_CHANGES, Incident, Incidents, Warned
from crawlhealth.verdict import NEUTRAL, Advice, Band, BandState, Diagnosis, Penalty, Signal, Verdict
from samples import DAY, HOUR, NOW

N, D, R, U = Band.NORMAL, Band.DEGRADING, Band.RESISTING, Band.UNKNOWN
STOP = Advice(concurrency_ratio=0.0, paused=True)
SLOW = Advice(concurrency_ratio=0.5)


def verdict(
    at: float,
    band: Band,
    *,
    site: str = "books",
    score: int | None = None,
    points: Mapping[Signal, float] | None = None,
    advice: Advice = NEUTRAL,
    diagnosis: Diagnosis = Diagnosis.NONE,
    maintenance: bool = False,
    z: float | None = None,
    since: float | None = None,
) -> Verdict:
    reasons = tuple(Penalty(signal=s, points=p, now=0.3, baseline=0.02) for s, p in (points or {}).items())
    return Verdict(
        site=site, at=at, state=BandState(band=band, since=at if since is None else since, held=score is None),
        score=score, reasons=reasons, advice=advice, diagnosis=diagnosis, maintenance=maintenance,
        drift={} if z is None else {Signal.CHALLENGE: z, Signal.REFUSED: -1.0},
    )  # fmt: skip


def follow(verdicts: Iterable[Verdict], incidents: Incidents | None = None) -> list[Incident]:
    """Every incident of these verdicts in its last state, in the order of their beginnings."""
    incidents = Incidents() if incidents is None else incidents
    last: dict[tuple[str, float], Incident] = {}
    before: dict[str, Verdict] = {}
    for each in verdicts:
        found = incidents.take(before.get(each.site), each)
        before[each.site] = each
        if found is not None:
            last[found.site, found.start] = found
    return list(last.values())


def every_minute(bands: Iterable[Band]) -> Iterator[Verdict]:
    return (verdict(NOW + 60 * number, band) for number, band in enumerate(bands))


def minutes(found: Sequence[Incident]) -> list[tuple[float, float | None]]:
    return [((one.start - NOW) / 60, None if one.end is None else (one.end - NOW) / 60) for one in found]


@pytest.mark.parametrize(
    ("bands", "stays"),
    [
        pytest.param([N, N, U, N], [], id="a site that stays well has none"),
        pytest.param([N, D, D, N], [(1, 3)], id="from the first bad verdict to the first good one"),
        pytest.param([N, D, R, D, N], [(1, 4)], id="a slide to resisting and back is one"),
        pytest.param([N, D, N, D, N, R, N], [(1, 2), (3, 4), (5, 6)], id="flapping is as many as it is"),
        pytest.param([U, R, R], [(1, None)], id="from unknown, and still on"),
        pytest.param([N, R, U, U, D, N], [(1, 2), (4, 5)], id="unknown, as after an acceptance, ends it"),
        pytest.param([D, D], [(0, None)], id="bad at the first verdict"),
    ],
)
def test_a_stay_outside_normal_is_an_incident(bands: list[Band], stays: list[tuple[float, float | None]]) -> None:
    assert minutes(follow(every_minute(bands))) == stays


def test_a_band_that_is_held_keeps_its_incident_open_with_the_reasons_it_had() -> None:
    points = {Signal.CHALLENGE: 25.0}
    (found,) = follow(
        [
            verdict(NOW, N, score=100),
            verdict(NOW + 60, D, score=70, points=points),
            verdict(NOW + 120, D),
            verdict(NOW + DAY, D),
        ]
    )
    assert (found.end, found.worst_score, found.reasons) == (None, 70, ((NOW + 60, ((Signal.CHALLENGE, 25.0),)),))


def test_what_is_kept_of_an_incident() -> None:
    (found,) = follow(
        [
            verdict(NOW, N, score=90),
            verdict(NOW + 60, D, score=74, points={Signal.REFUSED_CAP: 15, Signal.CHALLENGE: 11}, advice=SLOW,
                    diagnosis=Diagnosis.ROUTE),
            verdict(NOW + 120, D, score=72, points={Signal.REFUSED_CAP: 17, Signal.CHALLENGE: 13}, advice=SLOW),
            verdict(NOW + 180, R, score=20, points={Signal.REFUSED_CAP: 55, Signal.CHALLENGE: 25}, advice=STOP,
                    diagnosis=Diagnosis.SITE),
            verdict(NOW + 240, R, score=9, points={Signal.HARD_BLOCK: 35, Signal.REFUSED_CAP: 56}, advice=STOP),
            verdict(NOW + 300, R, score=9, points={Signal.HARD_BLOCK: 35, Signal.REFUSED_CAP: 56}, advice=STOP),
            verdict(NOW + 360, D, score=60, points={Signal.HARD_BLOCK: 35}, advice=SLOW),
            verdict(NOW + 420, N, score=88),
        ]
    )  # fmt: skip
    assert (found.start, found.end, found.name) == (NOW + 60, NOW + 420, "2026-11-30T12:01:00Z")
    assert (found.worst_score, found.worst_band, found.worst_at) == (9, R, NOW + 240)
    assert (found.degrading_at, found.resisting_at) == (NOW + 60, NOW + 180)
    assert found.first_reason is Signal.CHALLENGE, "the cap says nothing that the others do not"
    assert [at - NOW for at, _ in found.reasons] == [60, 180, 240, 360], "a move of two points is no change"
    assert found.reasons[1][1] == ((Signal.REFUSED_CAP, 55), (Signal.CHALLENGE, 25))
    assert [(at - NOW, advice) for at, advice in found.advice] == [(60, SLOW), (180, STOP), (360, SLOW)]
    assert found.diagnosis is Diagnosis.SITE
    assert found.paused_seconds == 180
    assert found.seconds(NOW + DAY) == 360


def test_an_incident_without_a_score_has_no_first_reason_and_its_worst_is_its_worst_band() -> None:
    (found,) = follow([verdict(NOW, U), verdict(NOW + 60, D), verdict(NOW + 120, R, advice=STOP)])
    assert (found.first_reason, found.worst_score, found.worst_band) == (None, None, R)
    assert found.worst_at == NOW + 120
    assert found.paused(NOW + 180) == 60, "a pause that is on counts up to now"


def test_the_cap_is_the_first_reason_where_it_stands_alone() -> None:
    (found,) = follow([verdict(NOW, N), verdict(NOW + 60, D, score=70, points={Signal.REFUSED_CAP: 30})])
    assert found.first_reason is Signal.REFUSED_CAP


def test_changes_are_bounded_and_the_last_ones_are_kept() -> None:
    swings = [
        verdict(NOW + number, D, score=70, points={Signal.CHALLENGE: 10.0 * (number % 3)},
                advice=STOP if number % 2 else SLOW)
        for number in range(1000)
    ]  # fmt: skip
    (found,) = follow(swings)
    assert (len(found.reasons), len(found.advice)) == (MOST_CHANGES, MOST_CHANGES)
    assert (found.reasons[-1][0], found.advice[-1][0]) == (NOW + 999, NOW + 999)
    assert found.paused(NOW + 999) == 499, "though the changes themselves are gone"
    assert len(msgspec.msgpack.encode(found)) < 20_000


def test_a_verdict_that_changes_nothing_brings_nothing() -> None:
    incidents = Incidents()
    first = verdict(NOW, D, score=70, points={Signal.LATENCY: 15}, advice=SLOW)
    assert incidents.take(None, first) is not None
    again = verdict(NOW + 15, D, score=71, points={Signal.LATENCY: 14}, advice=Advice(concurrency_ratio=0.55))
    assert incidents.take(first, again) is None
    well = verdict(NOW, N, site="quotes")
    assert incidents.take(None, well) is None


def test_under_maintenance_nothing_begins_and_what_is_seen_is_not_held_against_the_site() -> None:
    seen = [
        verdict(NOW, D, score=40, maintenance=True),
        verdict(NOW + 60, D, score=70),
        verdict(NOW + 120, D, score=10, points={Signal.HARD_BLOCK: 35}, maintenance=True, diagnosis=Diagnosis.SITE),
        verdict(NOW + 180, N, score=90),
    ]
    (found,) = follow(seen)
    assert (found.start, found.end) == (NOW + 60, NOW + 180)
    assert (found.worst_score, found.reasons[-1][0], found.diagnosis) == (70, NOW + 60, Diagnosis.NONE)


def test_a_restart_neither_splits_nor_doubles_an_incident() -> None:
    bands = [N, D, D, R, D, N, D]
    whole = follow(every_minute(bands))
    for cut in range(len(bands) + 1):
        verdicts = list(every_minute(bands))
        last: dict[float, Incident] = {}
        incidents, previous = Incidents(), None
        for number, each in enumerate(verdicts):
            if number == cut:
                stored = [msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=Incident) for one in last.values()]
                incidents = Incidents(one for one in stored if one.end is None)
            found = incidents.take(previous, each)
            previous = each
            if found is not None:
                last[found.start] = found
        assert list(last.values()) == whole, cut


def test_an_incident_that_nobody_followed_began_with_its_band() -> None:
    before = verdict(NOW - 60, D, since=NOW - HOUR)
    found = Incidents().take(before, verdict(NOW, D, since=NOW - HOUR, score=60))
    assert found is not None
    assert (found.start, found.degrading_at, found.worst_at) == (NOW - HOUR, NOW - HOUR, NOW)


@pytest.mark.parametrize(
    ("course", "warned"),
    [
        pytest.param([(0, 4.0), (5, 4.0)], 0, id="on when the incident begins"),
        pytest.param([(0, 4.0), (1, 1.0), (24, 1.0)], 0, id="off for less than a day"),
        pytest.param([(0, 4.0), (1, 1.0), (25, 1.0)], None, id="off for a day"),
        pytest.param([(0, 4.0), (1, 1.0), (3, 4.0), (5, 4.0)], 3, id="the last one counts"),
        pytest.param([(0, 2.9), (5, 2.9)], None, id="never on"),
        pytest.param([(0, 4.0), (1, None), (2, None)], 0, id="known no more is off"),
        pytest.param([(0, float("nan")), (5, float("nan"))], None, id="what is no number warns of nothing"),
    ],
)
def test_an_early_warning_counts_for_the_incident_that_it_led_to(
    course: list[tuple[float, float | None]], warned: float | None
) -> None:
    last = course[-1][0]
    well = [verdict(NOW + hours * HOUR, N, z=z) for hours, z in course]
    (found,) = follow([*well, verdict(NOW + last * HOUR + HOUR / 2, D, z=course[-1][1])])
    assert found.warned_at == (None if warned is None else NOW + warned * HOUR)


def test_a_warning_that_outlives_its_incident_warns_of_the_next_one_from_then_on() -> None:
    course = [(N, 0), (D, 1), (N, 2), (D, 3)]
    first, second = follow(verdict(NOW + hours * HOUR, band, z=5.0) for band, hours in course)
    assert (first.warned_at, second.warned_at) == (NOW, NOW + 2 * HOUR)


def test_warnings_come_back_after_a_restart() -> None:
    incidents = Incidents()
    incidents.take(None, verdict(NOW, N, z=9.0))
    assert incidents.warnings() == {"books": Warned(since=NOW)}
    assert incidents.warnings() == {}, "told once"
    again = Incidents((), {"books": Warned(since=NOW)})
    (found,) = follow([verdict(NOW + HOUR, N, z=9.0), verdict(NOW + 2 * HOUR, D, z=9.0)], again)
    assert found.warned_at == NOW
    follow([verdict(NOW + 3 * HOUR, N, z=0.0), verdict(NOW + 3 * DAY, N, z=0.0)], again)
    assert again.warnings() == {"books": None}


def test_an_incident_ends_after_it_began_though_the_clock_steps_back() -> None:
    (found,) = follow([verdict(NOW, D, score=70, advice=STOP), verdict(NOW - HOUR, R, score=10, advice=STOP),
                       verdict(NOW - HOUR + 1, N)])  # fmt: skip
    assert found.end is not None
    assert found.start <= found.worst_at < found.end
    assert found.paused_seconds < 1


@given(
    st.lists(
        st.tuples(st.sampled_from(Band), st.floats(min_value=0.5, max_value=1e6), st.booleans(), st.integers(0, 100)),
        max_size=40,
    ),
    st.integers(min_value=0, max_value=40),
)
def test_incidents_are_the_stays_and_never_overlap(course: list[tuple[Band, float, bool, int]], cut: int) -> None:
    at, stays, band, verdicts = NOW, 0, Band.UNKNOWN, []
    for wanted, step, maintenance, score in course:
        at += step
        after = band if maintenance else wanted  # as the judge has it: under maintenance the band stands still
        stays += after in (D, R) and band not in (D, R)
        band = after
        verdicts.append(verdict(at, band, score=score or None, maintenance=maintenance))
    first = follow(verdicts[:cut])
    incidents = Incidents(one for one in first if one.end is None)
    second = follow(verdicts[cut:], incidents)
    found = sorted({one.start: one for one in (*first, *second)}.values(), key=lambda one: one.start)
    assert len(found) == stays
    assert all(one.end is None or one.start < one.end for one in found)
    assert all(one.end is not None and one.end <= after.start for one, after in pairwise(found))
    assert (bool(found) and found[-1].end is None) == (band in (D, R))
    assert all(one.start <= one.worst_at <= (one.end or at) for one in found)
