"""Listening: one socket, one event loop, and the signals that end or reload it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 75
MAX_CONNECTIONS = 2_000
"""Beyond it, requests get a 503 at once."""


def bind(listen: str) -> socket.socket:
    """A listening socket for `host:port` or `[v6]:port`; port 0 takes a free one. Raises OSError."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]") or "0.0.0.0"  # noqa: S104 - ":9877" says every address, as in Prometheus' own exporters
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket) -> str:
    """The http URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(application: ASGIApp, listener: socket.socket, *, on_hangup: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; SIGHUP calls `on_hangup` in a thread of its own."""
    settings = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=3,
        limit_concurrency=MAX_CONNECTIONS,
    )
    server = uvicorn.Server(settings)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, lambda: threading.Thread(target=on_hangup, name="reload").start())
        await server.serve(sockets=[listener])

    with _quiet_signals():
        asyncio.run(serve())


@contextlib.contextmanager
def _quiet_signals() -> Iterator[None]:
    """Keep SIGINT and SIGTERM, which uvicorn raises again after its own shutdown, from ending us before ours."""
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
