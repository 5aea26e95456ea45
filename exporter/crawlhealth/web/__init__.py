"""The HTTP side: /metrics, health, reload and pages for people, as one ASGI application."""

from crawlhealth.web.application import WebState, create
from crawlhealth.web.dispatches import DispatchState
from crawlhealth.web.gate import Gate
from crawlhealth.web.guard import Guard
from crawlhealth.web.server import bind, run, url_of
from crawlhealth.web.sites import SitesState
from crawlhealth.web.siteview import PAGE_INCIDENTS, PAGE_REFUSALS, PAGE_SPAN, SitePast
from crawlhealth.web.watch import Watch

__all__ = [
    "PAGE_INCIDENTS",
    "PAGE_REFUSALS",
    "PAGE_SPAN",
    "DispatchState",
    "Gate",
    "Guard",
    "SitePast",
    "SitesState",
    "Watch",
    "WebState",
    "bind",
    "create",
    "run",
    "url_of",
]
