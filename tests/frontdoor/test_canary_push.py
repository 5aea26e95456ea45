"""Canaries through the user's own crawler: what it got, posted to a real exporter, on /metrics."""

from __future__ import annotations

import base64
import gzip
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from running import Exporter
from waiting import until

PAGE = "<html><head><title>Kettle</title></head><body><h1>Copper kettle</h1><p class=price>£89.90</p></body></html>"
CHALLENGE = "<title>Just a moment...</title><form id='challenge-form' action='/x?__cf_chl_f_tk=1'></form>"
CONFIG = """
data_dir: data
sites: {shop: {hosts: [shop.example], routes: [direct, dc]}}
routes: {dc: {proxy: "socks5h://127.0.0.1:9"}}
canaries: [canaries.yml]
push: {tokens: [{env: TOKEN}]}
score: {evaluate_every: 200ms}
history: {commit_every: 100ms}
"""
CANARIES = """
site: shop
fetch: push
every: 1h
canaries:
  - name: kettle
    url: https://shop.example/product/3
    expect:
      title: {css: "h1::text", equals: Copper kettle, record: required}
      price: {css: ".price::text", number: {equals: 89.9}}
  - {name: other, url: "https://shop.example/other"}
  - {name: never, url: "https://shop.example/never"}
  - {name: quick, url: "https://shop.example/quick", every: 2s, timeout: 1s, routes: [direct]}
"""
BEARER = {"authorization": "Bearer sesame"}
KETTLE = "/api/v1/canaries/shop/kettle"
LABELS = {"site": "shop", "canary": "kettle"}


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    folder = tmp_path_factory.mktemp("pushed")
    (folder / "canaries.yml").write_text(CANARIES, encoding="utf-8")
    with Exporter(folder, CONFIG, environ={"TOKEN": "sesame"}) as exporter:
        yield exporter


def push(exporter: Exporter, path: str = KETTLE, **answer: object) -> requests.Response:
    return exporter.post(path, json=answer, headers=BEARER)


def runs(exporter: Exporter, **labels: str) -> float:
    return exporter.value("crawlhealth_canary_runs_total", **LABELS, **labels) or 0.0


def test_a_page_that_is_right(exporter: Exporter) -> None:
    at = time.time() - 5
    answer = push(
        exporter, status=200, headers={"Content-Type": "text/html"}, body=PAGE, route="dc", at=at, seconds=1.5
    )
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert (said["outcome"], said["reason"], said["success"], said["duplicate"]) == ("ok", "served", True, False)
    assert [(value["name"], value["ok"], value["seen"]) for value in said["values"]] == [
        ("title", True, "Copper kettle"), ("price", True, "£89.90"),
    ]  # fmt: skip
    samples = exporter.samples()  # what was acknowledged is on disk, and so on /metrics, at once
    labels = {**LABELS, "route": "dc"}
    assert samples["crawlhealth_canary_success", frozenset(labels.items())] == 1
    assert samples["crawlhealth_canary_value", frozenset({**labels, "value": "price"}.items())] == 89.9
    assert samples["crawlhealth_canary_last_run_timestamp_seconds", frozenset(labels.items())] == pytest.approx(at)
    assert samples["crawlhealth_canary_late", frozenset(labels.items())] == 0
    assert exporter.value("crawlhealth_requests_total", site="shop", source="canary", route="dc", outcome="ok") == 1
    assert not any(name == "crawlhealth_canary_duration_seconds" for name, _ in samples), "no phases are known"


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        pytest.param({"status": 200, "body": CHALLENGE}, "challenge", "cloudflare_challenge", id="a challenge"),
        pytest.param({"status": 429, "headers": [["CF-Mitigated", "challenge"]]}, "challenge", "cloudflare_challenge",
                     id="headers as pairs, in any case"),
        pytest.param({"status": 403, "body": "no"}, "hard_block", "http_403", id="a refusal"),
        pytest.param({"status": 200, "body": PAGE.replace("89.90", "94.00")}, "ok", "served", id="a decoy"),
        pytest.param({"status": 200, "body": "<p>x", "final_url": "https://shop.example/login"}, "soft_block",
                     "redirected_login", id="a redirect to the login"),
        pytest.param({"error": "connection_reset"}, "hard_block", "connection_reset", id="a reset"),
        pytest.param({"error": "proxy"}, "error", "proxy", id="a dead proxy"),
        pytest.param({"status": 200, "body_base64": base64.b64encode(b"x" * 5_100_000).decode()}, "error",
                     "body_too_large", id="a body beyond what canaries read"),
        pytest.param({"status": 200, "body": "<div>" * 200_000, "seconds": 0.1}, "ok", "served", id="a hostile page"),
    ],
)  # fmt: skip
def test_outcomes(exporter: Exporter, answer: dict[str, object], outcome: str, reason: str) -> None:
    before = runs(exporter, outcome=outcome)
    response = exporter.post(KETTLE, json=answer, headers=BEARER)
    assert response.status_code == 200, response.text
    assert (response.json()["outcome"], response.json()["reason"]) == (outcome, reason)
    assert runs(exporter, outcome=outcome) == before + 1


