"""/metrics: text or OpenMetrics as the scraper prefers, gzipped where it may be, rendered off the event loop."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import chain
from typing import Final

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from crawlhealth.series import Text

CONCURRENT_SCRAPES = 2
GZIP_LEVEL = 1
GZIP_WINDOW = 31
"""What makes zlib write gzip's format."""

_REFUSED: Final = re.compile(r";\s*q=0(?:\.0*)?\s*(?:;|$)", re.IGNORECASE)
_ODD_VERSION: Final = re.compile(r";\s*version=(?!\d{1,3}\.\d{1,3}\.\d{1,3}\s*(?:;|$))")
"""A version that the encoder cannot compare."""


def metrics_endpoint(text: Callable[[], Text], registry: CollectorRegistry) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that renders what `text` has at that moment, and then a registry."""
    slots = asyncio.Semaphore(CONCURRENT_SCRAPES)

    async def scrape(request: Request) -> Response:
        accept = ",".join(item for item in _accepted(request, "accept") if not _ODD_VERSION.search(item))
        zipped = any(item.partition(";")[0].strip().lower() == "gzip" for item in _accepted(request, "accept-encoding"))
        async with slots:
            pieces, content_type = await run_in_threadpool(_render, text, registry, accept, zipped)
        headers = {
            "content-type": content_type,
            "content-length": str(sum(len(piece) for piece in pieces)),
            "vary": "accept, accept-encoding",
        }
        if zipped:
            headers["content-encoding"] = "gzip"
        return StreamingResponse(_each(pieces), headers=headers)

    return scrape


def _accepted(request: Request, header: str) -> Iterator[str]:
    """The items of an Accept header, without those that it refuses (`q=0`)."""
    items = ",".join(request.headers.getlist(header)).split(",")
    return (item for item in items if not _REFUSED.search(item))


async def _each(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _render(
    text: Callable[[], Text], registry: CollectorRegistry, accept: str, zipped: bool
) -> tuple[list[bytes], str]:
    """The answer piece by piece, so that no step keeps other threads from running for long, and its content type."""
    encoder, content_type = choose_encoder(accept)
    pieces = chain((piece.encode() for piece in text().pieces(encoder)), (encoder(registry),))
    if not zipped:
        return list(pieces), content_type
    squeeze = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WINDOW)
    squeezed = [squeeze.compress(piece) for piece in pieces]
    return [piece for piece in (*squeezed, squeeze.flush()) if piece], content_type
