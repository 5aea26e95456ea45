"""The HTTP side: /metrics, health, reload and pages for people, as one ASGI application."""

from crawlhealth.web.application import WebState, create
from crawlhealth.web.server import bind, run, url_of

__all__ = ["WebState", "bind", "create", "run", "url_of"]
