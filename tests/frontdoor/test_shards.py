"""Two real exporters with one configuration, a shard each: together they watch every site, and none twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from crawlhealth.client import Advice, SiteAdvice
from crawlhealth.shard import number_of
from running import Exporter
from waiting import until

SITES = [f"shop{number}" for number in range(8)]
PARTS = {number: {site for site in SITES if number_of(site, 2) == number} for number in (1, 2)}
LINES = {"content-type": "application/x-ndjson"}

Both = Mapping[int, Exporter]


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<html><title>Shop</title><h1>Shop</h1></html>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.server.visits.append(self.path)  # type: ignore[attr-defined]

    def log_message(self, *_: object) -> None:
        """Nothing: a test reads `visits`."""


@contextmanager
def shop() -> Iterator[ThreadingHTTPServer]:
    """A web site on a port of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    server.visits = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def configuration(ports: Mapping[str, int]) -> str:
    """All sites, each with a canary."""
    sites = {site: {"hosts": [f"127.0.0.1:{port}", f"{site}.example"]} for site, port in ports.items()}
    return "\n".join([
        f"sites: {json.dumps(sites)}",
        "canaries: [canary-*.yml]",
        "score: {evaluate_every: 200ms}",
        "history: {commit_every: 100ms}",
        "push: {tokens: [{env: ALL}]}",
    ])  # fmt: skip


@pytest.fixture(scope="module")
def shops() -> Iterator[Mapping[str, ThreadingHTTPServer]]:
    with ExitStack() as open_:
        yield {site: open_.enter_context(shop()) for site in SITES}


@pytest.fixture(scope="module")
def both(
    shops: Mapping[str, ThreadingHTTPServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[int, Exporter]]:
    ports = {site: int(server.server_address[1]) for site, server in shops.items()}
    with ExitStack() as open_:
        running = {}
        for number in (1, 2):
            folder = tmp_path_factory.mktemp(f"shard{number}")
            for site, port in ports.items():
                home = {"name": "home", "url": f"http://127.0.0.1:{port}/", "every": "2s", "timeout": "1s"}
                canaries = {"site": site, "canaries": [home]}
                (folder / f"canary-{site}.yml").write_text(json.dumps(canaries))
            running[number] = open_.enter_context(
                Exporter(folder, configuration(ports), environ={"ALL": "geheim"}, arguments=["--shard", f"{number}/2"])
            )
        yield running


def shown(exporter: Exporter) -> set[str]:
    """Every site that any series of an exporter names."""
    return {value for _, labels in exporter.samples() for name, value in labels if name == "site"}


def push(exporter: Exporter, path: str, *items: Mapping[str, object]) -> requests.Response:
    body = "\n".join(json.dumps(item) for item in items)
    return exporter.post(path, data=body, headers={**LINES, "authorization": "Bearer geheim"})


def test_the_sites_of_these_tests_are_of_both_shards() -> None:
    assert min(map(len, PARTS.values())) >= 2


def test_together_they_show_every_site_and_none_twice(both: Both) -> None:
    until(lambda: sum(len(shown(exporter)) for exporter in both.values()) >= len(SITES), 20, "all sites are shown")
    assert {number: shown(exporter) for number, exporter in both.items()} == PARTS


def test_every_site_is_judged_by_its_shard_alone(both: Both) -> None:
    listed = {
        number: {site["site"] for site in exporter.get("/api/v1/sites").json()["sites"]}
        for number, exporter in both.items()
    }
    assert listed == PARTS


def test_every_site_is_fetched_by_its_shard_alone(both: Both, shops: Mapping[str, ThreadingHTTPServer]) -> None:
    def served() -> Counter[str]:
        """Canary runs by site, of both exporters."""
        runs: Counter[str] = Counter()
        for exporter in both.values():
            for (name, labels), value in exporter.samples().items():
                if name == "crawlhealth_canary_runs_total":
                    runs[dict(labels)["site"]] += int(value)
        return runs

    until(lambda: all(served()[site] >= 2 for site in SITES), 20, "every site was fetched twice")
    for site, server in shops.items():
        visits = len(server.visits)  # type: ignore[attr-defined]

        def told(site: str = site, visits: int = visits) -> bool:
            return served()[site] >= visits

        until(told, 10, f"every visit to {site} is the run of a canary that is shown")


def test_each_says_which_shard_it_is(both: Both) -> None:
    for number, exporter in both.items():
        assert exporter.value("crawlhealth_shards", shard=str(number)) == 2
        assert exporter.value("crawlhealth_shards") == 2


def test_its_page_and_its_list_and_its_log_say_it_too(both: Both) -> None:
    for number, exporter in both.items():
        share = f"shard {number} of 2: {len(PARTS[number])} of the 8 sites configured"
        assert f"This is {share}." in exporter.get("/").text
        assert exporter.get("/api/v1/sites").json()["shard"] == {"number": number, "count": 2}
        said = [line for line in exporter.log().splitlines() if share in line or "listening on" in line]
        assert ["listening on" in line for line in said] == [False, True]


def test_advice_asked_of_the_wrong_shard_is_an_error_in_the_log_of_the_crawler(
    both: Both, caplog: pytest.LogCaptureFixture
) -> None:
    mine, theirs = min(PARTS[1]), min(PARTS[2])

    def errors() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]

    with Advice(both[1].url, [mine, theirs, "nobody"], every=0.02) as advice:
        assert advice.of(theirs) == SiteAdvice()
        until(lambda: bool(errors()), 10, "it is said")
        until(lambda: any("nobody is no site" in record.getMessage() for record in caplog.records), 10, "and a typo")
    assert len(errors()) == 1
    assert f"no advice from {both[1].url}, which is another shard: {theirs} is of shard 2 of 2;" in errors()[0]


