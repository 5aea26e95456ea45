"""Windows against sums written down from the formula, for any slots in any order."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth import stats
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally
from crawlhealth.weighted import Sums, View, by_route, of_source
from crawlhealth.windows import Arrays, Windows
from samples import DAY, HOUR, NOW, slot

LIVES = (600.0, 1800.0, 7200.0, 21600.0)
MINUTE = 60.0


def windows(*slots: Slot, lives: tuple[float, ...] = LIVES) -> Windows:
    made = Windows(lives, resolution=MINUTE)
    made.add(slots)
    return made


def view(made: Windows, now: float = NOW, *, site: str = "books", enough: float = 1) -> tuple[View, ...]:
    (views,) = made.read([site], now, enough=enough)
    return views


def weight(seen: Slot, now: float, half_life: float, power: int = 1) -> float:
    """The mean weight of the minutes that a slot stands for, each by its start."""
    minutes = max(1, round(seen.seconds / MINUTE))
    return math.fsum(2 ** (-power * (now - seen.start - n * MINUTE) / half_life) for n in range(minutes)) / minutes


COUNT = st.integers(min_value=0, max_value=1000)
TALLIES = st.builds(
    Tally, ok=COUNT, hard_block=COUNT, challenge=COUNT, error=COUNT, extractions_failed=COUNT, bytes=COUNT,
    credits=st.floats(0, 1000), latency=st.dictionaries(st.integers(0, len(stats.BOUNDS)), COUNT, max_size=5),
)  # fmt: skip
SLOTS = st.lists(
    st.builds(
        slot,
        st.integers(min_value=0, max_value=3 * 1440).map(lambda minutes: NOW - minutes * MINUTE),
        TALLIES,
        seconds=st.sampled_from([MINUTE, HOUR]),
        site=st.sampled_from(["books", "quotes"]),
        route=st.sampled_from(["direct", "dc-us"]),
        source=st.sampled_from(list(Source)),
    ),
    max_size=30,
)


@given(slots=SLOTS, batch=st.integers(min_value=1, max_value=7))
def test_sums_are_those_of_the_formula(slots: list[Slot], batch: int) -> None:
    made = Windows(LIVES, resolution=MINUTE)
    for first in range(0, len(slots), batch):
        made.add(slots[first : first + batch])
    for seen in view(made):
        own = [s for s in slots if s.site == "books"]
        for name in ("ok", "challenge", "error", "extractions_failed", "bytes", "credits"):
            expected = math.fsum(getattr(s.tally, name) * weight(s, NOW, seen.half_life) for s in own)
            assert getattr(seen.total, name) == pytest.approx(expected, rel=1e-9, abs=1e-9), name
        answered = math.fsum((s.tally.requests - s.tally.error) * weight(s, NOW, seen.half_life, power=2) for s in own)
        assert seen.total.answered_squares == pytest.approx(answered, rel=1e-9, abs=1e-9)
        for key, sums in seen.strata.items():
            expected = math.fsum(
                s.tally.requests * weight(s, NOW, seen.half_life) for s in own if (s.route, s.source) == key
            )
            assert sums.requests == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(slots=SLOTS)
def test_reading_many_sites_is_reading_each(slots: list[Slot]) -> None:
    made = windows(*slots)
    names = ["quotes", "unknown", "books"] * 100
    for site, views in zip(names, made.read(names, NOW, enough=1), strict=True):
        assert [(v.total, v.strata, v.latency_p95) for v in views] == [
            (v.total, v.strata, v.latency_p95) for v in view(made, site=site)
        ]


@given(histogram=st.dictionaries(st.integers(0, len(stats.BOUNDS)), st.integers(1, 500), min_size=1, max_size=30))
def test_latency_is_the_quantile_of_the_histogram(histogram: dict[int, int]) -> None:
    made = windows(slot(NOW, Tally(ok=sum(histogram.values()), latency=histogram)))
    assert view(made)[0].latency_p95 == stats.quantile(histogram, 0.95)


def test_latency_is_read_where_there_is_enough() -> None:
    made = windows(slot(NOW - 600, Tally(ok=80, latency={100: 80})))
    assert [seen.latency_p95 is not None for seen in view(made, enough=50)] == [False, True, False, False]


def test_a_month_of_minutes_stays_exact() -> None:
    """The weights grow by 2 to the 4,320 for a half-life of ten minutes: their landmark has to move."""
    made = Windows(LIVES, resolution=MINUTE)
    for minute in range(30 * 1440, 0, -7):
        made.add([slot(NOW - minute * MINUTE, Tally(ok=7, latency={150: 7}))])
    shortest, *_, longest = view(made)
    ten_minutes = math.fsum(7 * 2 ** (-m / 10) for m in range(30 * 1440, 0, -7))
    assert shortest.total.ok == pytest.approx(ten_minutes, rel=1e-9)
    expected = math.fsum(7 * 2 ** (-m * MINUTE / longest.half_life) for m in range(30 * 1440, 0, -7))
    assert longest.total.ok == pytest.approx(expected, rel=1e-9)
    assert longest.latency_p95 is None
    assert shortest.latency_p95 == pytest.approx(stats.middle(150))


def test_what_comes_late_counts_as_if_it_had_come_in_time() -> None:
    early, late = slot(NOW - 5 * HOUR, Tally(ok=10)), slot(NOW, Tally(ok=20))
    assert [v.total for v in view(windows(early, late))] == [v.total for v in view(windows(late, early))]


def test_a_site_that_is_forgotten_is_empty_and_others_are_not() -> None:
    made = windows(slot(NOW, Tally(ok=1, latency={9: 1})), slot(NOW, Tally(ok=2), site="quotes"))
    made.forget("books")
    assert (view(made)[0].total, view(made)[0].latency_p95) == (Sums(), None)
    assert view(made, site="quotes")[0].total.ok == 2


def test_arrays_come_back_and_leave_out_what_has_vanished() -> None:
    made = windows(slot(NOW - 3650 * DAY, Tally(ok=1), site="old"), lives=LIVES)
    made.add([slot(NOW, Tally(ok=2, latency={9: 2}))])
    kept = made.arrays()
    assert kept.keys == [("books", "direct", Source.TRAFFIC)]
    assert isinstance(kept, Arrays)
    again = Windows(LIVES, resolution=MINUTE, arrays=kept)
    again.add([slot(NOW + 60, Tally(ok=1))])
    made.add([slot(NOW + 60, Tally(ok=1))])
    assert [v.total for v in view(again, NOW + 60)] == [v.total for v in view(made, NOW + 60)]


def test_routes_and_sources_are_told_apart() -> None:
    seen, *_ = view(
        windows(
            slot(NOW, Tally(ok=3)),
            slot(NOW, Tally(ok=4), source=Source.CANARY),
            slot(NOW, Tally(error=5), route="dc-us"),
            slot(NOW, Tally(bytes=9), route="idle"),
        )
    )
    assert {route: sums.requests for route, sums in by_route(seen.strata).items()} == {"direct": 7, "dc-us": 5}
    assert (of_source(seen.strata, Source.CANARY).ok, of_source(seen.strata, Source.TRAFFIC).requests) == (4, 8)
