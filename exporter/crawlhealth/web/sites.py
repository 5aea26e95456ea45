"""`/api/v1/sites`: verdict and advice of the sites, which clients may follow by long-polls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crawlhealth import quantities
from crawlhealth.model import Override, Verdict
from crawlhealth.web.siteanswer import answer, encoded, tag, tag_of_all, unknown_site
from crawlhealth.web.watch import TooMany, Watch

MAX_WAIT_SECONDS: Final = 60.0
"""The longest that a request waits; a client asks again."""
RETRY_SECONDS: Final = "30"


@dataclass(frozen=True, slots=True, kw_only=True)
class SitesState:
    """What these endpoints ask of the running exporter.

    `names` are the configured sites, `verdicts` the latest on each that has one. `put` brings an override to disk and
    into force, `end` ends one before its time (False when there is none); both raise HistoryError.
    """

    names: Callable[[], Collection[str]]
    verdicts: Callable[[], Mapping[str, Verdict]]
    put: Callable[[Override], None]
    end: Callable[[str], bool]

    def tag(self, site: str | None) -> str:
        """The present tag of a site, or of the list."""
        if site is None:
            return tag_of_all(self.all())
        return tag(self.verdicts().get(site))

    def all(self) -> Mapping[str, Verdict | None]:
        """Every configured site with its verdict, by name."""
        verdicts = self.verdicts()
        return {name: verdicts.get(name) for name in sorted(self.names())}


def site_routes(state: SitesState, watch: Watch) -> list[Route]:
    """The routes that tell of sites."""

    async def one(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in state.names():
            return as_json(unknown_site(name), status=404)

        async def say() -> Response:
            verdict = state.verdicts().get(name)
            return as_json(encoded(answer(name, verdict)), tag=tag(verdict))

        return await _followed(request, watch, name, state.tag, say)

    async def every(request: Request) -> Response:
        def render() -> Response:
            sites = state.all()
            said = {"sites": [answer(name, verdict) for name, verdict in sites.items()]}
            return as_json(encoded(said), tag=tag_of_all(sites))

        async def say() -> Response:
            return await run_in_threadpool(render)

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