def test_a_decoy_is_suspect(exporter: Exporter) -> None:
    said = push(exporter, status=200, body=PAGE.replace("89.90", "94.00")).json()
    assert said["decoy_suspect"]
    assert said["values"][1]["failures"] == [
        {"check": "number", "expected": "number: equals 89.9", "seen": "94 ('£94.00')"}
    ]
    assert exporter.value("crawlhealth_canary_decoy_suspect", **LABELS, route="direct") == 1


def test_text_is_read_as_text_whatever_its_header_said(exporter: Exporter) -> None:
    said = push(exporter, status=200, headers={"content-type": "text/html; charset=windows-1251"}, body=PAGE).json()
    assert said["values"][1]["seen"] == "£89.90"
    raw = base64.b64encode(PAGE.encode("latin-1")).decode()
    said = push(exporter, status=200, headers={"content-type": "text/html; charset=latin-1"}, body_base64=raw).json()
    assert said["values"][1]["seen"] == "£89.90"


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_compressed_requests(exporter: Exporter, coding: str) -> None:
    data = json.dumps({"status": 200, "body": PAGE}).encode()
    data = gzip.compress(data) if coding == "gzip" else zstandard.compress(data)
    answer = exporter.post(KETTLE, data=data, headers={**BEARER, "content-encoding": coding})
    assert (answer.status_code, answer.json()["success"]) == (200, True)


def test_a_repeat_is_acknowledged_and_not_counted(exporter: Exporter) -> None:
    at = time.time()
    assert not push(exporter, status=403, at=at).json()["duplicate"]
    before = runs(exporter)
    with ThreadPoolExecutor(4) as threads:
        again = list(threads.map(lambda _: push(exporter, status=403, at=at).json(), range(4)))
    assert [(answer["duplicate"], answer["outcome"]) for answer in again] == [(True, "hard_block")] * 4
    assert push(exporter, status=200, at=at - 1).status_code == 409
    assert runs(exporter) == before


