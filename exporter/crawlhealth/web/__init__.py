"""The HTTP side: /metrics, health, reload and pages for people, as one ASGI application."""

from crawlhealth.web.application import WebState, create
from crawlhealth.web.server import bind, run, url_of
from crawlhealth.web.siteview import PAGE_REFUSALS, PAGE_SPAN, SitePast

__all__ = ["PAGE_REFUSALS", "PAGE_SPAN", "SitePast", "WebState", "bind", "create", "run", "url_of"]
