"""POST /api/v1/observations and /api/v1/windows: who may, how much, and what is answered. The work is the intake's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from crawlhealth.config import PushToken, Secret
from crawlhealth.history import HistoryError
from crawlhealth.traffic import report
from crawlhealth.traffic.body import TooLarge, Unreadable
from crawlhealth.traffic.intake import Intake, MakeGatherer, Push, Reused, Taken
from crawlhealth.traffic.tokens import granted
from crawlhealth.web.receiving import Room, TurnedAway, answer, coding_of, drain, key_of, read

log = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]

WORKERS: Final = 2
"""Pushes decoded at the same time."""
DISK_SECONDS: Final = 60.0
"""How long a sender waits for the disk."""
_TOKEN_WANTED: Final = "a bearer token from push.tokens is needed"  # noqa: S105 - no token itself


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
        self._room = Room(max_waiting_bytes)
        self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="push")

    def endpoint(self, make: MakeGatherer) -> Endpoint:
        """The endpoint whose bodies hold what `make` gathers."""

        async def push(request: Request) -> Response:
            try:
                with self._room.reading() as take:
                    return await self._push(request, take, make)
            except TurnedAway as away:
                self._intake.refuse(away.result)
                await drain(request)
                return away.response()
            except ClientDisconnect:
                return Response(status_code=400)

        return push

    async def _push(self, request: Request, take: Callable[[int], None], make: MakeGatherer) -> Response:
        grant = granted(request.headers.get("authorization", ""), self._tokens())
        if grant is None:
            raise TurnedAway(401, _TOKEN_WANTED)
        coding, key = coding_of(request), key_of(request)
        if self._intake.failing:
            raise TurnedAway(503, "the history cannot be written: send it again later", retry_after=5)
        data = await read(request, take)
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
    return answer(status, report.encode(said), {"idempotent-replayed": "true"} if taken.repeated else {})
