"""The history as OpenMetrics with times: whole text out, and a parser that takes it."""

from __future__ import annotations

from prometheus_client.openmetrics import parser

from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally
from crawlhealth.traffic.backfill import Backfill
from crawlhealth.verdict import Band, BandState, Verdict
from samples import HOUR, NOW, slot

SLOTS = [
    slot(NOW, Tally(ok=3, challenge=1, bytes=500, latency={112: 3}, latency_sum=0.75), seconds=HOUR),
    slot(NOW, Tally(ok=1, latency={112: 1}, latency_sum=0.25), seconds=HOUR, route="dc"),
    slot(NOW + HOUR, Tally(ok=2, extractions_ok=2), seconds=60),
    slot(NOW + 5 * HOUR, Tally(hard_block=4), seconds=HOUR),
]
VERDICTS = [
    Verdict(site="books", at=NOW + 60.25, state=BandState(band=Band.NORMAL), score=97, score_raw=98),
    Verdict(site="books", at=NOW + HOUR, state=BandState(band=Band.UNKNOWN)),
]


def text(slots: list[Slot], verdicts: list[Verdict]) -> str:
    backfill = Backfill(
        end=1e12,
        windows=lambda: [("books", slots)], verdicts=lambda: [("books", verdicts)], labels={"job": 'c"h'}
    )  # fmt: skip
    return "".join(backfill.lines())


def samples(name: str, *parts: str) -> list[str]:
    """The values and times (in hours since NOW) of one series."""
    lines = [line for line in text(SLOTS, VERDICTS).splitlines() if line.startswith(f"{name}{{")]
    found = [line.rpartition("} ")[2].split() for line in lines if all(part in line for part in parts)]
    return [f"{value} @ {(float(at) - NOW) / HOUR:g}" for value, at in found]


def test_a_counter_begins_at_0_and_steps_at_the_end_of_each_window() -> None:
    direct = 'route="direct"'
    assert samples("crawlhealth_requests_total", direct, 'outcome="ok"') == [
        "0 @ 0", "3 @ 1", "5 @ 1.01667", "5 @ 5", "5 @ 6",
    ], "and once more after a gap"  # fmt: skip
    assert samples("crawlhealth_requests_total", direct, 'outcome="hard_block"')[-2:] == ["0 @ 5", "4 @ 6"]
    assert samples("crawlhealth_requests_total", 'route="dc"', 'outcome="ok"') == ["0 @ 0", "1 @ 1"]
    assert samples("crawlhealth_response_bytes_total") == ["0 @ 0", "500 @ 1"], "only what there is"
    assert samples("crawlhealth_retries_total") == []


def test_series_without_a_route_add_routes_up() -> None:
    assert samples("crawlhealth_request_duration_seconds_count") == ["0 @ 0", "4 @ 1"]
    assert samples("crawlhealth_request_duration_seconds_sum") == ["0.0 @ 0", "1.0 @ 1"]
    assert samples("crawlhealth_request_duration_seconds_bucket", 'le="+Inf"') == ["0 @ 0", "4 @ 1"]
    assert samples("crawlhealth_extractions_total", 'result="ok"')[-1] == "2 @ 6"


def test_gauges_stand_where_a_verdict_was_recorded_and_are_absent_while_unknown() -> None:
    assert samples("crawlhealth_score") == [f"97 @ {60.25 / HOUR:g}"]
    assert samples("crawlhealth_parser_score") == []
    assert samples("crawlhealth_band", 'band="normal"') == [f"1.0 @ {60.25 / HOUR:g}", "0.0 @ 1"]


def test_it_is_openmetrics() -> None:
    """Without latency: this parser drops buckets of a later time. promtool takes them, see tests/frontdoor."""
    odd = slot(NOW, Tally(ok=1), seconds=HOUR, site='a"b\\c\nd', source=Source.CANARY)
    plain = [slot(NOW, Tally(ok=3, bytes=5), seconds=HOUR), *SLOTS[2:], odd]
    whole = text(plain, VERDICTS)
    families = {family.name: family for family in parser.text_string_to_metric_families(whole)}  # type: ignore[no-untyped-call]  # its
    assert {sample.labels["site"] for sample in families["crawlhealth_requests"].samples} == {"books", 'a"b\\c\nd'}
    assert {sample.labels["job"] for family in families.values() for sample in family.samples} == {'c"h'}
    assert families["crawlhealth_request_duration_seconds"].type == "histogram"
    assert whole.endswith("# EOF\n")
