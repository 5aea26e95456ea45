"""The real application on a real socket, in a thread of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp

from crawlhealth.web import bind, url_of
from crawlhealth.web.application import with_headers
from crawlhealth.web.pages import landing_endpoint, site_endpoint
from waiting import until
from web import sample


@contextmanager
def served(application: ASGIApp) -> Iterator[str]:
    """The application's URL while it is served."""
    listener: socket.socket = bind("127.0.0.1:0")
    server = uvicorn.Server(uvicorn.Config(application, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="served")
    thread.start()
    try:
        until(lambda: server.started, 20, "the application is served")
        yield url_of(listener)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def application(*, hostile: bool = False, more: int = 0) -> ASGIApp:
    """The pages of the sample sites, with the headers that every answer carries."""
    routes = [
        Route("/", landing_endpoint(lambda: sample.exposition(more=more, hostile=hostile))),
        Route(
            "/sites/{name}",
            site_endpoint(
                lambda: sample.exposition(more=more, hostile=hostile),
                lambda site, now: sample.past(site, now, hostile=hostile),
            ),
        ),
    ]
    return with_headers(Starlette(routes=routes))


@contextmanager
def pages(*, hostile: bool = False, more: int = 0) -> Iterator[str]:
    """The URL of the pages of the sample sites while they are served."""
    with served(application(hostile=hostile, more=more)) as url:
        yield url
