"""The counters of a crawler in its own registry: the exporter's names, and nothing that is not known."""

from __future__ import annotations

import math
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from crawlhealth.client import RegistryReporter


def lines(registry: CollectorRegistry, *without: str) -> list[str]:
    text = generate_latest(registry).decode()
    return [
        line for line in text.splitlines() if not line.startswith("#") and not any(part in line for part in without)
    ]


def test_reports_are_counted_under_the_names_of_the_exporter() -> None:
    reporter = RegistryReporter(CollectorRegistry())
    reporter.report("books", "ok", seconds=0.2, bytes=1_000, records_valid=20)
    reporter.report("books", "challenge", reason="cloudflare_challenge", route="dc-us", retries=1, credits=0.5, count=2)
    reporter.report("books", "ok", records_valid=0, fields_missing=["price"])
    site, us = 'site="books"', 'route="dc-us",site="books",source="traffic"'
    shown = lines(reporter.registry, "_bucket")
    for line in (
        'crawlhealth_requests_total{outcome="ok",route="direct",site="books",source="traffic"} 2.0',
        f'crawlhealth_requests_total{{outcome="challenge",{us}}} 2.0',
        f'crawlhealth_requests_total{{outcome="ok",{us}}} 0.0',
        f"crawlhealth_retries_total{{{us}}} 1.0",
        f"crawlhealth_credits_total{{{us}}} 0.5",
        f'crawlhealth_request_duration_seconds_sum{{{site},source="traffic"}} 0.2',
        f'crawlhealth_request_duration_seconds_count{{{site},source="traffic"}} 1.0',
        f'crawlhealth_extractions_total{{result="failed",{site},source="traffic"}} 1.0',
        f'crawlhealth_extractions_total{{result="ok",{site},source="traffic"}} 1.0',
        f'crawlhealth_records_total{{result="valid",{site}}} 20.0',
        f'crawlhealth_request_reasons_total{{reason="cloudflare_challenge",{site},source="traffic"}} 2.0',
    ):
        assert line in shown


def test_an_empty_registry_shows_nothing() -> None:
    assert lines(RegistryReporter(CollectorRegistry()).registry) == []


def test_wrong_reports_raise_nothing_and_are_counted_apart() -> None:
    reporter = RegistryReporter(CollectorRegistry())
    reporter.report("books", "splendid")
    reporter.report("books", "ok", reason="because")
    reporter.report("books", "ok", seconds="long")  # type: ignore[arg-type]
    assert reporter.refused == 3


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"site": None}, id="no site"),
        pytest.param({"site": b"books"}, id="bytes for a site"),
        pytest.param({"site": "\ud800"}, id="a site that is no text"),
        pytest.param({"route": None}, id="no route"),
        pytest.param({"count": 0}, id="of nothing"),
        pytest.param({"count": 1.5}, id="of one and a half"),
        pytest.param({"count": "3"}, id="a count in words"),
        pytest.param({"bytes": -5}, id="fewer bytes than none"),
        pytest.param({"bytes": 10**400}, id="more bytes than a scrape can say"),
        pytest.param({"retries": -1}, id="fewer retries than none"),
        pytest.param({"records_valid": -1}, id="fewer records than none"),
        pytest.param({"records_invalid": "x"}, id="records in words"),
        pytest.param({"credits": math.nan}, id="credits that are no number"),
        pytest.param({"credits": math.inf}, id="credits without end"),
        pytest.param({"seconds": math.nan}, id="seconds that are no number"),
        pytest.param({"seconds": -1}, id="before it was asked"),
    ],
)
def test_a_wrong_report_breaks_no_scrape_and_leaves_no_trace(wrong: dict[str, Any]) -> None:
    reporter = RegistryReporter(CollectorRegistry())
    reporter.report("books", "ok", seconds=0.1, bytes=7)
    before = lines(reporter.registry)
    reporter.report(**{"site": "books", "outcome": "ok", **wrong})
    assert lines(reporter.registry) == before
    assert reporter.refused == 1


def test_labels_stay_bounded() -> None:
    reporter = RegistryReporter(CollectorRegistry(), max_strata=10)
    for index in range(100):
        reporter.report(f"site-{index}", "ok")
    assert reporter.refused == 90
    assert len([line for line in lines(reporter.registry) if line.startswith("crawlhealth_requests_total")]) == 50
