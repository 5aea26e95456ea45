"""/api/v1/dispatches: a dispatcher posts what it decided, and asks what its targets got; each tenant its own only."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from crawlhealth.config import PushToken, Secret
from crawlhealth.history import HistoryError
from crawlhealth.metrics import PUSH_BATCHES, PUSH_ITEMS, MetricSpec
from crawlhealth.searchbots.dispatch import TargetState
from crawlhealth.searchbots.posted import Post, Said, TooMany, UsedBefore
from crawlhealth.searchbotsettings import SearchbotSettings
from crawlhealth.traffic.body import Body, Text, TooLarge, Unreadable
from crawlhealth.traffic.tokens import ANYBODY, Grant, granted
from crawlhealth.web.receiving import Room, TurnedAway, answer, coding_of, drain, key_of, read

log = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 1_000_000
"""Of a summary, with and without its content coding; a minute of a busy dispatcher has some ten thousand."""
DISK_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchState:
    """What the endpoint asks of the running exporter. `tokens` are those of pushes; all of them are asked each time.

    `take` counts a post and brings it to disk (see Posts.take), `states` has the targets of a tenant, `count` counts a
    series on.
    """

    settings: Callable[[], SearchbotSettings]
    tokens: Callable[[], Iterable[Secret | PushToken]]
    take: Callable[[Post], tuple[Said, bool]]
    states: Callable[[str], Iterable[TargetState]]
    count: Callable[[MetricSpec, tuple[str, ...], float], None]
    max_waiting_bytes: Callable[[], int]


class _Share(msgspec.Struct, kw_only=True):
    share: float
    expected: float | None


class _Target(msgspec.Struct, kw_only=True):
    used_today: int
    quota_today: int | None
    bots: dict[str, _Share]


class _Tenant(msgspec.Struct, kw_only=True):
    domains: tuple[str, ...]
    targets: dict[str, _Target]


def speaker(authorization: str, tokens: Iterable[Secret | PushToken], settings: SearchbotSettings) -> Grant | None:
    """Whom an Authorization header may speak for: `sites` are tenants here, None stands for all; None for nobody.

    A tenant's tokens are good for that tenant, a token of pushes that is not limited to sites for all. Where there is
    no token at all, anybody may. Takes as long for a wrong token as for any.
    """
    pushes = list(tokens)
    known: list[Secret | PushToken] = [token for token in pushes if isinstance(token, Secret)]
    known += [
        PushToken(token=each, sites=(tenant.name,)) for tenant in settings.tenants.values() for each in tenant.tokens
    ]
    if known:
        return granted(authorization, known)
    return None if pushes else ANYBODY


class DispatchEndpoints:
    """The endpoint of dispatches; one instance, for the bytes in memory are counted in it."""

    def __init__(self, state: DispatchState) -> None:
        self._state = state
        self._room = Room(state.max_waiting_bytes)
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="dispatches")

    def routes(self) -> list[Route]:
        """Where it is found."""
        return [Route("/api/v1/dispatches", self.answer, methods=["GET", "POST"])]

    async def answer(self, request: Request) -> Response:
        """Either of both."""
        return await (self.post if request.method == "POST" else self.get)(request)

    async def get(self, request: Request) -> Response:
        """What the targets of the sender's tenants got today."""
        settings = self._state.settings()
        try:
            tenants = self._tenants(request, settings)[1]
        except TurnedAway as away:
            return away.response()
        found = await run_in_threadpool(
            lambda: {name: self._seen(name, settings) for name in settings.tenant_names if name in tenants}
        )
        return answer(200, msgspec.json.encode({"tenants": found}), {})

    async def post(self, request: Request) -> Response:
        """Take a summary."""
        try:
            with self._room.reading() as take:
                return await self._post(request, take)
        except TurnedAway as away:
            self._state.count(PUSH_BATCHES, (away.result,), 1)
            await drain(request)
            return away.response()
        except ClientDisconnect:
            return Response(status_code=400)

    async def _post(self, request: Request, take: Callable[[int], None]) -> Response:
        who, tenants = self._tenants(request, self._state.settings())
        coding, key = coding_of(request), key_of(request)
        data = await read(request, take, limit=MAX_BODY_BYTES)
        pushed = None if key is None else (f"dispatches {who}", key)

        def counted() -> tuple[Said, bool]:
            texts, checksum = _items(data, coding)
            return self._state.take(Post(texts=texts, tenants=tenants, checksum=checksum, key=pushed))

        try:
            async with asyncio.timeout(DISK_SECONDS):
                said, repeated = await asyncio.get_running_loop().run_in_executor(self._threads, counted)
        except Unreadable as error:
            raise TurnedAway(400, str(error)) from None
        except (TooLarge, TooMany) as error:
            raise TurnedAway(413, str(error)) from None
        except UsedBefore as error:
            raise TurnedAway(422, str(error)) from None
        except (HistoryError, TimeoutError) as error:
            log.error("a post of dispatches is not on disk: %s", error or "it takes too long")
            raise TurnedAway(503, "not on disk yet: send it again later, with its key", retry_after=5) from None
        result = "duplicate" if repeated else "accepted" if said.accepted else "rejected"
        self._state.count(PUSH_BATCHES, (result,), 1)
        items = {"duplicate": said.items} if repeated else {"accepted": said.accepted, "rejected": said.rejected_items}
        for name, amount in items.items():
            if amount:
                self._state.count(PUSH_ITEMS, (name,), amount)
        return _answer(said, repeated=repeated)

    def _tenants(self, request: Request, settings: SearchbotSettings) -> tuple[str, frozenset[str]]:
        """Who asks, and the tenants it may speak for. Raises TurnedAway."""
        grant = speaker(request.headers.get("authorization", ""), self._state.tokens(), settings)
        if grant is None:
            raise TurnedAway(401, "a bearer token of a tenant (searchbots.tenants), or from push.tokens, is needed")
        return grant.who, frozenset(settings.tenant_names) if grant.sites is None else grant.sites

    def _seen(self, tenant: str, settings: SearchbotSettings) -> _Tenant:
        targets = {
            state.target: _Target(
                used_today=state.used,
                quota_today=state.quota,
                bots={bot: _Share(share=got, expected=wanted) for bot, (got, wanted) in state.shares.items()},
            )
            for state in self._state.states(tenant)
        }
        return _Tenant(domains=settings.domains_of(tenant), targets=targets)


def _items(data: bytes, coding: str) -> tuple[list[Text], int]:
    """The JSON texts of a body, and its checksum. Raises Unreadable and TooLarge."""
    body = Body(data, coding)
    plain = bytearray()
    for piece in body.decoded():
        plain += piece
        if len(plain) > MAX_BODY_BYTES:
            raise TooLarge(f"more than {MAX_BODY_BYTES} bytes, decoded: send smaller batches")
    texts = [text for some in Body(bytes(plain), "identity").items() for text in some]
    if not texts:
        raise Unreadable("the body holds no item")
    return texts, body.checksum


def _answer(said: Said, *, repeated: bool) -> Response:
    """200 where something was taken, 403 where all was of others, else 422."""
    status = 200 if said.accepted else 403 if said.forbidden == said.rejected_items else 422
    body = {
        "accepted": said.accepted,
        "rejected_items": said.rejected_items,
        "rejected": [{"index": each.index, "reason": each.reason} for each in said.rejected],
    }
    headers = {"idempotent-replayed": "true"} if repeated else {}
    return answer(status, json.dumps(body, ensure_ascii=False).encode(), headers)
