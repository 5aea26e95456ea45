"""The timetable: stable phases, politeness, skipped runs; a clock of the test's own."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.canary.timetable import Start, Timetable, keys, next_due, phase_of
from crawlhealth.checks import Selector, ValueSpec
from crawlhealth.config import Canary, Config, Route, Site

OFFSET = 1_796_040_000.0


def site(name: str = "shop", *, gap: float = 0.0, concurrency: int = 2) -> Site:
    return Site(name=name, hosts=("shop.test",), min_gap=timedelta(seconds=gap), max_concurrency=concurrency)


def canary(name: str = "page", *, site: str = "shop", every: float = 60.0, **options: object) -> Canary:
    return Canary(
        name=name, site=site, url="http://shop.test/", every=timedelta(seconds=every), timeout=timedelta(seconds=1),
        **options,  # type: ignore[arg-type]
    )  # fmt: skip


def config(*canaries: Canary, sites: tuple[Site, ...] = (site(),)) -> Config:
    return Config(sites={site.name: site for site in sites}, canaries=canaries)


def play(
    table: Timetable, until: float, *, takes: float = 0.1, begin: float = 0.0
) -> tuple[list[tuple[float, Start]], int]:
    """Run the timetable with runs of `takes` seconds; the starts with their moments, and the number of skipped runs."""
    starts: list[tuple[float, Start]] = []
    ends: list[tuple[float, int, Start]] = []
    skipped, now = 0, begin
    while True:
        fresh, left_out = table.due(now)
        skipped += left_out
        for start in fresh:
            starts.append((now, start))
            heapq.heappush(ends, (now + takes, len(starts), start))
        times = [when for when in (table.next_wake(), ends[0][0] if ends else None) if when is not None]
        now = max(now, min(times, default=until))
        if now >= until:
            return starts, skipped
        while ends and ends[0][0] <= now:
            for start in table.finished(heapq.heappop(ends)[2].key, now):
                starts.append((now, start))
                heapq.heappush(ends, (now + takes, len(starts), start))


def test_starts_are_spread_and_come_at_every_interval() -> None:
    sites = tuple(site(f"site-{n}", concurrency=100) for n in range(20))
    canaries = [canary(f"c{n}", site=f"site-{n % 20}") for n in range(2_000)]
    starts, skipped = play(Timetable(config(*canaries, sites=sites), now=0.0, offset=OFFSET), 180.0)
    assert skipped == 0
    assert len(starts) == pytest.approx(6_000, abs=5)
    per_second = Counter(int(when) for when, _ in starts)
    assert max(per_second.values()) < 3 * len(starts) / 180
    by_canary: dict[str, list[float]] = {}
    for when, start in starts:
        by_canary.setdefault(start.canary.name, []).append(when)
    for moments in by_canary.values():
        assert all(b - a == pytest.approx(60.0, abs=0.001) for a, b in pairwise(moments))


def test_a_phase_is_the_same_in_every_process() -> None:
    assert phase_of(("shop", "page", ("direct",)), 60.0) == pytest.approx(
        phase_of(("shop", "page", ("direct",)), 120.0) / 2
    )
    assert round(phase_of(("shop", "page", ("direct",)), 60.0), 6) == GOLDEN_PHASE


GOLDEN_PHASE = 16.07522


@given(after=st.floats(0, 1e7), every=st.floats(0.1, 1e6), share=st.floats(0, 0.999), offset=st.floats(-1e9, 2e9))
def test_the_next_start_is_later_by_an_interval_at_most(
    after: float, every: float, share: float, offset: float
) -> None:
    due = next_due(after, every, share * every, offset)
    assert after < due <= after + every * 1.001 + 1e-3


def test_politeness_is_kept_and_is_no_lag() -> None:
    table = Timetable(
        config(*(canary(f"c{n}") for n in range(30)), sites=(site(gap=1.0, concurrency=2),)), now=0.0, offset=OFFSET
    )
    starts, _ = play(table, 120.0, takes=3.0)
    moments = [when for when, _ in starts]
    assert all(b - a >= 1.0 - 1e-9 for a, b in pairwise(moments))
    for when in moments:
        assert sum(when - 3.0 < other <= when for other in moments) <= 2
    assert max(when - start.since for when, start in starts) == pytest.approx(0.0, abs=1e-6)


def test_a_run_is_skipped_while_the_one_before_runs() -> None:
    starts, skipped = play(Timetable(config(canary(every=10.0)), now=0.0, offset=OFFSET), 100.0, takes=25.0)
    assert len(starts) == 4
    assert skipped == pytest.approx(6, abs=1)


def test_a_process_that_slept_does_not_burst() -> None:
    table = Timetable(
        config(*(canary(f"c{n}") for n in range(500)), sites=(site(concurrency=1000),)), now=0.0, offset=OFFSET
    )
    play(table, 60.0)
    starts, skipped = table.due(300.0)
    assert skipped + len(starts) == 500
    assert len(starts) < 60, "only what is late by less than five seconds"


def test_a_reload_keeps_phases_and_what_runs() -> None:
    before = config(canary("stays"), canary("goes"))
    table = Timetable(before, now=0.0, offset=OFFSET)
    first, _ = play(table, 61.0)
    moments = {start.canary.name: when for when, start in first}
    table.replace(config(canary("stays", page_type="new"), canary("comes")), 70.0)
    later, skipped = play(table, 130.0, begin=70.0)
    again = {start.canary.name: when for when, start in later}
    assert set(again) == {"stays", "comes"}
    assert (again["stays"] - moments["stays"]) % 60.0 == pytest.approx(0.0, abs=1e-6)
    assert {start.canary.page_type for _, start in later if start.canary.name == "stays"} == {"new"}
    assert skipped == 0


def test_a_run_under_way_when_its_canary_goes_and_comes_back_is_not_doubled() -> None:
    table = Timetable(config(canary(every=10.0)), now=0.0, offset=OFFSET)
    wake = table.next_wake()
    assert wake is not None
    (start,), _ = table.due(wake)
    table.replace(config(), wake + 1)
    table.replace(config(canary(every=10.0)), wake + 2)
    starts, skipped = table.due(wake + 10.5)
    assert (starts, skipped) == ([], 1)
    assert table.finished(start.key, wake + 11) == []
    assert len(table.due(wake + 20.5)[0]) == 1


def test_a_changed_interval_takes_effect() -> None:
    table = Timetable(config(canary(every=3600.0)), now=0.0, offset=OFFSET)
    table.replace(config(canary(every=10.0)), 0.0)
    starts, _ = play(table, 100.0)
    assert len(starts) == 10


def test_retry_after_keeps_a_canary_away_and_is_not_a_skip() -> None:
    table = Timetable(config(canary(every=10.0)), now=0.0, offset=OFFSET)
    wake = table.next_wake()
    assert wake is not None
    (start,), _ = table.due(wake)
    table.finished(start.key, wake + 1, retry_after=35.0)
    starts, skipped = play(table, wake + 100, begin=wake + 1)
    assert starts[0][0] == pytest.approx(wake + 40.0)
    assert skipped == 0


def test_routes_that_must_agree_are_one_job() -> None:
    value = ValueSpec(name="v", selector=Selector(kind="css", expression="h1"), same_on=("direct", "dc"))
    together = canary(routes=("direct", "eu", "dc"), expect=(value,))
    assert keys(together) == (("shop", "page", ("eu",)), ("shop", "page", ("direct", "dc")))
    routes = {name: Route(name=name) for name in ("direct", "eu", "dc")}
    table = Timetable(replace(config(together), routes=routes), now=0.0, offset=OFFSET)
    starts, _ = play(table, 60.0)
    assert sorted(start.key[2] for _, start in starts) == [("direct", "dc"), ("eu",)]