@pytest.mark.parametrize(
    ("path", "data", "headers", "status", "said"),
    [
        pytest.param(KETTLE, b"{}", {}, 401, "bearer token", id="no token"),
        pytest.param(KETTLE, b"{}", {"authorization": "Bearer x"}, 401, "bearer token", id="a wrong token"),
        pytest.param("/api/v1/canaries/shop/none", b"{}", BEARER, 404, "no such canary", id="an unknown canary"),
        pytest.param("/api/v1/canaries/none/kettle", b"{}", BEARER, 404, "unknown site", id="an unknown site"),
        pytest.param(KETTLE, b"{}", BEARER, 400, "needs status, or error", id="nothing in it"),
        pytest.param(KETTLE, b"", BEARER, 400, "not an answer", id="empty"),
        pytest.param(KETTLE, b"[" * 100_000, BEARER, 400, "not an answer", id="deep nesting"),
        pytest.param(KETTLE, b'{"status": 200, "stauts": 1}', BEARER, 400, "stauts", id="an unknown field"),
        pytest.param(KETTLE, b'{"status": 200, "route": "us"}', BEARER, 400, "direct, dc", id="an unknown route"),
        pytest.param(KETTLE, b'{"status": 200, "at": 9e9}', BEARER, 400, "future", id="from the future"),
        pytest.param(KETTLE, b'{"status": 200, "at": 1e9}', BEARER, 400, "a day ago", id="from long ago"),
        pytest.param(KETTLE, b'{"status": 200, "at": "12:00"}', BEARER, 400, "not a time", id="no time"),
        pytest.param(KETTLE, b'{"error": "served"}', BEARER, 400, "send one of", id="no failure"),
        pytest.param(KETTLE, b'{"status": 200, "body_base64": "%"}', BEARER, 400, "base64", id="no base64"),
        pytest.param(KETTLE, b'{"status": 200, "final_url": "javascript:1"}', BEARER, 400, "final_url", id="no URL"),
        pytest.param(KETTLE, b"no gzip", {**BEARER, "content-encoding": "gzip"}, 400, "coding", id="no gzip"),
        pytest.param(KETTLE, b"x", {**BEARER, "content-encoding": "rot13"}, 415, "coding", id="an unknown coding"),
        pytest.param(KETTLE, gzip.compress(b" " * 65_000_000), {**BEARER, "content-encoding": "gzip"}, 413, "more than",
                     id="a bomb"),
        pytest.param(KETTLE, b" " * 16_000_001, BEARER, 413, "more than", id="too large"),
    ],
)  # fmt: skip
def test_refused_and_not_counted(
    exporter: Exporter, path: str, data: bytes, headers: dict[str, str], status: int, said: str
) -> None:
    before = runs(exporter)
    answer = exporter.post(path, data=data, headers=headers)
    assert answer.status_code == status, answer.text
    assert said in answer.json()["error"]
    assert runs(exporter) == before


def test_nothing_is_fetched_and_what_does_not_arrive_is_late_and_not_failed(exporter: Exporter) -> None:
    quick = {"site": "shop", "canary": "quick", "route": "direct"}
    path = "/api/v1/canaries/shop/quick"
    assert push(exporter, path, status=200, body="x").status_code == 200
    assert exporter.value("crawlhealth_canary_late", **quick) == 0
    until(lambda: exporter.value("crawlhealth_canary_late", **quick) == 1, 15, "the canary is late")
    assert exporter.value("crawlhealth_canary_success", **quick) == 1, "late is not failed"
    assert "ok, late" in exporter.get("/sites/shop").text
    assert exporter.value("crawlhealth_canary_runs_total", **quick) == 1, "nobody fetched it"
    assert push(exporter, path, status=200, body="x").status_code == 200
    assert exporter.value("crawlhealth_canary_late", **quick) == 0
    never = {"site": "shop", "canary": "never", "route": "dc"}
    assert exporter.value("crawlhealth_canary_late", **never) == 0, "its time is still to come"
    assert exporter.value("crawlhealth_canary_success", **never) is None


LAYOUT = """
site: shop
fetch: push
canaries:
  - {name: list, url: "https://shop.example/", routes: [direct], expect: {layout: {css: main, unchanged: UNCHANGED}}}
"""


