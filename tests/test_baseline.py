from __future__ import annotations

import pytest

from crawlhealth.baseline import learn
from crawlhealth.config import BaselineSettings
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally
from samples import DAY, HOUR, NOW, slot

SETTINGS = BaselineSettings()
TODAY = NOW - DAY  # the excluded day begins here


def hours(count: int, *, before: float = TODAY, requests: int = 100, challenge: int = 0) -> list[Slot]:
    return [
        slot(before - (n + 1) * HOUR, Tally(ok=requests - challenge, challenge=challenge), seconds=HOUR)
        for n in range(count)
    ]


def test_it_is_the_ratio_of_summed_counts_and_not_the_mean_of_ratios() -> None:
    busy, calm = hours(12, requests=1000, challenge=10), hours(12, before=TODAY - 12 * HOUR, requests=10, challenge=5)
    baseline = learn(busy + calm, now=NOW, settings=SETTINGS)
    assert baseline is not None
    assert baseline.rates.challenge == pytest.approx((12 * 10 + 12 * 5) / (12 * 1010))
    assert (baseline.hours, baseline.newest) == (24, TODAY)


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        pytest.param([], None, id="nothing to learn from"),
        pytest.param(hours(23), None, id="23 hours are too few"),
        pytest.param(hours(24), 24, id="24 hours are enough"),
        pytest.param(hours(24, before=NOW), None, id="the last day teaches nothing"),
        pytest.param(hours(23) + hours(1, before=TODAY + HOUR), None, id="an hour that begins in the last day is out"),
        pytest.param(hours(30, requests=9), None, id="hours under ten requests are no hours"),
        pytest.param(hours(24, requests=10), 24, id="hours of ten requests are"),
        pytest.param(hours(500), 336, id="no more than fourteen days"),
        pytest.param(hours(24, before=NOW + 10 * DAY), None, id="hours in the future, of a wrong clock, are out"),
    ],
)
def test_hours(slots: list[Slot], expected: int | None) -> None:
    baseline = learn(slots, now=NOW, settings=SETTINGS)
    assert (None if baseline is None else baseline.hours) == expected


def test_an_hour_is_all_its_routes_and_sources_and_minutes() -> None:
    slots = [
        slot(TODAY - (n + 1) * HOUR + minute * 60, Tally(ok=1), route=route, source=source)
        for n in range(24)
        for minute in (0, 30, 59)
        for route in ("direct", "dc-us")
        for source in Source
    ]
    baseline = learn(slots, now=NOW, settings=SETTINGS)
    assert baseline is not None
    assert baseline.hours == 24
    assert learn(slots[:-10], now=NOW, settings=SETTINGS) is None, "2 requests are left of one hour"


def test_latency_is_the_p95_of_all_hours_merged_and_extraction_the_failed_share() -> None:
    slow = Tally(ok=10, latency={200: 10}, extractions_ok=6, extractions_failed=4)
    fast = Tally(ok=190, latency={100: 190}, extractions_ok=190)
    slots = [slot(h.start, slow if n == 0 else fast, seconds=HOUR) for n, h in enumerate(hours(24))]
    baseline = learn(slots, now=NOW, settings=SETTINGS)
    assert baseline is not None
    assert baseline.rates.latency_p95 == pytest.approx(0.118, rel=0.05), "ten slow ones of 4,380 are no p95"
    assert baseline.rates.extraction == pytest.approx(4 / (10 + 23 * 190))
