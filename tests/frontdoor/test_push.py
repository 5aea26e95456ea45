"""The push API as a crawler meets it: what is answered, what is counted, and what happens when it goes wrong."""

from __future__ import annotations

import contextlib
import gzip
import json
import select
import socket
import sqlite3
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import yaml
import zstandard

from running import Exporter, plain_session
from waiting import until

LINES = "application/x-ndjson"
CONFIG = """
sites:
  books: {hosts: [books.example]}
  quotes: {hosts: [quotes.example]}
history: {commit_every: 100ms}
push:
  max_waiting_bytes: 16MB
"""
TOKENS = "  tokens: [{env: ALL}, {token: {env: FEW}, sites: [quotes]}]\n"
OBSERVATIONS, WINDOWS = "/api/v1/observations", "/api/v1/windows"
REQUESTS = "crawlhealth_requests_total"


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    with Exporter(tmp_path_factory.mktemp("push"), CONFIG) as running:
        yield running


def lines(*items: Mapping[str, object]) -> bytes:
    return b"\n".join(json.dumps({"at": time.time(), **item}).encode() for item in items)


def push(exporter: Exporter, body: bytes, path: str = OBSERVATIONS, **headers: str) -> requests.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return exporter.post(path, data=body, headers={"content-type": LINES, **named})


def counted(exporter: Exporter, site: str = "books") -> float:
    return exporter.value(REQUESTS, site=site, source="traffic") or 0.0


def added(exporter: Exporter, before: float, amount: float) -> None:
    """What was acknowledged is on /metrics at once."""
    assert counted(exporter) - before == amount


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param(lines({"site": "books", "outcome": "ok"}) + b"\n\n", {}, id="lines"),
        pytest.param(b"[" + lines({"site": "books", "outcome": "ok"}) + b"]", {"content_type": "application/json"},
                     id="an array"),
        pytest.param(gzip.compress(lines({"site": "books", "outcome": "ok"})), {"content_encoding": "gzip"}, id="gzip"),
        pytest.param(zstandard.compress(lines({"site": "books", "outcome": "ok"})), {"content_encoding": "ZSTD"},
                     id="zstd"),
        pytest.param(lines({"url": "https://books.example/x", "status": 200}),
                     {"content_type": "application/json; charset=utf-8"}, id="facts and a URL"),
    ],
)  # fmt: skip
def test_what_is_acknowledged_is_counted(exporter: Exporter, body: bytes, headers: dict[str, str]) -> None:
    before = counted(exporter)
    answer = push(exporter, body, **headers)
    assert (answer.status_code, answer.json()) == (200, {"accepted": 1, "rejected_items": 0, "rejected": []})
    added(exporter, before, 1)


def test_good_items_are_taken_and_bad_ones_named(exporter: Exporter) -> None:
    before = counted(exporter)
    bad = [{"site": "books", "outcome": "?"}, {"site": "nobody", "outcome": "ok"}]
    answer = push(exporter, lines({"site": "books", "outcome": "ok", "count": 7}, *bad) + b"\n{")
    assert answer.status_code == 200
    assert answer.json() == {
        "accepted": 1,
        "rejected_items": 3,
        "rejected": [
            {"index": 1, "reason": "Invalid enum value '?' - at `$.outcome`"},
            {"index": 2, "reason": "unknown site: 'nobody'"},
            {"index": 3, "reason": "Input data was truncated"},
        ],
    }
    added(exporter, before, 7)


@pytest.mark.parametrize(
    ("body", "headers", "status", "error"),
    [
        pytest.param(b"", {}, 400, "the body holds no item", id="nothing"),
        pytest.param(b"[]", {}, 400, "the body holds no item", id="an empty array"),
        pytest.param(b"[{", {}, 400, "not a JSON array", id="a broken array"),
        pytest.param(b"{}", {"content_encoding": "gzip"}, 400, "not in the coding", id="no gzip"),
        pytest.param(b"{}", {"content_encoding": "br"}, 415, "gzip, zstd or identity", id="a coding we do not take"),
        pytest.param(b"{}", {"content_type": "text/plain"}, 415, "application/x-ndjson", id="a form's content type"),
        pytest.param(b"{}", {"idempotency_key": "k" * 256}, 400, "1 to 255", id="a key without end"),
        pytest.param(b"x" * 16_000_001, {}, 413, "16000000 bytes", id="a body too large"),
        pytest.param(gzip.compress(b" " * 64_000_001), {"content_encoding": "gzip"}, 413, "64000000", id="a bomb"),
        pytest.param(gzip.compress(b"{}\n" * 100_001), {"content_encoding": "gzip"}, 413, "100000 items",
                     id="too many items"),
    ],
)  # fmt: skip
def test_a_push_that_cannot_be_read_counts_nothing(
    exporter: Exporter, body: bytes, headers: dict[str, str], status: int, error: str
) -> None:
    before, refused = counted(exporter), exporter.value("crawlhealth_push_batches_total", result="rejected") or 0
    answer = push(exporter, body, **headers)
    assert answer.status_code == status
    assert error in answer.json()["error"]
    exporter.wait_for("crawlhealth_push_batches_total", refused + 1, result="rejected")
    added(exporter, before, 0)


