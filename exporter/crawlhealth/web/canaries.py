"""`POST /api/v1/canaries/SITE/CANARY`: what the user's own crawler got of a canary. A few at a time, off the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from crawlhealth.canary.arrivals import NotKept, Outdated, Taken
from crawlhealth.canary.decode import Body
from crawlhealth.canary.failure import Failure
from crawlhealth.config import PushToken, Secret
from crawlhealth.outcome import Reason
from crawlhealth.traffic.tokens import granted

MAX_BODY_BYTES: Final = 16_000_000
MAX_DECODED_BYTES: Final = 64_000_000
AT_ONCE: Final = 8
"""Requests read and judged at once; their bodies are in memory."""
MOST_WAITING: Final = 256
"""Requests that wait for their turn, with nothing read of them."""
READ_SECONDS: Final = 30.0
_CODINGS: Final = frozenset({"", "identity", "gzip", "x-gzip", "deflate", "br", "zstd"})

_RETRY_AFTER: Final = {429: "1", 503: "5"}

Take = Callable[[str, str, bytes], Taken]
"""See `crawlhealth.canary.arrivals.Arrivals.take`."""


class _Refused(Exception):
    """A request that is answered with a status and a reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def canary_endpoint(
    take: Take, tokens: Callable[[], Iterable[Secret | PushToken]]
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint; `tokens` are those that may post."""
    turns = asyncio.Semaphore(AT_ONCE)
    threads = ThreadPoolExecutor(AT_ONCE, "canary-push")  # its own: scrapes must find a thread
    waiting = 0

    async def receive(request: Request) -> Response:
        nonlocal waiting
        try:
            _check(request, tokens())
            if waiting >= MOST_WAITING:
                raise _Refused(429, "busy: send it again")
            waiting += 1
            try:
                await turns.acquire()
            finally:
                waiting -= 1
            try:
                body = await asyncio.wait_for(_read(request), READ_SECONDS)
                loop = asyncio.get_running_loop()
                return JSONResponse(_answer(await loop.run_in_executor(threads, _taken, take, request, body)))
            finally:
                turns.release()
        except _Refused as refused:
            headers = {"retry-after": _RETRY_AFTER[refused.status]} if refused.status in _RETRY_AFTER else None
            return JSONResponse({"error": str(refused)}, status_code=refused.status, headers=headers)
        except (TimeoutError, ClientDisconnect):
            return JSONResponse({"error": "the body did not come"}, status_code=408)

    return receive


def _check(request: Request, tokens: Iterable[Secret | PushToken]) -> None:
    grant = granted(request.headers.get("authorization", ""), tokens)
    if grant is None:
        raise _Refused(401, "a bearer token from push.tokens is needed")
    if grant.sites is not None and request.path_params["site"] not in grant.sites:
        raise _Refused(403, "this token is for other sites")
    if _coding(request) not in _CODINGS:
        raise _Refused(415, "the body is in a coding that is not known here: send gzip, zstd, br or none")


def _coding(request: Request) -> str:
    return request.headers.get("content-encoding", "").strip().lower()


def _taken(take: Take, request: Request, body: bytes) -> Taken:
    try:
        return take(request.path_params["site"], request.path_params["canary"], _decoded(body, _coding(request)))
    except LookupError as error:
        raise _Refused(404, str(error.args[0])) from error
    except ValueError as error:
        raise _Refused(400, str(error)) from error
    except Outdated as error:
        raise _Refused(409, str(error)) from error
    except NotKept as error:
        raise _Refused(503, str(error)) from error


async def _read(request: Request) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > MAX_BODY_BYTES:
            raise _Refused(413, f"more than {MAX_BODY_BYTES} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _decoded(data: bytes, coding: str) -> bytes:
    body = Body(coding, MAX_DECODED_BYTES, lambda: None)
    try:
        body.feed(data)
        body.finish()
    except Failure as failure:
        status = 413 if failure.reason is Reason.BODY_TOO_LARGE else 400
        raise _Refused(status, failure.detail) from None
    return body.data


def _answer(taken: Taken) -> dict[str, object]:
    """What the canary was judged to be, for whoever sent it. Text of the page in it is hostile."""
    run = taken.run
    return {
        "accepted": 1,
        "duplicate": taken.repeated,
        "outcome": run.classification.outcome.value,
        "reason": run.classification.reason.value,
        "success": run.success,
        "decoy_suspect": run.decoy_suspect,
        "values": [
            {
                "name": value.name,
                "ok": value.ok,
                "seen": value.seen,
                "failures": [
                    {"check": failure.check, "expected": failure.expected, "seen": failure.seen}
                    for failure in value.failures
                ],
            }
            for value in run.values
        ],
    }
