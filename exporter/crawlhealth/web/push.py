"""POST /api/v1/observations and /api/v1/windows: who may, how much, and what is answered. The work is the intake's."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from crawlhealth.config import PushToken, Secret
from crawlhealth.history import HistoryError
from crawlhealth.traffic import report
from crawlhealth.traffic.body import CODINGS, MAX_BODY_BYTES, TooLarge, Unreadable
from crawlhealth.traffic.intake import Intake, MakeGatherer, Push, Reused, Taken
from crawlhealth.traffic.tokens import granted

log = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]

WORKERS: Final = 2
"""Pushes decoded at the same time."""
MAX_KEY_CHARS: Final = 255
PAUSE_SECONDS: Final = 20.0
"""How long a sender may pause within a body."""
DISK_SECONDS: Final = 60.0
"""How long a sender waits for the disk."""
TYPES: Final = frozenset(
    {"application/json", "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
)
_TOKEN_WANTED: Final = "a bearer token from push.tokens is needed"  # noqa: S105 - no token itself


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
        return _json(self.status, json.dumps({"error": str(self)}, ensure_ascii=False).encode(), headers)


@dataclass(slots=True)
class _Room:
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


class PushEndpoints:
    """The endpoints of pushes; one instance, for the bytes in memory are counted in it.

    `tokens` and `max_waiting_bytes` are asked at each push.
    """

    def __init__(
        self,
        intake: Intake,
        *,
        tokens: Callable[[], Iterable[Secret | PushToken]],
        max_waiting_bytes: Callable[[], int],
    ) -> None:
        self._intake = intake
        self._tokens = tokens
        self._room = _Room(max_waiting_bytes)
        self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="push")

    def endpoint(self, make: MakeGatherer) -> Endpoint:
        """The endpoint whose bodies hold what `make` gathers."""

        async def push(request: Request) -> Response:
            try:
                with self._room.reading() as take:
                    return await self._push(request, take, make)
            except TurnedAway as away:
                self._intake.refuse(away.result)
                await _drain(request)
                return away.response()
            except ClientDisconnect:
                return Response(status_code=400)

        return push

    async def _push(self, request: Request, take: Callable[[int], None], make: MakeGatherer) -> Response:
        grant = granted(request.headers.get("authorization", ""), self._tokens())
        if grant is None:
            raise TurnedAway(401, _TOKEN_WANTED)
        coding, key = _coding(request), _key(request)
        if self._intake.failing:
            raise TurnedAway(503, "the history cannot be written: send it again later", retry_after=5)
        data = await _read(request, take)
        return await self._take(Push(data=data, coding=coding, grant=grant, key=key, make=make))

    async def _take(self, push: Push) -> Response:
        try:
            future = await asyncio.get_running_loop().run_in_executor(self._threads, self._intake.take, push)
            async with asyncio.timeout(DISK_SECONDS):
                taken = await asyncio.shield(asyncio.wrap_future(future))
        except Unreadable as error:
            raise TurnedAway(400, str(error)) from None
        except TooLarge as error:
            raise TurnedAway(413, str(error)) from None
        except Reused as error:
            raise TurnedAway(422, str(error)) from None
        except (HistoryError, TimeoutError) as error:
            log.error("a push is not on disk: %s", error or "it takes too long")
            raise TurnedAway(503, "not on disk yet: send it again later, with its key", retry_after=5) from None
        return _answer(taken)


def _answer(taken: Taken) -> Response:
    said = taken.report
    status = 200 if said.accepted else 403 if taken.forbidden else 400
    return _json(status, report.encode(said), {"idempotent-replayed": "true"} if taken.repeated else {})


def _json(status: int, body: bytes, headers: dict[str, str]) -> Response:
    return Response(body, status_code=status, headers=headers, media_type="application/json")


def _coding(request: Request) -> str:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in TYPES:
        raise TurnedAway(415, "Content-Type must be application/x-ndjson or application/json")
    coding = request.headers.get("content-encoding", "").strip().lower()
    if coding not in CODINGS:
        raise TurnedAway(415, "Content-Encoding must be gzip, zstd or identity")
    return coding


def _key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= MAX_KEY_CHARS:
        raise TurnedAway(400, f"Idempotency-Key has 1 to {MAX_KEY_CHARS} characters")
    return key


async def _read(request: Request, take: Callable[[int], None]) -> bytes:
    said = request.headers.get("content-length", "")
    if said.isdigit() and int(said[:20]) > MAX_BODY_BYTES:
        raise TurnedAway(413, f"more than {MAX_BODY_BYTES} bytes: send smaller batches")
    pieces, size = [], 0
    async for piece in _pieces(request):
        size += len(piece)
        if size > MAX_BODY_BYTES:
            raise TurnedAway(413, f"more than {MAX_BODY_BYTES} bytes: send smaller batches")
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


async def _drain(request: Request) -> None:
    """Read the rest of a refused body and forget it, so that its sender gets to the answer; not without end."""
    size = 0
    with suppress(ClientDisconnect, TurnedAway, RuntimeError):  # RuntimeError: it has been read
        async for piece in _pieces(request):
            size += len(piece)
            if size > MAX_BODY_BYTES:
                return
