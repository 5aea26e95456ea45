"""A flood of reloads, against the application itself."""

from __future__ import annotations

import asyncio
from threading import Event

from prometheus_client.registry import CollectorRegistry
from starlette.types import Message, Scope

from crawlhealth import web
from crawlhealth.collector import Exposition
from crawlhealth.config import Config
from crawlhealth.history import Committed
from crawlhealth.series import Text

FLOOD = 100
"""More than the threads that answer requests."""


def exposition() -> Exposition:
    return Exposition(config=Config(), committed=Committed(), verdicts=(), now=0.0)


def test_reloads_that_wait_do_not_keep_scrapes_waiting() -> None:
    may_go, reloads = Event(), []

    def reload() -> None:
        assert may_go.wait(20)
        reloads.append(1)

    application = web.create(
        web.WebState(
            text=Text, registry=CollectorRegistry(), exposition=exposition, reload=reload, tokens=tuple,
            ready=lambda: True, problem=lambda: None,
        )
    )  # fmt: skip

    async def ask(method: str, path: str) -> int:
        scope: Scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": []}
        status = 0

        async def send(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)

        async def receive() -> Message:
            return {"type": "http.request"}

        await application(scope, receive, send)
        return status

    async def flood() -> tuple[int, list[int]]:
        asked = [asyncio.create_task(ask("POST", "/-/reload")) for _ in range(FLOOD)]
        try:
            status = await asyncio.wait_for(ask("GET", "/metrics"), 10)
        finally:
            may_go.set()
        return status, await asyncio.gather(*asked)

    assert asyncio.run(flood()) == (200, [200] * FLOOD)
    assert len(reloads) == FLOOD
