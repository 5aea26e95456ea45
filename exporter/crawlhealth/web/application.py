"""Routes to endpoints, and what every answer carries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client.registry import CollectorRegistry
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crawlhealth.collector import Exposition
from crawlhealth.config import PushToken, Secret
from crawlhealth.configfile import ConfigError
from crawlhealth.history import Decisions
from crawlhealth.scoresettings import BaselineSettings
from crawlhealth.series import Text
from crawlhealth.traffic.gathering import Gathering
from crawlhealth.traffic.intake import Intake
from crawlhealth.traffic.minutes import WindowGathering
from crawlhealth.traffic.tokens import granted
from crawlhealth.web.accepting import AcceptEndpoints
from crawlhealth.web.canaries import Take, canary_endpoint
from crawlhealth.web.description import description_route
from crawlhealth.web.dispatches import DispatchEndpoints, DispatchState
from crawlhealth.web.exposition import metrics_endpoint
from crawlhealth.web.incidents import IncidentEndpoints
from crawlhealth.web.overriding import override_endpoint
from crawlhealth.web.pages import landing_endpoint, site_endpoint
from crawlhealth.web.push import PushEndpoints
from crawlhealth.web.sites import SitesState, site_routes
from crawlhealth.web.siteview import SitePast
from crawlhealth.web.watch import Watch

log = logging.getLogger(__name__)

_SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebState:
    """What the endpoints ask of the running exporter.

    `past` is what the history knows of a site at a time. `reload` raises ConfigError when the new configuration cannot
    be read. `tokens` are those that may post; none means that posting needs no token. `max_waiting_bytes` of pushes
    may be in memory at once. `baseline` says how baselines are made; `judge` judges all sites at once. `problem` says
    what keeps the exporter from working, None while it works.
    """

    text: Callable[[], Text]
    registry: CollectorRegistry
    exposition: Callable[[], Exposition]
    past: Callable[[str, float], SitePast]
    reload: Callable[[], None]
    tokens: Callable[[], Iterable[Secret | PushToken]]
    intake: Intake
    max_waiting_bytes: Callable[[], int]
    ready: Callable[[], bool]
    problem: Callable[[], str | None]
    take_canary: Take
    sites: SitesState
    decisions: Decisions
    baseline: Callable[[], BaselineSettings]
    judge: Callable[[], None]
    watch: Watch
    dispatches: DispatchState


def create(state: WebState) -> ASGIApp:
    """The whole application."""
    pushes = PushEndpoints(state.intake, tokens=state.tokens, max_waiting_bytes=state.max_waiting_bytes)
    incidents = IncidentEndpoints(
        names=state.sites.names, why=state.sites.why, decisions=state.decisions, tokens=state.tokens
    )
    accepting = AcceptEndpoints(
        names=state.sites.names,
        why=state.sites.why,
        decisions=state.decisions,
        tokens=state.tokens,
        settings=state.baseline,
        judge=state.judge,
    )
    reloading = asyncio.Lock()  # reloads that wait for their turn must not take the threads that scrapes need

    async def healthy(_: Request) -> Response:
        problem = state.problem()
        return PlainTextResponse(problem or "crawlhealth is healthy", status_code=503 if problem else 200)

    async def ready(_: Request) -> Response:
        if state.ready():
            return PlainTextResponse("crawlhealth is ready")
        return PlainTextResponse("crawlhealth has not judged its sites yet", status_code=503)

    async def reload(request: Request) -> Response:
        if not authorised(request, state.tokens()):
            return JSONResponse({"error": "a bearer token from push.tokens is needed"}, status_code=401)
        try:
            async with reloading:
                await run_in_threadpool(state.reload)
        except ConfigError as error:
            return PlainTextResponse(f"the old configuration keeps running:\n{error}\n", status_code=400)
        return PlainTextResponse("configuration reloaded\n")

    application = Starlette(
        routes=[
            Route("/", landing_endpoint(state.exposition), methods=["GET"]),
            Route("/sites/{name}", site_endpoint(state.exposition, state.past), methods=["GET"]),
            Route("/metrics", metrics_endpoint(state.text, state.registry), methods=["GET"]),
            Route("/api/v1/observations", pushes.endpoint(Gathering), methods=["POST"]),
            Route("/api/v1/windows", pushes.endpoint(WindowGathering), methods=["POST"]),
            description_route(),
            *DispatchEndpoints(state.dispatches).routes(),
            *site_routes(state.sites, state.watch),
            *incidents.routes(),
            *accepting.routes(),
            Route(
                "/api/v1/sites/{name}/override",
                override_endpoint(state.sites, state.tokens),
                methods=["POST", "DELETE"],
            ),
            Route("/-/healthy", healthy, methods=["GET"]),
            Route("/-/ready", ready, methods=["GET"]),
            Route("/-/reload", reload, methods=["POST", "PUT"]),
            Route(
                "/api/v1/canaries/{site}/{canary}", canary_endpoint(state.take_canary, state.tokens), methods=["POST"]
            ),
        ],
    )
    return with_headers(application)


def authorised(request: Request, tokens: Iterable[Secret | PushToken]) -> bool:
    """Whether a request bears a token for everything; every request does when there are no tokens."""
    grant = granted(request.headers.get("authorization", ""), tokens)
    return grant is not None and grant.sites is None


def with_headers(application: ASGIApp) -> ASGIApp:
    """The application with the headers that keep its pages from loading, running or framing anything."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await application(scope, receive, send_with_headers)

    return wrapped
