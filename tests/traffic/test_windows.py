from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth import stats
from crawlhealth.config import Config, Route, Site
from crawlhealth.history import FILE_NAME, History
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot
from crawlhealth.traffic import importing, latency
from crawlhealth.traffic.windows import Problem, read_windows
from samples import DAY, HOUR, NOW

CONFIG = Config(
    routes={"direct": Route(name="direct"), "dc-us": Route(name="dc-us")},
    sites={"books": Site(name="books", hosts=("books.example",))},
)
WHOLE = {
    "site": "books", "route": "dc-us", "source": "canary", "start": "2026-11-30T10:00:00Z", "window_seconds": 3600,
    "requests": 1000, "hard_block": 3, "challenge": 20, "soft_block": 1, "error": 2,
    "latency_seconds": {"p50": 0.31, "p95": 0.9}, "extractions_ok": 970, "extractions_failed": 4,
    "bytes": 18000000, "retries": 12, "credits": 4.5, "records_valid": 19400, "records_invalid": 11,
}  # fmt: skip
SMALL = {"site": "books", "start": "2026-11-30T11:00:00Z", "requests": 5}


def read(*lines: bytes) -> list[Slot | Problem]:
    return list(read_windows(lines, config=CONFIG, now=NOW))


def one(**changes: object) -> Slot | Problem:
    return read(json.dumps(SMALL | changes).encode())[0]


def test_a_whole_window() -> None:
    (slot,) = read(json.dumps(WHOLE).encode())
    assert isinstance(slot, Slot)
    assert (slot.site, slot.route, slot.source, slot.start, slot.seconds) == (
        "books", "dc-us", Source.CANARY, NOW - 2 * HOUR, 3600,
    )  # fmt: skip
    tally = slot.tally
    assert (tally.requests, tally.ok, tally.hard_block, tally.challenge, tally.soft_block, tally.error) == (
        1000, 974, 3, 20, 1, 2,
    )  # fmt: skip
    assert (tally.extractions_ok, tally.extractions_failed, tally.bytes, tally.retries) == (970, 4, 18000000, 12)
    assert (tally.credits, tally.records_valid, tally.records_invalid) == (4.5, 19400, 11)
    assert sum(tally.latency.values()) == 974
    assert stats.quantile(tally.latency, 0.95) == pytest.approx(0.9, rel=0.05)
    assert stats.quantile(tally.latency, 0.5) == pytest.approx(0.31, rel=0.05)


def test_site_start_and_requests_are_enough() -> None:
    slot = one()
    assert isinstance(slot, Slot)
    assert (slot.route, slot.source, slot.seconds, slot.tally.ok) == ("direct", Source.TRAFFIC, 60, 5)
    assert slot.tally.latency == {}


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(NOW - HOUR, id="unix seconds"),
        pytest.param(int(NOW - HOUR), id="whole unix seconds"),
        pytest.param("2026-11-30T13:00:00+02:00", id="another zone"),
    ],
)
def test_the_same_start_in_other_words(start: object) -> None:
    slot = one(start=start)
    assert isinstance(slot, Slot)
    assert slot.start == NOW - HOUR


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param(b"{", "truncated", id="no JSON"),
        pytest.param(b"\xff\xfe{}", "", id="no UTF-8"),
        pytest.param(b"[1, 2]", "Expected `object`", id="no object"),
        pytest.param(b"{}", "site", id="no site"),
        pytest.param(b'{"site": "books", "requests": 1}', "start", id="no start"),
        pytest.param(b"[" * 60000, "", id="nested too deep"),
        pytest.param(b" " * 10 + b'"' + b"x" * 70000 + b'"', "longer than", id="too long"),
    ],
)
def test_lines_that_are_no_window(line: bytes, words: str) -> None:
    (problem,) = read(line)
    assert isinstance(problem, Problem)
    assert words in problem.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"site": "elsewhere"}, "unknown site: 'elsewhere'", id="unknown site"),
        pytest.param({"route": "moon"}, "unknown route: 'moon'", id="unknown route"),
        pytest.param({"source": "bot"}, "source", id="unknown source"),
        pytest.param({"hard_blocks": 1}, "hard_blocks", id="unknown field"),
        pytest.param({"\x1b[2J": 1}, "?[2J", id="unknown field that clears a terminal"),
        pytest.param({"requests": -1}, "requests", id="negative count"),
        pytest.param({"requests": 1.5}, "requests", id="half a request"),
        pytest.param({"requests": 10**18}, "requests", id="absurd count"),
        pytest.param({"hard_block": 3, "challenge": 3}, "fewer than the outcomes", id="negative rest"),
        pytest.param({"extractions_ok": 6}, "more extractions", id="more extractions than requests"),
        pytest.param({"start": "yesterday"}, "not a time", id="no time"),
        pytest.param({"start": "2026-11-30T11:00:00"}, "no time zone", id="no zone"),
        pytest.param({"start": "2026-11-30T11:00:30Z"}, "not a multiple", id="half a minute"),
        pytest.param({"window_seconds": 3600, "start": "2026-11-30T10:30:00Z"}, "not a multiple", id="half an hour"),
        pytest.param({"window_seconds": 300}, "write one of 60, 3600", id="another width"),
        pytest.param({"window_seconds": 0}, "write one of", id="no width"),
        pytest.param({"start": "2026-11-30T12:05:00Z"}, "future", id="future"),
        pytest.param({"start": NOW - 91 * DAY}, "keep_hours", id="too old"),
        pytest.param({"start": -1e300}, "keep_hours", id="before all time"),
        pytest.param({"latency_seconds": {"p50": 1.0}}, "no p95", id="no p95"),
        pytest.param({"latency_seconds": {"p50": 2.0, "p95": 1.0}}, "p50 is above p95", id="quantiles crossed"),
        pytest.param({"latency_seconds": {"p95": 0}}, "p95", id="no time at all"),
        pytest.param({"latency_seconds": {"p95": 1e9}}, "p95", id="absurd time"),
        pytest.param({"latency_seconds": {"p95": 1, "buckets": {}}}, "both", id="quantiles and buckets"),
        pytest.param({"latency_seconds": {"buckets": {"x": 1}}}, "not a number", id="bound that is no number"),
        pytest.param({"latency_seconds": {"buckets": {"-1": 1}}}, "above 0", id="negative bound"),
        pytest.param({"latency_seconds": {"buckets": {"nan": 1}}}, "above 0", id="bound nan"),
        pytest.param({"latency_seconds": {"buckets": {"1": 3, "2": 2}}}, "cumulative", id="counts that fall"),
        pytest.param({"latency_seconds": {"buckets": {"1": 6}}}, "more than the ok", id="more timed than ok"),
    ],
)
def test_windows_that_are_refused(changes: dict[str, object], words: str) -> None:
    problem = one(**changes)
    assert isinstance(problem, Problem)
    assert words in problem.reason
    assert problem.reason.isprintable()
    assert len(problem.reason) <= 300


