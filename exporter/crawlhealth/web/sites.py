"""`/api/v1/sites`: verdict and advice of the sites, which clients may follow by long-polls."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crawlhealth import quantities
from crawlhealth.shard import Shard
from crawlhealth.verdict import Override, Verdict
from crawlhealth.web.siteanswer import answer, encoded, tag, tag_of_all, unknown_site
from crawlhealth.web.watch import TooMany, Watch

MAX_WAIT_SECONDS: Final = 60.0
"""The longest that a request waits; a client asks again."""
RETRY_SECONDS: Final = "30"


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """All sites at one moment, and what follows from it once it was asked for."""

    names: Collection[str]
    verdicts: Mapping[str, Verdict]
    tag: str
    body: bytes | None = None


class SitesState:
    """What these endpoints ask of the running exporter. Thread-safe.

    `names` are the configured sites, `verdicts` the latest on each that has one; both are replaced and never changed.
    `why` says why another name is none of them, `owner` which other shard has it; `shard` is that of the exporter.
    `put` brings an override to disk and into force, `end` ends one before its time (False when there is none); both
    raise HistoryError.
    """

    def __init__(
        self,
        *,
        names: Callable[[], Collection[str]],
        verdicts: Callable[[], Mapping[str, Verdict]],
        put: Callable[[Override], None],
        end: Callable[[str], bool],
        why: Callable[[str], str],
        owner: Callable[[str], Shard | None],
        shard: Shard | None,
    ) -> None:
        self.names = names
        self.verdicts = verdicts
        self.put = put
        self.end = end
        self.why = why
        self.owner = owner
        self._shard = shard
        self._lock = threading.Lock()
        self._rendering = threading.Lock()  # held for longer; the event loop never waits for it
        self._snapshot: _Snapshot | None = None

    def tag(self, site: str | None) -> str:
        """The present tag of a site, or of the list."""
        if site is not None:
            return tag(self.verdicts().get(site))
        with self._lock:
            return self._present().tag

    def everything(self) -> tuple[bytes, str]:
        """All sites as JSON, and the tag of that; rendered once for each evaluation, however many ask."""
        with self._rendering:
            with self._lock:
                now = self._present()
            if now.body is not None:
                return now.body, now.tag
            sites = [answer(name, now.verdicts.get(name)) for name in sorted(now.names)]
            body = encoded({"sites": sites, "shard": self._shard})
            with self._lock:
                if self._snapshot is now:
                    self._snapshot = replace(now, body=body)
            return body, now.tag

    def _present(self) -> _Snapshot:
        names, verdicts = self.names(), self.verdicts()
        known = self._snapshot
        if known is None or known.names is not names or known.verdicts is not verdicts:
            every = tag_of_all({name: verdicts.get(name) for name in names})
            known = self._snapshot = _Snapshot(names=names, verdicts=verdicts, tag=every)
        return known


def site_routes(state: SitesState, watch: Watch) -> list[Route]:
    """The routes that tell of sites."""

    async def one(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in state.names():
            return as_json(unknown_site(name, state.why(name), state.owner(name)), status=404)

        async def say() -> Response:
            verdict = state.verdicts().get(name)
            return as_json(encoded(answer(name, verdict)), tag=tag(verdict))

        return await _followed(request, watch, name, state.tag, say)

    async def every(request: Request) -> Response:
        async def say() -> Response:
            body, present = await run_in_threadpool(state.everything)
            return as_json(body, tag=present)

        return await _followed(request, watch, None, state.tag, say)

    return [
        Route("/api/v1/sites", every, methods=["GET"]),
        Route("/api/v1/sites/{name}", one, methods=["GET"]),
    ]


async def _followed(
    request: Request,
    watch: Watch,
    site: str | None,
    current: Callable[[str | None], str],
    say: Callable[[], Awaitable[Response]],
) -> Response:
    """An answer at once; or, where the client has the present one, when it changes or `wait` is over (304)."""
    try:
        seconds = _wait(request)
    except ValueError as error:
        return _error(400, f"wait {error}")
    known = _known(request)
    now = await run_in_threadpool(current, site) if site is None else current(site)
    if now.removeprefix("W/") not in known and "*" not in known:
        return await say()
    try:
        changed = seconds > 0 and await watch.changed(site, now, seconds)
    except TooMany:
        return _error(503, "too many requests wait already: ask again later", {"retry-after": RETRY_SECONDS})
    return await say() if changed else Response(status_code=304, headers=_headers(now))


def _wait(request: Request) -> float:
    written = request.query_params.get("wait", "0")
    return min(MAX_WAIT_SECONDS, quantities.duration(written).total_seconds())


def _known(request: Request) -> Collection[str]:
    """The tags that the client has, without the mark of weak ones; written with or without quotes in the address."""
    given = request.query_params.get("etag")
    items = [given] if given else request.headers.get("if-none-match", "").split(",")
    bare = (item.strip().removeprefix("W/").strip('"') for item in items)
    return {item if item == "*" else f'"{item}"' for item in bare if item}


def as_json(body: bytes, *, status: int = 200, tag: str | None = None) -> Response:
    """An answer in JSON, with its tag where it has one."""
    return Response(
        body, status_code=status, media_type="application/json", headers=_headers(tag) if tag is not None else None
    )


def _headers(tag: str) -> dict[str, str]:
    return {"etag": tag, "cache-control": "no-cache"}


def _error(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": reason}, status_code=status, headers=headers)