@pytest.mark.parametrize(
    ("path", "item"),
    [
        pytest.param("/api/v1/observations", {"outcome": "ok"}, id="an observation"),
        pytest.param("/api/v1/windows", {"requests": 3, "start": 0, "at": None}, id="a window"),
    ],
)
def test_a_push_for_another_shard_is_rejected_with_its_number(both: Both, path: str, item: dict[str, Any]) -> None:
    mine, theirs = min(PARTS[1]), min(PARTS[2])
    item = {"at": time.time(), **item}
    if "start" in item:
        item = {**item, "start": time.time() // 60 * 60 - 60}
        del item["at"]
    answer = push(both[1], path, {"site": mine, **item}, {"site": theirs, **item}, {"site": "nobody", **item})
    reason = f"the site '{theirs}' belongs to shard 2 of 2, and this is shard 1"
    assert (answer.status_code, answer.json()["accepted"]) == (200, 1)
    assert answer.json()["rejected"] == [
        {"index": 1, "reason": reason}, {"index": 2, "reason": "unknown site: 'nobody'"},
    ]  # fmt: skip
    taken = push(both[2], path, {"site": theirs, **item})
    assert (taken.status_code, taken.json()["accepted"]) == (200, 1)


def test_a_url_is_known_to_be_of_another_shard(both: Both) -> None:
    site = min(PARTS[2])
    pushed = {"url": f"https://{site}.example/x", "outcome": "ok", "at": time.time()}
    refused = push(both[1], "/api/v1/observations", pushed)
    assert refused.status_code == 400
    assert f"the site '{site}' belongs to shard 2 of 2" in refused.json()["rejected"][0]["reason"]
    assert push(both[2], "/api/v1/observations", pushed).json()["accepted"] == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("get", "/api/v1/sites/{}", id="its advice"),
        pytest.param("get", "/api/v1/sites/{}/incidents", id="its incidents"),
        pytest.param("post", "/api/v1/sites/{}/override", id="an override"),
        pytest.param("post", "/api/v1/sites/{}/accept", id="a new normal"),
        pytest.param("post", "/api/v1/canaries/{}/home", id="a canary of its own crawler"),
        pytest.param("get", "/sites/{}", id="its page"),
    ],
)
def test_whoever_asks_of_a_site_elsewhere_is_told_the_shard(both: Both, method: str, path: str) -> None:
    site = min(PARTS[2])
    ask = getattr(both[1], method)
    answer = ask(path.format(site), headers={"authorization": "Bearer geheim"})
    assert answer.status_code == 404
    assert "belongs to shard 2 of 2, and this is shard 1" in answer.text


def test_where_a_site_is_can_be_read_and_its_crawler_goes_on(both: Both) -> None:
    answer = both[1].get(f"/api/v1/sites/{min(PARTS[2])}").json()
    assert answer["shard"] == {"number": 2, "count": 2}
    assert (answer["advice"]["concurrency_ratio"], answer["advice"]["paused"]) == (1.0, False)
    assert "shard" not in both[1].get("/api/v1/sites/nobody").json()


def test_a_reload_keeps_to_the_shard(both: Both) -> None:
    """Last, for it leaves the configuration changed: a site more."""
    [added] = [site for site in ("new0", "new1", "new2", "new3") if number_of(site, 2) == 2][:1]
    exporter = both[2]
    text = exporter.path.read_text().replace("sites: {", f'sites: {{"{added}": {{"hosts": ["{added}.example"]}}, ')
    exporter.path.write_text(text)
    assert exporter.post("/-/reload", headers={"authorization": "Bearer geheim"}).status_code == 200
    assert {site["site"] for site in exporter.get("/api/v1/sites").json()["sites"]} == PARTS[2] | {added}


def command(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    (folder / "crawlhealth.yml").write_text(
        "sites: {" + ", ".join(f"{site}: {{hosts: [{site}.example]}}" for site in SITES) + "}\n"
    )
    return subprocess.run(
        [sys.executable, "-m", "crawlhealth.cli", *arguments],
        check=False, capture_output=True, text=True, timeout=60, cwd=folder, env={**os.environ, **environ},
    )  # fmt: skip


def test_check_says_how_much_a_shard_has(tmp_path: Path) -> None:
    for number, sites in PARTS.items():
        told = command(tmp_path, "check", "--shard", f"{number}/2")
        count = f"{len(sites)} site{'s' * (len(sites) != 1)}"
        assert told.stdout == (
            f"crawlhealth.yml: shard {number} of 2, of 8 sites in all: {count}, 0 canaries, 1 route: good\n"
        )
    told = command(tmp_path, "check", CRAWLHEALTH_SHARD="1/2")
    assert "shard 1 of 2, of 8 sites" in told.stdout


@pytest.mark.parametrize("name", ["check", "serve"])
def test_a_shard_that_does_not_exist_is_told_what_to_write(name: str, tmp_path: Path) -> None:
    told = command(tmp_path, name, "--shard", "0/3")
    assert (told.returncode, told.stdout) == (2, "")
    assert "there is no shard 0 of 3: write 1/3 to 3/3" in told.stderr
