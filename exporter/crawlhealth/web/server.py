"""Listening: one socket, one event loop, and the signals that end or reload it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from crawlhealth.web.guard import Guard

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 75
MAX_CONNECTIONS = 10_000
"""Beyond it, requests get a 503 at once."""
REQUEST_SECONDS = 30.0
"""How long a new connection may take to send its first request."""
MAX_FILES: Final = 65_536
"""Connections and canaries together may need more files than the usual soft limit of 1,024."""
COMPLAINT_SECONDS: Final = 60.0
"""How often a lack of files is told: it would be a thousand times a second."""


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


def url_of(listener: socket.socket, *, tls: bool = False) -> str:
    """The URL of a listening socket."""
    scheme = "https" if tls else "http"
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def run(
    application: ASGIApp,
    listener: socket.socket,
    *,
    on_hangup: Callable[[], None],
    patience: float = REQUEST_SECONDS,
    guard: Guard | None = None,
    on_stop: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGINT or SIGTERM; SIGHUP calls `on_hangup` in a thread of its own.

    A connection without a request is closed after `patience` seconds. `guard` has the TLS of the web configuration.
    `on_stop` is called when the end begins, so that no request is waited for in vain.
    """
    _allow_files()
    settings = uvicorn.Config(
        application,
        http=_impatient(patience, guard),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=3,
        limit_concurrency=MAX_CONNECTIONS,
    )
    settings.load()
    settings.ssl = guard.context if guard is not None else None
    server = _Server(settings, on_stop)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_Complaints())
        loop.add_signal_handler(signal.SIGHUP, lambda: threading.Thread(target=on_hangup, name="reload").start())
        await server.serve(sockets=[listener])

    with _quiet_signals():
        asyncio.run(serve())


class _Server(uvicorn.Server):
    """A server that says when it begins to end."""

    def __init__(self, settings: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(settings)
        self._on_stop = on_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)


def _allow_files() -> None:
    """Raise the soft limit of open files as far as the hard one lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _impatient(patience: float, guard: Guard | None) -> type[H11Protocol]:
    """HTTP as uvicorn has it, which by itself waits for ever for the first request of a connection."""

    class Impatient(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
            super().connection_made(transport)
            client = transport.get_extra_info("ssl_object")
            if client is not None and guard is not None and not guard.admits(client):
                transport.abort()
                return
            self.loop.call_later(patience, self._give_up)

        def _give_up(self) -> None:
            if self.cycle is None:
                self.transport.close()

    return Impatient


class _Complaints:
    """Logs errors of the event loop; the lack of files, which comes again and again, only now and then."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif loop.time() >= self._next:
            self._next = loop.time() + COMPLAINT_SECONDS
            log.error("connections wait, there are too many open files: %s", error)


@contextlib.contextmanager
def _quiet_signals() -> Iterator[None]:
    """Keep SIGINT and SIGTERM, which uvicorn raises again after its own shutdown, from ending us before ours."""
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