def test_items_that_are_all_bad_are_a_bad_push(exporter: Exporter) -> None:
    answer = push(exporter, lines({"site": "nobody", "outcome": "ok"}))
    assert (answer.status_code, answer.json()["rejected_items"]) == (400, 1)


def test_a_repeated_push_is_acknowledged_and_not_counted_also_after_a_kill(exporter: Exporter) -> None:
    before = counted(exporter)
    body = lines({"site": "books", "outcome": "ok", "count": 3}, {"site": "books", "outcome": "?"})
    first = push(exporter, body, idempotency_key="night-1")
    second = push(exporter, body, idempotency_key="night-1")
    exporter.stop(9)
    exporter.start()
    third = push(exporter, body, idempotency_key="night-1")
    assert first.status_code == second.status_code == third.status_code == 200
    assert first.json() == second.json() == third.json()
    assert [answer.headers.get("idempotent-replayed") for answer in (first, second, third)] == [None, "true", "true"]
    push(exporter, body, idempotency_key="night-2")
    coded = push(exporter, gzip.compress(body), idempotency_key="night-1", content_encoding="gzip")
    assert coded.headers.get("idempotent-replayed") == "true", "how it is coded is no part of it"
    other = push(exporter, body + b"\n" + body, idempotency_key="night-1")
    assert other.status_code == 422, "other content would be lost without a word"
    assert "another push" in other.json()["error"]
    added(exporter, before, 6)


