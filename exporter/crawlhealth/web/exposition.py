"""/metrics: text or OpenMetrics as the scraper prefers, gzipped where it may be, rendered off the event loop."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

CONCURRENT_SCRAPES = 2
GZIP_LEVEL = 1

_REFUSED: Final = re.compile(r";\s*q=0(?:\.0*)?\s*(?:;|$)", re.IGNORECASE)
_ODD_VERSION: Final = re.compile(r";\s*version=(?!\d{1,3}\.\d{1,3}\.\d{1,3}\s*(?:;|$))")
"""A version that the encoder cannot compare."""


def metrics_endpoint(registry: CollectorRegistry) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that renders a registry."""
    slots = asyncio.Semaphore(CONCURRENT_SCRAPES)

    async def scrape(request: Request) -> Response:
        accept = ",".join(item for item in _accepted(request, "accept") if not _ODD_VERSION.search(item))
        zipped = any(item.partition(";")[0].strip().lower() == "gzip" for item in _accepted(request, "accept-encoding"))
        async with slots:
            body, content_type = await run_in_threadpool(_render, registry, accept, zipped)
        headers = {"content-type": content_type, "vary": "accept, accept-encoding"}
        if zipped:
            headers["content-encoding"] = "gzip"
        return Response(body, headers=headers)

    return scrape


def _accepted(request: Request, header: str) -> Iterator[str]:
    """The items of an Accept header, without those that it refuses (`q=0`)."""
    items = ",".join(request.headers.getlist(header)).split(",")
    return (item for item in items if not _REFUSED.search(item))


def _render(registry: CollectorRegistry, accept: str, zipped: bool) -> tuple[bytes, str]:
    encoder, content_type = choose_encoder(accept)
    body = encoder(registry)
    return (gzip.compress(body, GZIP_LEVEL) if zipped else body), content_type
