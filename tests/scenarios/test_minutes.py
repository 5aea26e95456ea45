"""Incidents, silence, rare traffic and what is no incident: by the minute, each with its band, first reason and delay.

All sites are replayed side by side: 16 days as ever by the hour, eight hours of stories by the minute, and by the hour
from there on. The shapes of incidents are those that crawlers have told of.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from crawlhealth.outcome import Source
from crawlhealth.verdict import Band, Signal, Unknown
from stories import CALM, SETTINGS, Course, Stories, Told, Way, always, crawl

N, D, R, U = Band.NORMAL, Band.DEGRADING, Band.RESISTING, Band.UNKNOWN
NEVER = float("inf")
OUTAGE = tuple(f"behind the same CDN {number}" for number in range(5))
BURST = 1 / 6
MINUTES = 8
LATER = 50


def canaries(runs: float, *, refused: bool) -> tuple[Way, ...]:
    story = always(0.0, 1.0) if refused else always()
    return crawl(runs, story, usual=(0.0, 0.0, 0.0, 0.01), source=Source.CANARY, timetable=True, rho=1e-4)


def two_routes(volume: float, *, first: float, then: float) -> tuple[Way, ...]:
    """A slow route where a fifth is challenged and a fast one that refuses little, and the share of the slow one."""
    return (
        Way(volume=lambda hour: volume * (first if hour < 0 else then), shares=always(0.02, 0.20, 0.01, 0.01),
            seconds=lambda _: 3.0),
        Way(volume=lambda hour: volume * (1 - (first if hour < 0 else then)), shares=always(*CALM),
            seconds=lambda _: 0.3, route="dc-us"),
    )  # fmt: skip


SITES: dict[str, tuple[Way, ...]] = {
    "half served": crawl(200, always(0.5), usual=(0.1, 0.0, 0.0, 0.01)),
    "half served, busy": crawl(2000, always(0.5), usual=(0.1, 0.0, 0.0, 0.01)),
    "251 of 251": crawl(470, always(1.0), stops=(32 / 60, 1e9)),
    "all challenged": crawl(200, always(0.0, 1.0)),
    "all soft blocks": crawl(200, always(0.0, 0.0, 1.0)),
    "all refused, busy": crawl(2000, always(0.4, 0.3, 0.3)),
    "all refused, rare": crawl(60, always(1.0)),
    "fast ban": crawl(500, always(1.0), seconds=lambda hour: 0.8 if hour < 0 else 0.05),
    "fast ban of most": crawl(500, always(0.7), seconds=lambda hour: 0.8 if hour < 0 else 0.05),
    "step": crawl(200, always(0.01, 0.22, 0.01, 0.01)),
    "step, busy": crawl(2000, always(0.01, 0.22, 0.01, 0.01)),
    "slow": crawl(500, always(*CALM), seconds=lambda hour: 0.4 if hour < 0 else 3.0),
    "bursts of refusals": crawl(200, lambda hour: (0.6, 0.0, 0.0, 0.0) if hour % 1 < BURST and hour < 8 else CALM),
    "bursts, busy": crawl(2000, lambda hour: (0.6, 0.0, 0.0, 0.0) if hour % 1 < BURST and hour < 8 else CALM),
    **{name: crawl(200, lambda hour: (0.0, 0.0, 0.0, 1.0) if hour < 3 else CALM) for name in OUTAGE},
    "timeouts": crawl(200, always(0.0, 0.0, 0.0, 0.9)),
    "refused, then timeouts": crawl(500, lambda hour: (1.0, 0.0, 0.0, 0.0) if hour < 2 else (0.05, 0.0, 0.0, 0.9)),
    "one bad minute": crawl(2000, lambda hour: (1.0, 0.0, 0.0, 0.0) if 1 <= hour < 1 + 1 / 60 else CALM),
    "backs off": crawl(200, always(1.0), slower=(0.1, 20.0)),
    **{f"refused for 3 hours, then silence at {v}": crawl(v, always(1.0), stops=(3, 1e9)) for v in (60, 200, 2000)},
    **{f"a step, then silence at {v}": crawl(v, always(0.01, 0.27), stops=(8, 1e9)) for v in (60, 200, 2000)},
    **{f"12 minutes, then silence at {v}": crawl(v, always(1.0), stops=(0.2, 1e9)) for v in (500, 2000)},
    **{f"silence at {v}": crawl(v, always(*CALM), stops=(0, 1e9)) for v in (60, 2000)},
    **{f"{runs} canaries, refused": canaries(runs, refused=True) for runs in (4, 12, 24)},
    **{f"{runs} canaries, served": canaries(runs, refused=False) for runs in (4, 12, 24)},
    "to the fast route": two_routes(500, first=0.85, then=0.15),
    "to the slow route": two_routes(500, first=0.15, then=0.85),
    "as ever on two routes": two_routes(500, first=0.5, then=0.5),
    "as ever": crawl(200, always(*CALM), seconds=lambda _: 0.4),
}


@cache
def told() -> Told:
    stories = Stories(SITES)
    stories.minutes(MINUTES)
    return stories.hourly(LATER)


def course(site: str) -> Course:
    return told().of(site).within(0)


@pytest.mark.parametrize(
    ("site", "band", "within", "reason"),
    [
        pytest.param("half served", D, 1.5, Signal.HARD_BLOCK, id="success from 90 % to 50 % at once, all 429"),
        pytest.param("half served, busy", D, 1.25, Signal.HARD_BLOCK, id="the same with 2,000 an hour"),
        pytest.param("251 of 251", R, 0.4, Signal.HARD_BLOCK, id="169 x 403 and 82 x 406 of 251"),
        pytest.param("all challenged", R, 1.0, Signal.CHALLENGE, id="challenge pages with 200 and no items"),
        pytest.param("all soft blocks", R, 1.0, Signal.SOFT_BLOCK, id="decoys"),
        pytest.param("all refused, busy", R, 20 / 60, Signal.HARD_BLOCK, id="all ways at once: the dearest first"),
        pytest.param("all refused, rare", R, 3.0, Signal.HARD_BLOCK, id="60 an hour"),
        pytest.param("fast ban", R, 0.4, Signal.HARD_BLOCK, id="403 in 50 ms"),
        pytest.param("fast ban of most", R, 1.0, Signal.HARD_BLOCK, id="403 in 50 ms for seven of ten"),
        pytest.param("step", D, 8.0, Signal.CHALLENGE, id="20 points more challenges"),
        pytest.param("step, busy", D, 3.5, Signal.CHALLENGE, id="the same with 2,000 an hour"),
        pytest.param("backs off", D, 4.0, Signal.HARD_BLOCK, id="a crawler that backs off"),
        pytest.param("backs off", R, 10.0, Signal.HARD_BLOCK, id="a crawler that backs off, in the end"),
        pytest.param("12 canaries, refused", D, 4.0, Signal.CHALLENGE, id="12 canaries an hour"),
        pytest.param("24 canaries, refused", R, 4.0, Signal.CHALLENGE, id="24 canaries an hour"),
    ],
)
def test_an_incident_is_found_in_time_for_its_reason(site: str, band: Band, within: float, reason: Signal) -> None:
    seen = course(site)
    assert seen.begins(*((R,) if band is R else (D, R))) <= within
    assert seen.first_reason is reason


@pytest.mark.parametrize("site", ["half served", "half served, busy", "step", "step, busy", "all challenged"])
def test_it_stays_outside_normal_for_as_long_as_it_lasts(site: str) -> None:
    seen = course(site)
    assert set(seen.within(seen.outside).bands) <= {D, R}


@pytest.mark.parametrize(
    "site", ["all challenged", "all soft blocks", "all refused, busy", "fast ban", "all refused, rare"]
)
def test_a_site_that_refuses_everything_ends_at_a_score_of_10_at_most(site: str) -> None:
    assert np.nanmax(course(site).within(8).scores) <= 10


def test_refusals_that_come_fast_are_no_good_latency() -> None:
    assert course("fast ban").points[:, 3].max() == 0
    assert course("fast ban of most").points[:, 3].max() == 0


def test_latency_alone_is_a_reason_and_no_band() -> None:
    seen = course("slow")
    assert set(seen.bands) == {N}
    assert seen.within(4, 8).points[:, 3].min() > 12
    assert np.median(seen.within(4, 8).scores) >= 84


@pytest.mark.parametrize("site", ["bursts of refusals", "bursts, busy"])
def test_a_burst_of_refusals_each_hour_is_warned_of_early_and_pauses_nobody(site: str) -> None:
    """A tenth of all is refused: 17.5 points. It is for a person to see, and no reason to stop."""
    seen = course(site)
    assert R not in seen.bands
    warned = seen.hours[np.flatnonzero(seen.drift > SETTINGS.drift_threshold)[0]]
    assert warned < 3
    assert seen.within(4, 8).points[:, 0].max() > 10
    changes = sum(a is not b for a, b in zip(seen.bands, seen.bands[1:], strict=False))
    assert changes <= 2, "nor does it flap"


@pytest.mark.parametrize("site", OUTAGE)
def test_an_outage_of_a_cdn_is_not_hostility(site: str) -> None:
    seen = course(site)
    assert set(seen.bands) == {N, U}, "no bad band, and no score"
    down = seen.within(1, 3)
    assert set(down.unknown) == {Unknown.MOSTLY_ERRORS}
    assert set(down.bands) == {U}
    assert seen.within(3).begins(N) < 4.5
    assert set(seen.within(4.5).bands) == {N}


def test_timeouts_are_unknown_and_hold_a_bad_band() -> None:
    assert set(course("timeouts").within(1).unknown) == {Unknown.MOSTLY_ERRORS}
    assert not {D, R} & set(course("timeouts").bands)
    refused = course("refused, then timeouts")
    assert refused.begins(R) < 0.5
    assert set(refused.within(0.5).bands) == {R}
    after = refused.within(4)
    assert set(after.unknown) == {Unknown.MOSTLY_ERRORS}
    assert after.held.all()


def test_one_bad_minute_changes_no_band() -> None:
    assert set(course("one bad minute").bands) == {N}


@pytest.mark.parametrize("volume", [60, 200, 2000])
@pytest.mark.parametrize(
    ("story", "stops", "worst"),
    [("refused for 3 hours, then silence at", 3, R), ("a step, then silence at", 8, D)],
)
def test_silence_never_recovers_anything(story: str, stops: float, worst: Band, volume: int) -> None:
    """Two hours and two days after the last request the band is what it was, and the score is as bad or none."""
    seen = course(f"{story} {volume}")
    assert seen.within(0, stops).bands[-1] is worst
    silent = seen.within(stops)
    assert silent.hours[-1] - stops >= 48
    assert set(silent.bands) == {worst}
    assert not np.any(silent.scores >= (50 if worst is R else 80))
    known = ~np.isnan(silent.scores)
    assert (silent.held == ~known).all()
    if volume < 2000:
        assert not known[-1], "when too little is left there is no score"


@pytest.mark.parametrize("volume", [500, 2000])
def test_silence_raises_no_score_either(volume: int) -> None:
    seen = course(f"12 minutes, then silence at {volume}")
    last = seen.within(0, 0.2).scores[-1]
    assert last < 50
    assert not np.any(seen.within(0.2).scores > last)


def test_a_site_that_nobody_asks_any_more_becomes_unknown_and_nothing_else() -> None:
    for volume in (60, 2000):
        seen = course(f"silence at {volume}")
        assert set(seen.bands) <= {N, U}
        assert np.nanmin(seen.scores) >= 90
    assert course("silence at 60").bands[-1] is U


def test_four_canaries_an_hour_are_too_few_for_a_score() -> None:
    """What leads such a site is the rule of refused runs in a row, which is no matter of windows."""
    for story in ("refused", "served"):
        seen = course(f"4 canaries, {story}")
        assert set(seen.unknown) == {Unknown.NOT_ENOUGH_REQUESTS}
        assert set(seen.bands) == {U}


@pytest.mark.parametrize("runs", [12, 24])
def test_canaries_alone_make_a_score(runs: int) -> None:
    seen = course(f"{runs} canaries, served")
    assert set(seen.bands) == {N}
    assert np.nanmin(seen.scores) >= 95
    assert course(f"{runs} canaries, refused").begins(R) < 9


@pytest.mark.parametrize("site", ["to the fast route", "to the slow route"])
def test_traffic_that_moves_to_another_route_moves_nothing(site: str) -> None:
    seen, control = course(site), course("as ever on two routes")
    assert set(seen.bands) == {N}
    assert np.nanmin(seen.scores) >= 85
    assert seen.scores.mean() >= control.scores.mean() - 3
    assert seen.points[:, 3].max() <= control.points[:, 3].max() + 1


def warned_when_traffic_moves(site: str) -> bool:
    return bool(np.nanmax(course(site).drift) > SETTINGS.drift_threshold)


def test_traffic_that_moves_to_the_calmer_route_warns_nobody() -> None:
    assert not warned_when_traffic_moves("to the fast route")


def test_nor_does_traffic_that_moves_to_the_more_restless_one() -> None:
    assert not warned_when_traffic_moves("to the slow route")


@pytest.mark.parametrize("site", ["as ever", "as ever on two routes"])
def test_a_site_as_ever_is_normal(site: str) -> None:
    seen = course(site)
    assert set(seen.bands) == {N}
    assert seen.scores.mean() > 97
    assert seen.outside == NEVER
