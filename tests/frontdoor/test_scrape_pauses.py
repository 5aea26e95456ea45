"""A scrape of very many sites, and what else the event loop has to do."""

from __future__ import annotations

import asyncio
import gzip
import random
import re

import pytest
from prometheus_client.registry import CollectorRegistry
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Scope

from crawlhealth.collector import Exposition, show
from crawlhealth.config import Config, Site
from crawlhealth.history import Committed
from crawlhealth.outcome import Source
from crawlhealth.series import Text
from crawlhealth.tally import Tally
from crawlhealth.verdict import Band, BandState, Baseline, Rates, Verdict, Window
from crawlhealth.web.exposition import metrics_endpoint
from samples import DAY, NOW

SITES = 2_000
ROUTES = ("direct", "dc-us", "residential")
LONGEST_PAUSE = 0.1


def exposition() -> Exposition:
    draw = random.Random(1)
    latency = {bucket: draw.randrange(1, 500) for bucket in range(100, 170)}
    rates = Rates(hard_block=0.01, challenge=0.02, soft_block=0.0, latency_p95=0.4, extraction=0.01)
    names = [f"site-{number}" for number in range(SITES)]
    return Exposition(
        config=Config(
            routes=dict.fromkeys(ROUTES),  # type: ignore[arg-type]  # only the names are asked for
            sites={name: Site(name=name, hosts=(f"{name}.example",), routes=ROUTES) for name in names},
        ),
        committed=Committed(
            totals={
                (name, route, Source.TRAFFIC): Tally(ok=draw.randrange(10**6), bytes=10**9, latency=latency)
                for name in names
                for route in ROUTES
            }
        ),
        verdicts=tuple(
            Verdict(
                site=name, at=NOW, state=BandState(band=Band.NORMAL, since=NOW - DAY), score=99, score_raw=99,
                window=Window(seconds=600, requests=100, extractions=60, rates=rates),
                baseline=Baseline(hours=300, newest=NOW - DAY, rates=rates),
                route_refused=dict.fromkeys(ROUTES, 0.03), route_error=dict.fromkeys(ROUTES, 0.0),
            )
            for name in names
        ),
        now=NOW,
    )  # fmt: skip


@pytest.mark.alone
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_a_large_scrape_does_not_hold_up_the_event_loop(encoding: str) -> None:
    seen = exposition()

    def text() -> Text:
        made = Text()
        show(seen, made)
        return made

    endpoint = metrics_endpoint(text, CollectorRegistry())
    scope: Scope = {
        "type": "http", "method": "GET", "path": "/metrics", "query_string": b"",
        "headers": [(b"accept-encoding", encoding.encode())],
    }  # fmt: skip
    parts: list[bytes] = []

    async def receive() -> Message:
        return await asyncio.Future()

    async def send(message: Message) -> None:
        parts.append(message.get("body", b""))

    async def pauses(longest: list[float]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.001)
            longest[0] = max(longest[0], loop.time() - before)

    async def scrape() -> float:
        await metrics_endpoint(Text, CollectorRegistry())(Request(scope))  # what a running server has imported
        parts.clear()
        longest = [0.0]
        watching = asyncio.ensure_future(pauses(longest))
        answer = await endpoint(Request(scope))
        assert isinstance(answer, StreamingResponse)
        await answer(scope, receive, send)
        watching.cancel()
        return longest[0]

    longest = min(asyncio.run(scrape()) for _ in range(3))  # another program may hold up one of them
    body = b"".join(parts)
    lines = (gzip.decompress(body) if encoding == "gzip" else body).decode()
    series = len(re.findall(r'^crawlhealth_.*site="', lines, re.MULTILINE))
    assert 60 * SITES < series <= 120 * SITES
    assert longest < LONGEST_PAUSE
