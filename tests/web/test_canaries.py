"""Pushed canaries under load: a few at a time, some wait, the rest is told to come later."""

from __future__ import annotations

import asyncio
import json
from threading import Event

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Message, Scope

from crawlhealth.canary.arrivals import NotKept, Outdated, Taken
from crawlhealth.web import canaries
from samples import run

PATH = "/api/v1/canaries/books/front"


def application(take: canaries.Take) -> Starlette:
    endpoint = canaries.canary_endpoint(take, tuple)
    return Starlette(routes=[Route("/api/v1/canaries/{site}/{canary}", endpoint, methods=["POST"])])


async def ask(app: Starlette, *, body_comes: asyncio.Event | None = None) -> tuple[int, dict[str, str], bytes]:
    """The status, headers and body of an answer; the request's body comes when `body_comes` says so."""
    scope: Scope = {
        "type": "http", "method": "POST", "path": PATH, "query_string": b"", "headers": [], "root_path": "",
    }  # fmt: skip
    status, body = 0, b""
    headers: dict[str, str] = {}

    async def send(message: Message) -> None:
        nonlocal status, headers, body
        status = message.get("status", status)
        headers |= {name.decode(): value.decode() for name, value in message.get("headers", ())}
        body += message.get("body", b"")

    async def receive() -> Message:
        if body_comes is not None:
            await body_comes.wait()
        return {"type": "http.request", "body": b"{}", "more_body": False}

    await app(scope, receive, send)
    return status, headers, body


def test_a_few_at_once_some_wait_and_the_rest_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canaries, "AT_ONCE", 2)
    monkeypatch.setattr(canaries, "MOST_WAITING", 3)
    go, taken = Event(), []

    def take(site: str, name: str, _data: bytes) -> Taken:
        assert go.wait(20)
        taken.append((site, name))
        return Taken(run=run(), repeated=False)

    async def all_of_them() -> list[tuple[int, dict[str, str], bytes]]:
        app = application(take)
        asked = [asyncio.create_task(ask(app)) for _ in range(8)]
        done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED, timeout=20)
        refused = [task.result() for task in done]
        assert {(status, headers["retry-after"]) for status, headers, _ in refused} == {(429, "1")}
        go.set()
        return await asyncio.gather(*asked)

    answers = asyncio.run(all_of_them())
    assert sorted(status for status, _, _ in answers) == [200] * 5 + [429] * 3
    assert taken == [("books", "front")] * 5
    said = json.loads(next(body for status, _, body in answers if status == 200))
    assert (said["accepted"], said["outcome"], said["duplicate"]) == (1, "ok", False)


def test_a_body_that_does_not_come_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canaries, "AT_ONCE", 1)
    monkeypatch.setattr(canaries, "READ_SECONDS", 0.2)

    async def both() -> tuple[int, int]:
        app = application(lambda _site, _name, _data: Taken(run=run(), repeated=False))
        slow = asyncio.create_task(ask(app, body_comes=asyncio.Event()))
        await asyncio.sleep(0)
        return (await ask(app))[0], (await slow)[0]

    assert asyncio.run(both()) == (200, 408)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(LookupError("no such site"), 404, id="unknown"),
        pytest.param(ValueError("not an answer"), 400, id="unreadable"),
        pytest.param(Outdated("later known"), 409, id="outdated"),
        pytest.param(NotKept("disk full"), 503, id="not on disk"),
    ],
)
def test_what_cannot_be_taken_says_why(error: Exception, status: int) -> None:
    def take(_site: str, _name: str, _data: bytes) -> Taken:
        raise error

    got, headers, body = asyncio.run(ask(application(take)))
    assert (got, json.loads(body)) == (status, {"error": str(error)})
    assert ("retry-after" in headers) is (status == 503)