def test_bad_lines_are_named_by_number_and_the_others_taken() -> None:
    good = json.dumps(SMALL).encode()
    items = read(good, b"", b"oops", good, b'{"site": "x"}')
    assert [item.line if isinstance(item, Problem) else "taken" for item in items] == ["taken", 3, "taken", 5]


@given(st.binary(max_size=200))
def test_no_line_raises(line: bytes) -> None:
    for item in read(line.replace(b"\n", b" ")):
        assert isinstance(item, Problem)


@given(st.integers(1, 5000), st.floats(0.005, 10), st.floats(1, 20))
def test_quantiles_come_back_from_their_histogram(count: int, p50: float, ratio: float) -> None:
    histogram = latency.from_quantiles(count, p50, p50 * ratio)
    assert sum(histogram.values()) == count
    assert stats.quantile(histogram, 0.95) == pytest.approx(p50 * ratio, rel=0.025)


@given(st.lists(st.tuples(st.floats(0.001, 400), st.integers(0, 500)), min_size=1, max_size=20))
def test_buckets_keep_their_counts_between_their_bounds(parts: list[tuple[float, int]]) -> None:
    bounds = sorted({bound for bound, _ in parts})
    running, buckets = 0, []
    for bound, (_, count) in zip(bounds, parts, strict=False):
        running += count
        buckets.append((bound, running))
    histogram = latency.from_buckets(buckets)
    assert sum(histogram.values()) == running
    for bound, upto in buckets:
        at = stats.bucket(bound)
        assert sum(n for index, n in histogram.items() if index < at) <= upto
        assert sum(n for index, n in histogram.items() if index <= at) >= upto


def test_latency_of_a_window_without_ok_requests_is_none() -> None:
    slot = one(requests=5, hard_block=5, latency_seconds={"p50": 0.1, "p95": 0.5})
    assert isinstance(slot, Slot)
    assert (slot.tally.latency, slot.tally.latency_sum) == ({}, 0)


def test_latency_in_buckets() -> None:
    slot = one(requests=100, latency_seconds={"buckets": {"0.25": 40, "0.5": 90, "+Inf": 100}})
    assert isinstance(slot, Slot)
    assert 0.25 < (stats.quantile(slot.tally.latency, 0.9) or 0) <= 0.5
    assert 0.5 < (stats.quantile(slot.tally.latency, 0.95) or 0) <= 1.0


def test_an_import_takes_what_is_good_and_reports_the_rest(tmp_path: Path) -> None:
    config = Config(data_dir=tmp_path / "new" / "data", sites=CONFIG.sites, routes=CONFIG.routes)
    lines = [json.dumps(WHOLE).encode(), b"oops", json.dumps(SMALL).encode()]
    report = importing.import_windows(lines, config, now=NOW)
    assert report.taken == 2
    assert [problem.line for problem in report.problems] == [2]
    history = History.open(config.data_dir / FILE_NAME, config.history, now=NOW)
    assert sum(slot.tally.requests for slot in history.hours("books", 0)) == 1005
    assert history.committed().totals == {}, "no counter moves"
    history.close()
