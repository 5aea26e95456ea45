"""Pages for people. Everything that came from a page or a file is escaped by the templates; nothing is fetched."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import cache
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from crawlhealth import __version__
from crawlhealth.collector import Exposition
from crawlhealth.history import HistoryError
from crawlhealth.web import words
from crawlhealth.web.overview import overview
from crawlhealth.web.siteview import SitePast, view

log = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]

SECONDS_BETWEEN = 30
"""How often a page loads itself again when a person asked for that."""


def landing_endpoint(exposition: Callable[[], Exposition]) -> Endpoint:
    """The endpoint of the landing page: all sites, those that need a person first."""
    template = _environment().get_template("landing.html")

    def render(band: str, part: str, again: int) -> str:
        shown = exposition()
        return template.render(
            page=overview(shown, band=band, part=part), now=words.moment(shown.now), again=again, version=__version__
        )

    async def landing(request: Request) -> Response:
        asked = request.query_params
        text = await run_in_threadpool(render, asked.get("band", ""), asked.get("q", "")[:200], _again(request))
        return HTMLResponse(text)

    return landing


def site_endpoint(exposition: Callable[[], Exposition], past: Callable[[str, float], SitePast]) -> Endpoint:
    """The endpoint of one site's page; `past` reads the history of a site up to a time."""
    environment = _environment()
    template, missing = environment.get_template("site.html"), environment.get_template("nosite.html")

    def render(site: str, again: int) -> tuple[str, int]:
        shown = exposition()
        if site not in shown.config.sites:
            return missing.render(why=shown.config.unknown(site), again=0, version=__version__), 404
        try:
            known = past(site, shown.now)
        except HistoryError as error:
            log.error("the page of %s goes without its past: %s", site, error)
            known = SitePast()
        page = view(site, shown, known)
        return template.render(page=page, now=words.moment(shown.now), again=again, version=__version__), 200

    async def page(request: Request) -> Response:
        text, status = await run_in_threadpool(render, request.path_params["name"], _again(request))
        # browsers then say of its form that it is our own; towards others they say nothing still
        return HTMLResponse(text, status_code=status, headers={"referrer-policy": "same-origin"})

    return page


def problem_page(site: str, reason: str, status: int, *, back: str | None = None) -> Response:
    """What a person sees whose form on the page of a site was not taken; `back` leads to that page."""
    template = _environment().get_template("problem.html")
    back = f"../../../{quote(site, safe='')}" if back is None else back
    return HTMLResponse(
        template.render(site=site, reason=reason, back=back, again=0, version=__version__), status_code=status
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("crawlhealth.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _again(request: Request) -> int:
    """The seconds after which the page loads itself again; 0 for never."""
    return SECONDS_BETWEEN if request.query_params.get("refresh") else 0