def test_a_structure_is_remembered_over_a_restart_and_a_new_one_is_accepted(tmp_path: Path) -> None:
    path, labels = "/api/v1/canaries/shop/list", {"site": "shop", "canary": "list"}
    page = "<main class=a><h1>x</h1><ul class=b><li><p class=c><i>1</i></p></li></ul></main>"
    redesign = "<main><section><article><h2>x</h2></article></section></main>"

    def layout_ok(running: Exporter, body: str) -> bool:
        assert push(running, path, status=200, body=body).status_code == 200
        assert running.value("crawlhealth_canary_decoy_suspect", **labels) == 0
        return running.value("crawlhealth_canary_value_ok", **labels, value="layout") == 1

    (tmp_path / "canaries.yml").write_text(LAYOUT.replace("UNCHANGED", "true"), encoding="utf-8")
    with Exporter(tmp_path, CONFIG, environ={"TOKEN": "sesame"}) as exporter:
        assert layout_ok(exporter, page)
        assert not layout_ok(exporter, redesign)
        assert "changed" in exporter.get("/sites/shop").text
    with Exporter(tmp_path, CONFIG, environ={"TOKEN": "sesame"}) as exporter:
        assert not layout_ok(exporter, redesign)
        assert layout_ok(exporter, page)
        since = datetime.now(UTC).isoformat()
        (tmp_path / "canaries.yml").write_text(LAYOUT.replace("UNCHANGED", f"{{since: '{since}'}}"), encoding="utf-8")
        assert exporter.post("/-/reload", headers=BEARER).status_code == 200
        assert layout_ok(exporter, redesign)
        assert not layout_ok(exporter, page)


def test_a_token_may_be_for_some_sites_only(tmp_path: Path) -> None:
    (tmp_path / "canaries.yml").write_text(CANARIES, encoding="utf-8")
    tokens = "[{token: {env: TOKEN}, sites: [other]}, {token: {env: OURS}, sites: [shop]}]"
    config = CONFIG.replace("[{env: TOKEN}]", tokens).replace(
        "sites: {shop:", "sites: {other: {hosts: [o.example]}, shop:"
    )
    with Exporter(tmp_path, config, environ={"TOKEN": "sesame", "OURS": "ours"}) as exporter:
        answer = push(exporter, status=200)
        assert (answer.status_code, answer.json()) == (403, {"error": "this token is for other sites"})
        assert exporter.post(KETTLE, json={"status": 200}, headers={"authorization": "Bearer ours"}).status_code == 200


scalars = st.one_of(st.none(), st.booleans(), st.integers(-1, 2**70), st.floats(), st.text(max_size=20))
FIELDS = {
    "status": st.one_of(st.sampled_from([200, 403, 503]), scalars),
    "error": st.one_of(st.sampled_from(["timeout", "connection_reset"]), scalars),
    "route": st.one_of(st.sampled_from(["direct", "dc"]), scalars),
    "at": st.one_of(st.just(time.time()), scalars, st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")),
    "seconds": scalars,
    "headers": st.one_of(
        st.dictionaries(st.text(max_size=9), st.one_of(scalars, st.lists(scalars, max_size=2))), scalars
    ),
    "redirects": st.lists(st.one_of(st.just("https://shop.example/"), scalars), max_size=3),
    "final_url": st.one_of(st.sampled_from(["https://shop.example/x", "http://[", "https://a:99999/"]), scalars),
    "body": st.one_of(st.sampled_from([PAGE, CHALLENGE]), scalars),
    "body_base64": scalars,
}


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.fixed_dictionaries({}, optional=FIELDS).map(json.dumps).map(str.encode), st.binary(max_size=60)))
def test_whatever_is_sent_never_a_500_and_never_a_wrong_count(exporter: Exporter, data: bytes) -> None:
    before = runs(exporter)
    answer = exporter.post(KETTLE, data=data, headers=BEARER)
    assert answer.status_code in (200, 400, 409), answer.text
    counted = answer.status_code == 200 and not answer.json()["duplicate"]
    assert runs(exporter) == before + counted


def test_no_secret_of_a_pushed_address_is_kept(exporter: Exporter) -> None:
    url = "https://user:hunter2@shop.example/product/3"
    assert push(exporter, status=403, final_url=url, redirects=[url]).status_code == 200
    assert "hunter2" not in exporter.get("/").text + exporter.get("/metrics").text + exporter.log()
    assert all(b"hunter2" not in file.read_bytes() for file in Path(exporter.folder, "data").iterdir())