@contextlib.contextmanager
def unwritable(exporter: Exporter) -> Iterator[None]:
    """Another process holds the history, longer than the exporter waits."""
    with contextlib.closing(sqlite3.connect(exporter.folder / "data" / "history.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_a_repeat_while_the_first_is_under_way_waits_for_it(exporter: Exporter) -> None:
    before = counted(exporter)
    body = lines({"site": "books", "outcome": "ok"})
    with ThreadPoolExecutor(3) as threads:
        with unwritable(exporter):
            waiting = [threads.submit(push, exporter, body, idempotency_key="flight") for _ in range(3)]
            until(lambda: exporter.value("crawlhealth_push_queue_items") == 1, 10, "one push waits")
            assert not any(one.done() for one in waiting)
            assert counted(exporter) == before
        answers = [one.result() for one in waiting]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert sorted(answer.headers.get("idempotent-replayed", "") for answer in answers) == ["", "true", "true"]
    added(exporter, before, 1)


def test_while_the_disk_fails_pushes_are_turned_away_and_nothing_is_lost(exporter: Exporter) -> None:
    before = counted(exporter)
    body = lines({"site": "books", "outcome": "ok"})
    with ThreadPoolExecutor(1) as threads:
        with unwritable(exporter):
            waiting = threads.submit(push, exporter, body, idempotency_key="disk-1")
            exporter.wait_for("crawlhealth_history_write_failures_total", 1)
            refused = push(exporter, body, idempotency_key="disk-2")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert waiting.result().status_code == 200
    until(lambda: push(exporter, body, idempotency_key="disk-2").status_code == 200, 10, "it is taken again")
    added(exporter, before, 2)


class Slow:
    """A push whose body stops half way."""

    def __init__(self, exporter: Exporter, body: bytes, sent: int) -> None:
        place = urlsplit(exporter.url)
        self._rest = body[sent:]
        self._socket = socket.create_connection((place.hostname or "", place.port or 0), timeout=30)
        head = (
            f"POST {OBSERVATIONS} HTTP/1.1\r\nhost: x\r\ncontent-type: {LINES}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body[:sent])

    def finish(self) -> str:
        self._socket.sendall(self._rest)
        answer = self._socket.recv(4096).decode()
        self.close()
        return answer

    def answered(self) -> bool:
        return bool(select.select([self._socket], [], [], 0)[0])

    def close(self) -> None:
        self._socket.close()


def filled(exporter: Exporter, large: bytes, medium: bytes) -> Slow:
    """A push that fills the memory while it goes on; another attempt when the medium one came first."""
    for _ in range(20):
        slow = Slow(exporter, large, sent=14_900_000)
        if push(exporter, medium).status_code == 429 and not slow.answered():
            return slow
        slow.close()
    raise AssertionError("the memory is never full\n" + exporter.log())


def test_more_than_memory_allows_is_turned_away_before_it_is_read(exporter: Exporter) -> None:
    one = lines({"site": "books", "outcome": "ok"})
    large, medium = one + b" \n" * 7_500_000, one + b"\n" + b" " * 3_000_000
    busy = exporter.value("crawlhealth_push_batches_total", result="busy") or 0
    slow = filled(exporter, large, medium)
    before = counted(exporter)
    answer = push(exporter, medium)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert push(exporter, one).status_code == 200, "a small one has room"
    assert slow.finish().startswith("HTTP/1.1 200"), "what had room is taken"
    assert push(exporter, medium).status_code == 200, "room is given back"
    added(exporter, before, 3)
    exporter.wait_for("crawlhealth_push_batches_total", busy + 2, result="busy")


def test_a_push_that_is_cut_off_counts_nothing_and_gives_its_room_back(exporter: Exporter) -> None:
    before = counted(exporter)
    body = lines({"site": "books", "outcome": "ok"}) + b"\n" * 15_000_000
    for _ in range(3):
        slow = Slow(exporter, body, sent=14_000_000)
        slow.close()
    until(lambda: push(exporter, body).status_code == 200, 20, "there is room again")
    added(exporter, before, 1)


def test_windows_are_added(exporter: Exporter) -> None:
    before = counted(exporter)
    start = time.time() // 60 * 60 - 60
    window = {"site": "books", "start": start, "requests": 1000, "challenge": 20, "error": 2, "bytes": 18_000_000,
              "latency_seconds": {"buckets": {"0.25": 400, "0.5": 978}}, "extractions_ok": 970}  # fmt: skip
    body = json.dumps(window).encode() + b'\n{"site": "books"}'
    for key in ("w1", "w1", "w2"):
        answer = push(exporter, body, WINDOWS, idempotency_key=key)
        assert (answer.status_code, answer.json()["accepted"], answer.json()["rejected_items"]) == (200, 1, 1)
    added(exporter, before, 2000)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    environ = {"ALL": "all-sites", "FEW": "quotes-only"}
    with Exporter(tmp_path_factory.mktemp("tokens"), CONFIG + TOKENS, environ=environ) as running:
        yield running


def test_tokens_say_who_may_push_what(guarded: Exporter) -> None:
    both = lines({"site": "books", "outcome": "ok"}, {"site": "quotes", "outcome": "ok"})
    for path in (OBSERVATIONS, WINDOWS, "/-/reload"):
        for token in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic all-sites"}):
            answer = push(guarded, both, path, **token)
            assert answer.status_code == 401
            assert "token" in answer.json()["error"]
    assert push(guarded, both).headers["www-authenticate"] == "Bearer"
    few = {"authorization": "Bearer quotes-only"}
    assert push(guarded, both, **few).json() == {
        "accepted": 1,
        "rejected_items": 1,
        "rejected": [{"index": 0, "reason": "the token may not push the site 'books'"}],
    }
    assert push(guarded, lines({"site": "books", "outcome": "ok"}), **few).status_code == 403
    assert push(guarded, b"", "/-/reload", **few).status_code in (401, 403), "a token for some sites is not for all"
    assert push(guarded, both, authorization="bearer all-sites").json()["accepted"] == 2
    assert (counted(guarded), counted(guarded, "quotes")) == (1, 2)


def test_keys_of_two_senders_are_two_keys(guarded: Exporter) -> None:
    body = lines({"site": "quotes", "outcome": "ok"})
    before = counted(guarded, "quotes")
    for token in ("all-sites", "quotes-only", "all-sites"):
        assert push(guarded, body, idempotency_key="same", authorization=f"Bearer {token}").status_code == 200
    assert counted(guarded, "quotes") == before + 2


def test_a_repeat_of_a_push_of_other_sites_is_forbidden_too(guarded: Exporter) -> None:
    body = lines({"site": "books", "outcome": "ok"})
    few = {"authorization": "Bearer quotes-only", "idempotency_key": "not mine"}
    first, second = push(guarded, body, **few), push(guarded, body, **few)
    assert (first.status_code, second.status_code) == (403, 403)
    assert first.json() == second.json()
    assert second.headers["idempotent-replayed"] == "true"


def test_many_small_pushes_at_once_are_all_counted(exporter: Exporter) -> None:
    before = counted(exporter)
    with ThreadPoolExecutor(16) as threads:
        answers: list[Any] = list(
            threads.map(lambda _: push(exporter, lines({"site": "books", "outcome": "ok"})).status_code, range(300))
        )
    assert set(answers) == {200}
    added(exporter, before, 300)


def test_reading_needs_no_token_and_other_methods_are_none(guarded: Exporter) -> None:
    assert guarded.get(OBSERVATIONS).status_code == 405
    assert guarded.get("/metrics").status_code == 200


def test_every_described_path_is_served_with_its_methods(exporter: Exporter) -> None:
    document = yaml.safe_load(exporter.get("/api/v1/openapi.yaml").text)
    for path, described in document["paths"].items():
        place = path.replace("{site}", "books").replace("{name}", "books").replace("{canary}", "front")
        with plain_session() as session:
            answer = session.request("TRACE", exporter.url + place, timeout=20)
        assert answer.status_code == 405, path
        allowed = {method.strip().lower() for method in answer.headers["allow"].split(",")} - {"head"}
        assert allowed == described.keys() - {"parameters"}, path
