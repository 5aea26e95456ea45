"""Diagnosis, route checks, cost and the uplink through the real front door: a site, an exporter, /metrics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crawlhealth.demo.behaviour import Behaviour, Kind
from crawlhealth.demo.site import PracticeSite
from running import Exporter, total
from waiting import until

CONFIG = """
routes:
  proxied: {{proxy: {{env: PROXY}}}}
  dead: {{proxy: "http://127.0.0.1:9"}}
sites:
{sites}
canaries: [canaries.yml]
score:
  evaluate_every: 200ms
  windows: [3s]
  min_requests: 10
  enter_after: {{degrading: 500ms, resisting: 1s}}
  leave_after: {{degrading: 1m, resisting: 1m}}
uplink: {{after: 1s}}
history: {{resolution: 1s, commit_every: 200ms}}
"""
SITE = "  {name}: {{hosts: [{host}], routes: [{routes}], max_concurrency: 50, min_gap: 0s}}"


@contextmanager
def watched(
    folder: Path, site: PracticeSite, *, hosts: dict[str, str], routes: str = "direct", canary_routes: str = "direct",
    canaries: int = 8,
) -> Iterator[Exporter]:  # fmt: skip
    """An exporter with canaries twice a second on each site, and two weeks of a good history."""
    pages = [
        f"  - {{name: {name}-{n}, site: {name}, url: 'http://{host}:{site.port}/product/{n + 1}', "
        "expect: {price: {css: 'p.price::text', present: true}}}"
        for name, host in hosts.items()
        for n in range(canaries)
    ]
    head = f"every: 500ms\ntimeout: 400ms\nroutes: [{canary_routes}]\ncanaries:\n"
    (folder / "canaries.yml").write_text(head + "\n".join(pages) + "\n")
    sites = "\n".join(SITE.format(name=name, host=host, routes=routes) for name, host in hosts.items())
    exporter = Exporter(
        folder, CONFIG.format(sites=sites), environ={"PROXY": f"http://127.0.0.1:{site.port}"}
    )  # fmt: skip
    remember(exporter, hosts)
    with exporter:
        yield exporter


def remember(exporter: Exporter, hosts: dict[str, str]) -> None:
    """Import fourteen days of traffic that was served: 1.25 requests for each valid record."""
    hour = int(time.time()) // 3600 * 3600
    lines = [
        json.dumps({
            "site": name, "route": "direct", "source": "traffic", "window_seconds": 3600, "requests": 100,
            "start": datetime.fromtimestamp(hour - 3600 * (30 + n), UTC).isoformat(), "records_valid": 80,
            "retries": 8, "bytes": 800_000, "latency_seconds": {"p50": 0.2, "p95": 1.0},
        })
        for name in hosts for n in range(200)
    ]  # fmt: skip
    file = exporter.folder / "history.jsonl"
    file.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "crawlhealth.cli", "import", "--config", str(exporter.path), str(file)]
    environ = {**os.environ, "PROXY": "http://127.0.0.1:9"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr


def diagnosis(exporter: Exporter, site: str) -> str:
    said: str = exporter.get(f"/api/v1/sites/{site}").json()["diagnosis"]
    return said


def slowed(exporter: Exporter, site: str) -> bool:
    ratio: float = exporter.get(f"/api/v1/sites/{site}").json()["advice"]["concurrency_ratio"]
    return ratio < 1


def test_when_nothing_answers_any_more_it_is_our_uplink_and_no_site_is_blamed(tmp_path: Path) -> None:
    hosts = {"a": "127.0.0.1", "b": "127.0.0.2", "c": "127.0.0.3"}
    addresses = tuple(hosts.values())
    up = ExitStack()
    site = up.enter_context(PracticeSite(addresses=addresses))
    with up, watched(tmp_path, site, hosts=hosts, canaries=2) as exporter:
        exporter.wait_for("crawlhealth_canary_success", 6)
        assert exporter.value("crawlhealth_uplink_up") == 1
        up.close()
        until(
            lambda: exporter.value("crawlhealth_uplink_up") == 0,
            20,
            "the uplink is seen to be down",
            lambda: exporter.get("/metrics").text,
        )
        until(lambda: {diagnosis(exporter, name) for name in hosts} == {"self"}, 20, "nobody is blamed")
        assert total(exporter.samples(), "crawlhealth_diagnosis", diagnosis="self") == 3
        with PracticeSite(addresses=addresses, port=site.port):
            until(lambda: exporter.value("crawlhealth_uplink_up") == 1, 20, "the uplink is seen to be back")
            until(lambda: {diagnosis(exporter, name) for name in hosts} == {"none"}, 20, "all is well")
        samples = exporter.samples()
        assert total(samples, "crawlhealth_band", band="degrading") == 0
        assert total(samples, "crawlhealth_band", band="resisting") == 0


def test_a_dead_proxy_is_a_fault_of_its_route_and_costs_no_health(tmp_path: Path) -> None:
    with PracticeSite() as site:
        options = {"routes": "direct, dead", "canary_routes": "direct, dead"}
        with watched(tmp_path, site, hosts={"shop": "127.0.0.1"}, **options) as exporter:  # type: ignore[arg-type]  # strings
            exporter.wait_for("crawlhealth_score", 99)
            until(lambda: diagnosis(exporter, "shop") == "route", 20, "the route is blamed", exporter.log)
            said = exporter.get("/api/v1/sites/shop").json()
            assert (said["band"], said["score"]) == ("normal", 100)
            assert said["routes"]["dead"]["error_ratio"] == 1.0
            assert said["routes"]["direct"]["error_ratio"] == 0.0


@pytest.mark.parametrize(
    ("via", "found"),
    [
        pytest.param("direct", "route", id="the other route serves: it is the route"),
        pytest.param("any", "site", id="the other route is refused as well: it is the site"),
    ],
)
def test_a_site_that_begins_to_degrade_is_looked_at_over_all_its_routes(tmp_path: Path, via: str, found: str) -> None:
    options = {"hosts": {"shop": "127.0.0.1"}, "routes": "direct, proxied"}
    with PracticeSite() as site, watched(tmp_path, site, **options) as exporter:  # type: ignore[arg-type]  # as above
        exporter.wait_for("crawlhealth_score", 99)
        assert not [request for request in site.requests() if request.proxied]
        site.behave(Behaviour(kind=Kind.CHALLENGE, share=0.35 if via == "direct" else 1.0, via=via))  # type: ignore[arg-type]  # one of the two above
        until(lambda: [one for one in site.requests() if one.proxied], 30, "the other route is tried", exporter.log)
        until(lambda: diagnosis(exporter, "shop") == found, 20, "the diagnosis", exporter.log)
        until(lambda: slowed(exporter, "shop"), 20, "the advice is to slow down", exporter.log)
        assert len([one for one in site.requests() if one.proxied]) <= 2, "one look, and not a second way in"


def test_what_a_record_costs_now_and_normally(tmp_path: Path) -> None:
    with PracticeSite() as site, watched(tmp_path, site, hosts={"shop": "127.0.0.1"}, canaries=1) as exporter:
        batch = [
            {"site": "shop", "outcome": "ok", "reason": "served", "seconds": 0.01, "bytes": 10_000, "retries": 1,
             "credits": 0.5, "records_valid": 2, "at": time.time()},
            {"site": "shop", "outcome": "challenge", "reason": "cloudflare_challenge", "at": time.time()},
        ] * 50  # fmt: skip
        assert exporter.post("/api/v1/observations", json=batch).status_code == 200
        until(lambda: exporter.value("crawlhealth_requests_per_record", site="shop"), 20, "the cost", exporter.log)
        samples = exporter.samples()
        now = {
            name: total(samples, f"crawlhealth_{name}_per_record")
            for name in ("requests", "retries", "bytes", "credits")
        }
        assert now == pytest.approx({"requests": 1.0, "retries": 0.5, "bytes": 5_000, "credits": 0.25}, rel=1e-3)
        assert total(samples, "crawlhealth_requests_per_record_baseline") == pytest.approx(1.25)
        said = exporter.get("/api/v1/sites/shop").json()["cost"]
        assert said["baseline"] == pytest.approx({"requests": 1.25, "retries": 0.1, "bytes": 10_000, "credits": 0.0})


def test_the_usual_size_of_pages_is_known_after_a_restart(tmp_path: Path) -> None:
    """Facts alone: a page far smaller than its kind, with nothing on it, is a soft block."""
    page = {"site": "shop", "status": 200, "page_type": "listing", "bytes": 50_000, "records_valid": 20}
    empty = {**page, "bytes": 900, "records_valid": 0, "fields_missing": ["price"]}
    with Exporter(tmp_path, "sites: {shop: {hosts: [shop.example]}}\nhistory: {commit_every: 200ms}\n") as exporter:
        assert exporter.post("/api/v1/observations", json=[{**page, "at": time.time()}] * 40).json()["accepted"] == 40
        assert exporter.stop() == 0
        exporter.start()
        exporter.post("/api/v1/observations", json=[{**empty, "at": time.time()}])
        exporter.wait_for("crawlhealth_request_reasons_total", 1, reason="size_collapse", source="traffic")
        assert exporter.value("crawlhealth_requests_total", outcome="soft_block") == 1
