"""What an export says of past volumes: what the rules themselves record of the same counts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from crawlhealth import metrics
from crawlhealth.bundle import volume
from crawlhealth.bundle.model import Options
from crawlhealth.traffic.volumerecords import RECORDS, recorded
from ruleruns import ran, written

HOUR = 3600
DAYS = 6
LABELS = 'job="crawlhealth",instance="a",tenant="default",domain="shop.example",bot="Googlebot",identity="verified"'


def test_each_record_is_what_the_rules_make_of_the_same_counts(tmp_path: Path) -> None:
    """Days and nights, hours without a visit, and half a day with none.

    None of the moments looks back on the first hour, of which rules record a part, too.
    """
    random = np.random.default_rng(1)
    day = 120 + 100 * np.sin(np.arange(DAYS * 24) * 2 * np.pi / 24)
    counts = (random.poisson(day) // 15 * 15).astype(float)
    counts[3 * 24 : 3 * 24 + 12] = 0
    series = {
        f"crawlhealth_searchbot_visits_total{{{LABELS}}}": written([0, *np.repeat(counts / 15, 15).cumsum()]),
        'up{job="crawlhealth",instance="a"}': f"1x{DAYS * 360}",
    }
    moments = range(105 * HOUR + 1440, DAYS * 24 * HOUR, 6 * HOUR)
    names = [f"{metrics.VISITS_RECORDED}:{record}" for record in RECORDS]
    options = Options()
    by_rules = ran(volume.groups(options)[2:], series, names, moments, tmp_path, options=options, step="4m", every="4m")
    hours = {place * HOUR: count for place, count in enumerate(counts.tolist()) if count}
    known = frozenset(range(0, DAYS * 24 * HOUR, HOUR))
    for record, name in zip(RECORDS, names, strict=True):
        ours = dict(recorded(hours, known, record, end=DAYS * 24 * HOUR))
        said = {at: list(by_rules[name, float(at)].values()) for at in moments}
        wanted = {at: [pytest.approx(ours[at], rel=1e-6, abs=1e-6)] if at in ours else [] for at in moments}
        assert said == wanted, record
        assert sum(map(len, said.values())) > 5, f"{record} can be compared"


def day_of(visits: float, days: int = 3) -> dict[int, float]:
    return {hour * HOUR: visits / 24 for hour in range(days * 24)}


def results(hours: dict[int, float], known: set[int] | None = None, *, end: int = 10**6) -> dict[int, float]:
    return dict(recorded(hours, set(hours) if known is None else known, "increase1h", end=end))


def test_what_never_had_enough_a_day_is_left_out() -> None:
    assert results(day_of(99)) == {}
    assert results(day_of(101))


def test_an_hour_without_a_visit_of_anybody_is_unknown_and_one_of_others_only_is_none() -> None:
    hours = day_of(2400)
    del hours[30 * HOUR]
    missing = results(hours, set(hours))
    assert 31 * HOUR not in missing
    assert (missing[30 * HOUR], missing[32 * HOUR]) == (100, 100)
    found = results(hours, set(hours) | {30 * HOUR})
    assert (found[31 * HOUR], found[31 * HOUR + 720]) == (0, 20)


def test_the_hour_that_is_not_over_is_left_out() -> None:
    hours = day_of(2400)
    assert max(results(hours, end=60 * HOUR + 1799)) == 60 * HOUR


def test_results_are_as_many_as_those_of_the_rules_so_that_an_average_takes_all_alike() -> None:
    times = sorted(results(day_of(2400)))
    assert {later - at for at, later in pairwise(times)} == {volume.INTERVAL.total_seconds()}
