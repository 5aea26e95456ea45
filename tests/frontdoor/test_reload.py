"""A flood of reloads, against the application itself."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from threading import Event

from starlette.types import Message, Scope

from crawlhealth import web
from crawlhealth.app import Service

FLOOD = 100
"""More than the threads that answer requests."""


def test_reloads_that_wait_do_not_keep_scrapes_waiting(tmp_path: Path) -> None:
    may_go, reloads = Event(), []

    def reload() -> None:
        assert may_go.wait(20)
        reloads.append(1)

    path = tmp_path / "crawlhealth.yml"
    path.write_text("sites: {}\n", encoding="utf-8")
    service = Service(path)
    application = web.create(replace(service.web_state(), reload=reload))

    async def ask(method: str, path: str) -> int:
        scope: Scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": []}
        status = 0

        async def send(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)

        sent: list[Message] = [{"type": "http.request"}]

        async def receive() -> Message:
            if not sent:
                await asyncio.Event().wait()  # the client stays
            return sent.pop()

        await application(scope, receive, send)
        return status

    async def flood() -> tuple[int, list[int]]:
        asked = [asyncio.create_task(ask("POST", "/-/reload")) for _ in range(FLOOD)]
        try:
            status = await asyncio.wait_for(ask("GET", "/metrics"), 10)
        finally:
            may_go.set()
        return status, await asyncio.gather(*asked)

    try:
        assert asyncio.run(flood()) == (200, [200] * FLOOD)
    finally:
        service.history.close()
    assert len(reloads) == FLOOD
