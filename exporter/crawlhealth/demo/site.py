"""The practice site: a small shop on loopback that is normal, slow, hostile or broken as it is told.

Over HTTP: `PUT /-/behaviour` with one behaviour or a list of them as JSON (see behaviour.Behaviour), `GET` and
`DELETE` of the same, `GET /-/requests` for the log. A path may also name its own behaviour: `/~status:503/product/1`.
"""

from __future__ import annotations

import asyncio
import signal
import ssl
import threading
import time
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import FrameType, TracebackType
from typing import Self

import msgspec

from crawlhealth.demo import behaviour as behaviours
from crawlhealth.demo.answers import Answer, Asked, answer
from crawlhealth.demo.behaviour import Behaviour, Kind, Stack
from crawlhealth.demo.connection import Connection

_BACKLOG = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """One request as the site saw it. `at` is unix seconds, `monotonic` the clock that does not jump."""

    at: float
    monotonic: float
    method: str
    host: str
    path: str
    query: str
    proxied: bool
    headers: Mapping[str, str]
    behaviours: tuple[Kind, ...]
    body: bytes = b""


class PracticeSite:
    """The shop as a context manager: serves from a thread of its own between entering and leaving.

    `port` 0 takes a free one. All `addresses` (loopback, for example 127.0.3.7) share the port, so that one site
    stands in for many hosts. With a `tls` context it speaks HTTPS. Raises OSError if it cannot listen.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        addresses: Sequence[str] = ("127.0.0.1",),
        tls: ssl.SSLContext | None = None,
        log_limit: int = 200_000,
    ) -> None:
        self.port = port
        self._addresses = tuple(addresses)
        self._tls = tls
        self._stack = Stack()
        self._log: deque[Logged] = deque(maxlen=log_limit)
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="practice-site", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def url(self, path: str = "/", *, host: str = "") -> str:
        """The address of a page; `host` for another name or address than the first one."""
        return f"{'https' if self._tls else 'http'}://{host or self._addresses[0]}:{self.port}{path}"

    def behave(self, *wanted: Behaviour) -> None:
        """Behave like this from now on, whatever was before; without arguments normally."""
        self._stack.replace(wanted)

    def requests(self, path: str = "/") -> list[Logged]:
        """The requests so far whose path starts with `path`, oldest first."""
        return [logged for logged in self._log.copy() if logged.path.startswith(path)]

    def forget(self) -> None:
        """Empty the log."""
        self._log.clear()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        servers: list[asyncio.Server] = []
        opened: set[asyncio.Transport] = set()
        try:
            for address in self._addresses:
                server = await self._loop.create_server(
                    lambda: Connection(self._handle, self.url(""), opened),
                    address,
                    self.port,
                    ssl=self._tls,
                    backlog=_BACKLOG,
                )
                servers.append(server)
                self.port = server.sockets[0].getsockname()[1]
            self._ready.set()
            await self._stop.wait()
        finally:
            for server in servers:
                server.close()
            for transport in opened.copy():
                transport.abort()
            await asyncio.sleep(0)

    def _handle(self, asked: Asked, body: bytes) -> Answer | Awaitable[Answer]:
        if asked.path.startswith("/-/"):
            return self._control(asked, body)
        own: tuple[Behaviour, ...] = ()
        if asked.path.startswith("/~"):
            first, _, rest = asked.path[1:].partition("/")
            try:
                chosen = behaviours.of_prefix(first)
            except ValueError as error:
                return _text(400, str(error))
            own = (chosen,) if chosen else ()
            asked = replace(asked, path="/" + rest)
        picked = (*own, *self._stack.pick(asked.path, asked.host, asked.proxied))
        self._note(asked, body, picked)
        if any(one.kind is Kind.BOMB for one in picked):
            return asyncio.to_thread(answer, asked, picked)
        return answer(asked, picked)

    def _note(self, asked: Asked, body: bytes, picked: tuple[Behaviour, ...]) -> None:
        self._log.append(
            Logged(
                at=time.time(),
                monotonic=time.monotonic(),
                method=asked.method,
                host=asked.host,
                path=asked.path,
                query=asked.query,
                proxied=asked.proxied,
                headers=asked.headers,
                behaviours=tuple(one.kind for one in picked),
                body=body,
            )
        )

    def _control(self, asked: Asked, body: bytes) -> Answer:
        match asked.method, asked.path:
            case "PUT", "/-/behaviour":
                try:
                    self.behave(*behaviours.parse(msgspec.json.decode(body)))
                except ValueError as error:  # msgspec's errors are ValueErrors too
                    return _text(400, str(error))
            case "DELETE", "/-/behaviour":
                self.behave()
            case "DELETE", "/-/requests":
                self.forget()
            case "GET", "/-/requests":
                return _json([_brief(logged) for logged in self._log.copy()])
            case "GET", "/-/behaviour" | "/-/healthy":
                pass
            case _:
                return _text(404, "try /-/behaviour or /-/requests")
        return _json(self._stack.current())


def main(port: int, *, addresses: Sequence[str] = ("127.0.0.1",)) -> None:
    """Serve the practice site on a port until SIGINT or SIGTERM, saying where and how to change it.

    Raises SystemExit with a message when it cannot listen there.
    """
    ended = threading.Event()

    def end(signum: int, frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    with ExitStack() as stack:
        try:
            site = stack.enter_context(PracticeSite(port=port, addresses=addresses))
        except OSError as error:
            raise SystemExit(f"cannot listen on port {port}: {error.strerror or error}") from error
        print(f"practice site at {site.url('/')} (Ctrl-C ends it)", flush=True)
        print(f"""change it:  curl -X PUT {site.url("/-/behaviour")} -d '{{"kind": "challenge", "share": 0.3}}'""")
        print(f"kinds:      {', '.join(Kind)}", flush=True)
        ended.wait()


def _text(status: int, text: str) -> Answer:
    return Answer(status=status, content_type="text/plain; charset=utf-8", body=(text + "\n").encode())


def _json(value: object) -> Answer:
    return Answer(content_type="application/json", body=msgspec.json.encode(value) + b"\n")


def _brief(logged: Logged) -> dict[str, object]:
    return {
        "at": logged.at,
        "monotonic": logged.monotonic,
        "method": logged.method,
        "host": logged.host,
        "path": logged.path,
        "query": logged.query,
        "behaviours": logged.behaviours,
    }
