"""GET /api/v1/sites and overrides, on a real exporter: what crawlers follow, and what a person decides."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote

import pytest

from running import Exporter

CONFIG = """\
sites:
  books: {hosts: [books.example]}
  "two words & more": {hosts: [quotes.example]}
score: {evaluate_every: 200ms}
push:
  tokens:
    - {env: TOKEN}
    - {token: {env: QUOTES}, sites: ["two words & more"]}
"""
NEUTRAL = {"concurrency_ratio": 1.0, "revisit_multiplier": 1.0, "cost_multiplier": 1.0, "paused": False}
AUTHORISED = {"authorization": "Bearer geheim"}
LIMIT = {"kind": "limit", "concurrency_ratio": 0.3, "until": "2h", "note": "they asked"}


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    folder: Path = tmp_path_factory.mktemp("sites")
    with Exporter(folder, CONFIG, environ={"TOKEN": "geheim", "QUOTES": "leise"}) as exporter:
        yield exporter


@pytest.fixture(autouse=True)
def _without_override(exporter: Exporter) -> Iterator[None]:
    yield
    exporter.delete("/api/v1/sites/books/override", headers=AUTHORISED)


def decide(exporter: Exporter, body: object = LIMIT, *, site: str = "books", token: str = "geheim") -> tuple[int, dict]:  # type: ignore[type-arg]  # whatever was answered
    answer = exporter.post(
        f"/api/v1/sites/{quote(site, safe='')}/override", json=body, headers={"authorization": f"Bearer {token}"}
    )
    return answer.status_code, answer.json()


def test_a_site_is_told_as_documented(exporter: Exporter) -> None:
    answer = exporter.get("/api/v1/sites/books")
    said = answer.json()
    assert list(said)[:11] == [
        "site", "score", "score_raw", "parser_score", "band", "held", "since", "unknown", "reasons", "diagnosis",
        "advice",
    ]  # fmt: skip
    assert (said["site"], said["score"], said["band"], said["held"]) == ("books", None, "unknown", False)
    assert (said["unknown"], said["reasons"], said["diagnosis"]) == ("not_enough_requests", [], "none")
    assert (said["advice"], said["override"], said["window"], said["baseline"]) == (NEUTRAL, None, None, None)
    assert answer.headers["etag"].startswith('W/"')
    assert answer.headers["cache-control"] == "no-cache"


def test_all_sites_are_listed_and_names_are_quoted_in_links(exporter: Exporter) -> None:
    said = exporter.get("/api/v1/sites").json()["sites"]
    assert [site["site"] for site in said] == ["books", "two words & more"]
    assert said[1]["links"] == {"page": "/sites/two%20words%20%26%20more"}
    assert exporter.get("/api/v1/sites/two%20words%20%26%20more").json()["site"] == "two words & more"


def test_a_crawler_of_an_unknown_site_goes_on_as_usual(exporter: Exporter) -> None:
    answer = exporter.get("/api/v1/sites/bokos?wait=30s&etag=x")
    assert answer.status_code == 404
    assert answer.json()["advice"] == NEUTRAL


@pytest.mark.parametrize("path", ["/api/v1/sites/books", "/api/v1/sites"])
def test_a_client_that_has_the_present_answer_gets_nothing_again(exporter: Exporter, path: str) -> None:
    tag = exporter.get(path).headers["etag"]
    for written in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        answer = exporter.get(path, headers={"if-none-match": written})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert exporter.get(path, headers={"if-none-match": '"other"'}).status_code == 200
    assert exporter.get(path, params={"etag": tag.removeprefix("W/").strip('"')}).status_code == 304


@pytest.mark.parametrize("path", ["/api/v1/sites/books", "/api/v1/sites"])
def test_a_long_poll_is_answered_by_the_change(exporter: Exporter, path: str) -> None:
    tag = exporter.get(path).headers["etag"]
    got: list[tuple[int, str]] = []
    asked = Event()

    def follow() -> None:
        asked.set()
        answer = exporter.get(path, params={"wait": "15s", "etag": tag})
        got.append((answer.status_code, answer.headers["etag"]))

    thread = Thread(target=follow)
    thread.start()
    asked.wait()
    begun = time.monotonic()
    assert decide(exporter)[0] == 200
    thread.join()
    assert time.monotonic() - begun < 10
    assert got == [(200, exporter.get(path).headers["etag"])]


def test_a_long_poll_ends_without_a_change(exporter: Exporter) -> None:
    tag = exporter.get("/api/v1/sites/books").headers["etag"]
    begun = time.monotonic()
    answer = exporter.get("/api/v1/sites/books", params={"wait": "600ms", "etag": tag})
    assert (answer.status_code, answer.headers["etag"]) == (304, tag)
    assert 0.5 < time.monotonic() - begun < 5


def test_a_wait_that_cannot_be_read_is_told(exporter: Exporter) -> None:
    answer = exporter.get("/api/v1/sites/books?wait=soon")
    assert answer.status_code == 400
    assert answer.json() == {"error": "wait is not a duration: write 30s, 5m, 1h30m or 2d (units ms, s, m, h, d, w)"}


def test_an_override_beats_the_advice_until_it_is_ended(exporter: Exporter) -> None:
    status, said = decide(exporter)
    assert (status, said["advice"]["concurrency_ratio"]) == (200, 0.3)
    assert said["override"] == {**said["override"], "kind": "limit", "concurrency_ratio": 0.3, "note": "they asked"}
    assert exporter.get("/api/v1/sites/books").json()["override"] == said["override"]
    assert decide(exporter, {"kind": "pause"})[1]["advice"]["paused"] is True, "a later one takes its place"
    ended = exporter.delete("/api/v1/sites/books/override", headers=AUTHORISED).json()
    assert (ended["override"], ended["advice"]) == (None, NEUTRAL)


def test_an_override_outlives_a_crash(tmp_path: Path) -> None:
    with Exporter(tmp_path, CONFIG, environ={"TOKEN": "geheim", "QUOTES": "leise"}) as exporter:
        assert decide(exporter)[0] == 200
        exporter.stop(9)
        exporter.start()
        assert exporter.get("/api/v1/sites/books").json()["advice"]["concurrency_ratio"] == 0.3


def test_nobody_who_waits_holds_up_the_end(tmp_path: Path) -> None:
    with Exporter(tmp_path, CONFIG, environ={"TOKEN": "geheim", "QUOTES": "leise"}) as exporter:
        tag = exporter.get("/api/v1/sites/books").headers["etag"]
        host, _, port = exporter.url.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(
                f"GET /api/v1/sites/books?wait=60s HTTP/1.1\r\nhost: x\r\nif-none-match: {tag}\r\n\r\n".encode()
            )
            exporter.get("/-/healthy")
            assert exporter.stop() == 0
            assert client.recv(100).startswith(b"HTTP/1.1 304")
        assert "exceeded" not in exporter.log()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param({"kind": "halt"}, "kind: write one of pause, resume, limit", id="an unknown kind"),
        pytest.param(
            {"kind": "limit"}, "concurrency_ratio: a limit needs one: write a share from 0 to 1", id="no ratio"
        ),
        pytest.param(
            {"kind": "resume", "concurrency_ratio": 3},
            "concurrency_ratio: write a share over 0 and up to 1; to stop, pause",
            id="faster than usual",
        ),
        pytest.param(
            {"kind": "pause", "until": "2020-01-01T00:00:00Z"},
            "until: is in the past: write a later moment, or a duration as in 2h",
            id="an end in the past",
        ),
        pytest.param(
            {"kind": "pause", "until": "tomorrow"},
            "until: is not a duration: write 30s, 5m, 1h30m or 2d (units ms, s, m, h, d, w)",
            id="an end that cannot be read",
        ),
        pytest.param({"kind": "pause", "note": "x" * 501}, "note: write at most 500 characters", id="a novel"),
        pytest.param(
            {"kind": "pause", "why": "x"},
            "the body is not an override: Object contains unknown field `why`",
            id="an unknown field",
        ),
        pytest.param(
            [1], "the body is not an override: Expected `object`, got `array`", id="something else altogether"
        ),
        pytest.param({"note": "x" * 20_000}, "the body is longer than 16384 bytes", id="a flood"),
    ],
)
def test_an_override_that_cannot_be_meant_is_told_why(exporter: Exporter, body: object, reason: str) -> None:
    assert decide(exporter, body) == (400, {"error": reason})
    assert exporter.get("/api/v1/sites/books").json()["override"] is None


@pytest.mark.parametrize(
    ("site", "token", "status"),
    [
        pytest.param("books", "", 401, id="no token"),
        pytest.param("books", "leise", 403, id="the token of another site"),
        pytest.param("two words & more", "leise", 200, id="its own site"),
        pytest.param("bokos", "geheim", 404, id="no such site"),
    ],
)
def test_who_may_decide(exporter: Exporter, site: str, token: str, status: int) -> None:
    assert (
        decide(exporter, {"kind": "limit", "concurrency_ratio": 1, "until": "1s"}, site=site, token=token)[0] == status
    )


def test_five_hundred_crawlers_wait_at_once_and_all_hear_of_it(exporter: Exporter) -> None:
    """On connections of their own, from one loop: none costs a thread, and /metrics is answered beside them."""
    host, _, port = exporter.url.removeprefix("http://").rpartition(":")
    tag = exporter.get("/api/v1/sites/books").headers["etag"]
    lines = f"GET /api/v1/sites/books?wait=30s HTTP/1.1\r\nhost: x\r\nif-none-match: {tag}\r\n\r\n".encode()

    async def one(waiting: asyncio.Semaphore) -> float:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(lines)
        await writer.drain()
        waiting.release()
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        said = json.loads(await reader.readexactly(length))
        writer.close()
        ratio: float = said["advice"]["concurrency_ratio"]
        return ratio

    async def crowd() -> list[float]:
        waiting = asyncio.Semaphore(0)
        tasks = [asyncio.create_task(one(waiting)) for _ in range(500)]
        for _ in tasks:
            await waiting.acquire()
        assert (await asyncio.to_thread(exporter.get, "/metrics")).status_code == 200
        assert (await asyncio.to_thread(decide, exporter))[0] == 200
        return await asyncio.gather(*tasks)

    assert asyncio.run(crowd()) == [0.3] * 500
