"""/metrics: text or OpenMetrics as the scraper prefers, gzipped where it may be, rendered off the event loop."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

CONCURRENT_SCRAPES = 2
GZIP_LEVEL = 1


def metrics_endpoint(registry: CollectorRegistry) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that renders a registry."""
    slots = asyncio.Semaphore(CONCURRENT_SCRAPES)

    async def scrape(request: Request) -> Response:
        accept = request.headers.get("accept", "")
        zipped = "gzip" in request.headers.get("accept-encoding", "").lower()
        async with slots:
            body, content_type = await run_in_threadpool(_render, registry, accept, zipped)
        headers = {"content-type": content_type, "vary": "accept, accept-encoding"}
        if zipped:
            headers["content-encoding"] = "gzip"
        return Response(body, headers=headers)

    return scrape


def _render(registry: CollectorRegistry, accept: str, zipped: bool) -> tuple[bytes, str]:
    encoder, content_type = choose_encoder(accept)
    body = encoder(registry)
    return (gzip.compress(body, GZIP_LEVEL) if zipped else body), content_type
