"""A webhook sink: takes what Alertmanager sends and remembers it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Self

import msgspec

_MAX_BODY: Final = 1_000_000
_MAX_NOTICES: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One alert of one notification. `path` is the webhook it came to, `/page` being the one that calls a person."""

    path: str
    alert: str
    status: str
    labels: dict[str, str]
    summary: str

    @property
    def paged(self) -> bool:
        """Whether it went to a person."""
        return self.path == "/page"


class Sink:
    """The webhook's server on a free loopback port, as a context manager."""

    def __init__(self) -> None:
        self._notices: list[Notice] = []
        self._lock = threading.Lock()
        take = self._take

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = min(int(self.headers.get("content-length") or 0), _MAX_BODY)
                taken = take(self.path, self.rfile.read(length))
                self.send_response(200 if taken else 400)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: the demo's terminal is for the story."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="sink", daemon=True)

    def url(self, path: str) -> str:
        """The webhook's address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def notices(self) -> tuple[Notice, ...]:
        """Everything that arrived so far, oldest first."""
        with self._lock:
            return tuple(self._notices)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _take(self, path: str, body: bytes) -> bool:
        try:
            message = msgspec.json.decode(body, type=_Message)
        except msgspec.MsgspecError:
            return False
        with self._lock:
            self._notices += [
                Notice(
                    path=path,
                    alert=alert.labels.get("alertname", ""),
                    status=alert.status,
                    labels=alert.labels,
                    summary=alert.annotations.get("summary", ""),
                )
                for alert in message.alerts
            ]
            del self._notices[:-_MAX_NOTICES]
        return True


class _Alert(msgspec.Struct):
    status: str
    labels: dict[str, str]
    annotations: dict[str, str] = {}


class _Message(msgspec.Struct):
    """The part of Alertmanager's webhook message that is read here."""

    alerts: list[_Alert]
