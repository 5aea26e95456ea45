"""What crawlers meet in the wild, pushed: the outcome, the reason, the counts, and what the score makes of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawlhealth.config import HistorySettings
from crawlhealth.history import FILE_NAME, History
from running import Exporter
from waiting import until

CONFIG = """
    sites: {challenged: {hosts: [c.example]}, emptied: {hosts: [e.example]}, dead: {hosts: [d.example]}}
    routes: {dc: {}}
    history: {resolution: 1s, commit_every: 100ms}
    score:
      evaluate_every: 200ms
      windows: [5s, 10s]
    """
SCORE, PARSER = "crawlhealth_score", "crawlhealth_parser_score"
CHALLENGE = "<html><head><title>Just a moment...</title></head><body>Enable JavaScript and cookies to continue</body>"
PAGE = "<html><head><title>Kettles</title></head><body><h1>Kettles</h1><p class=price>12.90</p></body></html>"


def push(exporter: Exporter, *items: dict[str, object], at: float | None = None) -> None:
    moment = time.time() if at is None else at
    body = b"\n".join(json.dumps({"at": moment, **item}).encode() for item in items)
    answer = exporter.post("/api/v1/observations", data=body, headers={"content-type": "application/x-ndjson"})
    assert (answer.status_code, answer.json()["rejected"]) == (200, [])


@pytest.fixture
def normal(tmp_path: Path) -> Iterator[Exporter]:
    """An exporter that knows two good weeks of three sites."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    rows = (
        {
            "site": site, "route": route, "window_seconds": 3600, "requests": 500, "challenge": 5,
            "start": (hour - timedelta(hours=back)).isoformat(), "latency_seconds": {"p50": 0.2, "p95": 0.4},
            "extractions_ok": 490, "extractions_failed": 5,
        }
        for site in ("challenged", "emptied", "dead")
        for route in ("direct", "dc")
        for back in range(1, 14 * 24)
    )  # fmt: skip
    (tmp_path / "past.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    exporter = Exporter(tmp_path, CONFIG)
    command = [sys.executable, "-m", "crawlhealth.cli", "import", "--config", str(exporter.path)]
    subprocess.run([*command, str(tmp_path / "past.jsonl")], check=True, capture_output=True)
    with exporter:
        yield exporter


def test_challenges_lower_health_blank_fields_the_parser_score_and_a_dead_proxy_neither(normal: Exporter) -> None:
    good = {"status": 200, "body": PAGE, "seconds": 0.2, "records_valid": 1, "count": 100}
    hosts = {"challenged": "c.example", "emptied": "e.example", "dead": "d.example"}
    pages = {site: {"url": f"https://{host}/kettles", **good} for site, host in hosts.items()}
    push(normal, *pages.values(), *({**page, "route": "dc"} for page in pages.values()))
    for site in hosts:
        until(lambda site=site: normal.value(SCORE, site=site) == 100, 20, f"{site} is well", normal.log)  # type: ignore[misc]  # mypy cannot type a lambda with a default
        assert normal.value(PARSER, site=site) == 100

    push(
        normal,
        {**pages["challenged"], "body": CHALLENGE, "headers": {"server": "cloudflare"}, "records_valid": 0},
        {**pages["emptied"], "records_valid": 0, "records_invalid": 1, "fields_missing": ["price"]},
        pages["dead"],
        {"site": "dead", "route": "dc", "reason": "proxy", "count": 100},
        *({**page, "route": "dc"} for page in (pages["challenged"], pages["emptied"])),
    )
    until(lambda: (normal.value(SCORE, site="challenged") or 100) < 80, 10, "health falls", normal.log)
    assert normal.value(PARSER, site="challenged") == 100
    until(lambda: (normal.value(PARSER, site="emptied") or 100) < 80, 10, "the parser score falls", normal.log)
    assert normal.value(SCORE, site="emptied") == 100
    until(lambda: (normal.value("crawlhealth_error_ratio", site="dead", route="dc") or 0) > 0.3, 10, "dc fails")
    assert normal.value("crawlhealth_error_ratio", site="dead", route="direct") == 0
    assert normal.value("crawlhealth_route_refused_ratio", site="dead", route="dc") == 0
    assert normal.value(SCORE, site="dead") == 100
    reasons = "crawlhealth_request_reasons_total"
    assert normal.value(reasons, site="challenged", reason="cloudflare_challenge") == 100
    assert normal.value(reasons, site="dead", reason="proxy") == 100
    assert normal.value("crawlhealth_extractions_total", site="emptied", result="failed") == 100
    assert normal.value("crawlhealth_requests_total", site="emptied", outcome="ok", source="traffic") == 400


DAY = 86_400.0
NOW = time.time() // DAY * DAY
DAILY = (522, 564, 624, 863, 212, 778, 899, 2182)
"""403s a day of one site."""


def at(days: float, **item: object) -> dict[str, object]:
    """An item of so many days ago."""
    return {"at": NOW - days * DAY, **item}


INCIDENTS: dict[str, tuple[list[dict[str, object]], dict[str, int], dict[str, int]]] = {
    "all 429 for six days, after 90 % success": (
        [item for day in range(12, 6, -1) for item in (at(day, status=200, count=450), at(day, status=429, count=50))]
        + [at(day, status=429, headers={"retry-after": "60"}, count=500) for day in range(6, 0, -1)],
        {"ok": 2700, "hard_block": 3300},
        {"http_429": 3300},
    ),
    "403s that grow from day to day": (
        [at(len(DAILY) - day, status=403, count=count) for day, count in enumerate(DAILY)],
        {"hard_block": sum(DAILY)},
        {"http_403": sum(DAILY)},
    ),
    "all of 251 refused within 32 minutes": (
        [at(1 - n * 32 / 251 / 1440, status=403 if n < 169 else 406) for n in range(251)],
        {"hard_block": 251},
        {"http_403": 169, "http_406": 82},
    ),
    "challenge pages with 200 and without items for 70 days": (
        [at(day, status=200, body=CHALLENGE, records_valid=0, count=40) for day in range(70, 0, -1)],
        {"challenge": 2800},
        {"cloudflare_challenge": 2800},
    ),
    "refused only within one burst of ten minutes each hour": (
        [
            at(1 - (hour * 60 + minute) / 1440, status=403 if minute < 10 and n < 6 else 200)
            for hour in range(12)
            for minute in range(60)
            for n in range(10)
        ],
        {"ok": 6480, "hard_block": 720},
        {"http_403": 720},
    ),
    "a CDN outage with 5xx for three hours is no hostility": (
        [at(1 - hour / 24, status=status, body="<h1>Error</h1>", count=100)
         for hour in range(3) for status in (502, 503, 504, 520)],
        {"error": 1200},
        {"http_502": 300, "http_503": 300, "http_504": 300, "http_5xx": 300},
    ),
    "a ban with 403 in 50 ms": (
        [at(2, status=200, seconds=0.4, count=500), at(1, status=403, seconds=0.05, count=500)],
        {"ok": 500, "hard_block": 500},
        {"http_403": 500},
    ),
}  # fmt: skip


def test_incidents_of_real_sites_get_the_right_outcome_reason_and_counts(tmp_path: Path) -> None:
    names = {f"i{number}": name for number, name in enumerate(INCIDENTS)}
    sites = ", ".join(f"{site}: {{hosts: [{site}.example]}}" for site in names)
    with Exporter(tmp_path, f"sites: {{{sites}}}\npush: {{max_age: 80d}}\n") as exporter:
        for site, name in names.items():
            push(exporter, *({"site": site, **item} for item in INCIDENTS[name][0]))
        samples = exporter.samples()
        for site, name in names.items():
            _, outcomes, reasons = INCIDENTS[name]
            seen = {dict(labels)["outcome"]: value for (metric, labels), value in samples.items()
                    if metric == "crawlhealth_requests_total" and ("site", site) in labels and value}  # fmt: skip
            assert seen == outcomes, name
            why = {dict(labels)["reason"]: value for (metric, labels), value in samples.items()
                   if metric == "crawlhealth_request_reasons_total" and ("site", site) in labels}  # fmt: skip
            assert why == reasons, name
        ban = next(site for site, name in names.items() if "50 ms" in name)
        timed = [value for (metric, labels), value in samples.items()
                 if metric == "crawlhealth_request_duration_seconds_sum" and ("site", ban) in labels]  # fmt: skip
        assert timed == [pytest.approx(200)], "a fast refusal is no fast answer"
        assert exporter.stop() == 0
    growing = next(site for site, name in names.items() if "grow" in name)
    history = History.open(tmp_path / "data" / FILE_NAME, HistorySettings(), now=time.time())
    days: dict[float, int] = {}
    for slot in history.hours(growing, 0.0):
        days[slot.start // DAY] = days.get(slot.start // DAY, 0) + slot.tally.hard_block
    history.close()
    assert tuple(days[day] for day in sorted(days)) == DAILY, "each day has its own"
