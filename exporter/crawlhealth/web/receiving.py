"""What every push goes through before its items are looked at: type, key, room in memory, the limits of its body."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from crawlhealth.traffic.body import CODINGS, MAX_BODY_BYTES

MAX_KEY_CHARS: Final = 255
PAUSE_SECONDS: Final = 20.0
"""How long a sender may pause within a body."""
TYPES: Final = frozenset(
    {"application/json", "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
)


class TurnedAway(Exception):
    """A push that is not taken, with its status; `result` is how it is counted."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after

    @property
    def result(self) -> str:
        """The label it is counted under."""
        return "busy" if self.status in (429, 503) else "rejected"

    def response(self) -> Response:
        """The answer."""
        headers = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        return answer(self.status, json.dumps({"error": str(self)}, ensure_ascii=False).encode(), headers)


@dataclass(slots=True)
class Room:
    """Bytes of bodies in memory, of at most `limit()`. Used by the event loop alone."""

    limit: Callable[[], int]
    taken: int = 0

    @contextmanager
    def reading(self) -> Iterator[Callable[[int], None]]:
        """Take room for one body, piece by piece, and give it back in the end. Raises TurnedAway when there is none."""
        mine = 0

        def take(size: int) -> None:
            nonlocal mine
            if self.taken + size > self.limit():
                raise TurnedAway(429, "too much is waiting: send it again later", retry_after=1)
            self.taken += size
            mine += size

        try:
            yield take
        finally:
            self.taken -= mine


def answer(status: int, body: bytes, headers: dict[str, str]) -> Response:
    """An answer in JSON."""
    return Response(body, status_code=status, headers=headers, media_type="application/json")


def coding_of(request: Request) -> str:
    """The content coding of a push, one of CODINGS. Raises TurnedAway for others, and for other types."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in TYPES:
        raise TurnedAway(415, "Content-Type must be application/x-ndjson or application/json")
    coding = request.headers.get("content-encoding", "").strip().lower()
    if coding not in CODINGS:
        raise TurnedAway(415, "Content-Encoding must be gzip, zstd or identity")
    return coding


def key_of(request: Request) -> str | None:
    """The `Idempotency-Key`, if there is one. Raises TurnedAway for one that is empty or too long."""
    key = request.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= MAX_KEY_CHARS:
        raise TurnedAway(400, f"Idempotency-Key has 1 to {MAX_KEY_CHARS} characters")
    return key


async def read(request: Request, take: Callable[[int], None], *, limit: int = MAX_BODY_BYTES) -> bytes:
    """The body, whose bytes are taken room for. Raises TurnedAway for more than `limit` bytes, and one that stops."""
    said = request.headers.get("content-length", "")
    if said.isdigit() and int(said[:20]) > limit:
        raise TurnedAway(413, f"more than {limit} bytes: send smaller batches")
    pieces, size = [], 0
    async for piece in _pieces(request):
        size += len(piece)
        if size > limit:
            raise TurnedAway(413, f"more than {limit} bytes: send smaller batches")
        take(len(piece))
        pieces.append(piece)
    return b"".join(pieces)


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    """The pieces of a body as they come. Raises TurnedAway when its sender pauses too long."""
    stream = request.stream()
    try:
        while True:
            async with asyncio.timeout(PAUSE_SECONDS):
                piece = await anext(stream, None)
            if piece is None:
                return
            yield piece
    except TimeoutError:
        raise TurnedAway(408, "the body did not come to its end") from None


async def drain(request: Request) -> None:
    """Read the rest of a refused body and forget it, so that its sender gets to the answer; not without end."""
    size = 0
    with suppress(ClientDisconnect, TurnedAway, RuntimeError):  # RuntimeError: it has been read
        async for piece in _pieces(request):
            size += len(piece)
            if size > MAX_BODY_BYTES:
                return
