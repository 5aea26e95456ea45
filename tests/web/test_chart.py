"""The shapes of a site's way: gaps stay gaps, and nothing leaves the plane."""

from __future__ import annotations

import re

import pytest

from crawlhealth.outcome import Source
from crawlhealth.tally import Tally
from crawlhealth.verdict import Band, BandState, Verdict
from crawlhealth.web.chart import Chart, draw
from samples import DAY, HOUR, NOW, slot


def verdict(hours_ago: float, score: int | None, band: Band = Band.NORMAL) -> Verdict:
    return Verdict(site="books", at=NOW - hours_ago * HOUR, state=BandState(band=band), score=score)


def day(*verdicts: Verdict) -> Chart:
    return draw(verdicts, (), since=NOW - DAY, now=NOW)


@pytest.mark.parametrize(
    ("verdicts", "paths"),
    [
        pytest.param([], [], id="nothing known"),
        pytest.param([verdict(0, 90)], ["M1000.0 10.0L1000.0 10.0"], id="one point is a dot"),
        pytest.param([verdict(2, 100), verdict(0, 40)], ["M916.67 0.0L1000.0 60.0"], id="two points are a line"),
        pytest.param([verdict(25, 80), verdict(23, 90)], ["M0.0 20.0L41.67 10.0"], id="it begins as it was before"),
        pytest.param([verdict(30, 80)], [], id="what was long before says nothing"),
        pytest.param(
            [verdict(3, 90), verdict(2, None), verdict(1, 60)],
            ["M875.0 10.0L875.0 10.0", "M958.33 40.0L958.33 40.0"],
            id="no score is a gap",
        ),
        pytest.param(
            [verdict(12, 90), verdict(1, 60)],
            ["M500.0 10.0L500.0 10.0", "M958.33 40.0L958.33 40.0"],
            id="an exporter that did not run is a gap",
        ),
    ],
)
def test_the_line_of_the_score(verdicts: list[Verdict], paths: list[str]) -> None:
    assert [line.path for line in day(*verdicts).lines] == paths


def test_bands_and_times_without_a_score_are_stretches() -> None:
    chart = day(
        verdict(4, 90), verdict(3, 60, Band.DEGRADING), verdict(2, None, Band.DEGRADING), verdict(1, 90),
        verdict(0, 90),
    )  # fmt: skip
    assert [(round(band.x), round(band.width), band.band) for band in chart.bands] == [
        (833, 42, "normal"), (875, 83, "degrading"), (958, 42, "normal"),
    ]  # fmt: skip
    assert [(round(gap.x), round(gap.width)) for gap in chart.gaps] == [(917, 42)]
    assert chart.bands[1].said == "degrading, 2026-11-30 09:00:00 UTC to 2026-11-30 11:00:00 UTC"


def test_bars_sum_routes_and_sources_and_keep_their_shares() -> None:
    tallies = [
        slot(NOW - HOUR, Tally(ok=30, challenge=10)),
        slot(NOW - HOUR + 60, Tally(ok=30, hard_block=10), route="dc-us", source=Source.CANARY),
        slot(NOW - 3 * HOUR, Tally(error=40)),
        slot(NOW - 2 * DAY, Tally(ok=1000)),
    ]
    chart = draw((), tallies, since=NOW - DAY, now=NOW)
    assert [(bar.served, bar.refused, bar.error) for bar in chart.bars] == [(0, 0, 50), (75, 25, 0)]
    assert (chart.most, chart.step) == (80, "1 h")
    assert chart.bars[1].said == "from 2026-11-30 11:00:00 UTC: 80 requests, 25.0% refused, 0.0% errors"


@pytest.mark.parametrize("span", [60.0, 600.0, 5000.0, 7 * HOUR, DAY, 14 * DAY, 700 * DAY], ids=str)
def test_any_time_has_few_bars_and_few_ticks_within_the_plane(span: float) -> None:
    slots = [slot(NOW - span * part / 997, Tally(ok=part + 1)) for part in range(997)]
    verdicts = [verdict(span / HOUR * (997 - part) / 997, part % 101) for part in range(998)]
    chart = draw(verdicts, slots, since=NOW - span, now=NOW)
    assert len(chart.bars) <= 400
    assert len(chart.ticks) <= 9 or span > 365 * DAY
    assert all(0 <= tick.left <= 100 for tick in chart.ticks)
    numbers = [float(number) for line in chart.lines for number in re.findall(r"-?\d+\.\d+", line.path)]
    assert min(numbers) >= 0
    assert max(numbers) <= 1000
