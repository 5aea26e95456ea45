"""A small HTTP server that speaks the exporter's push and advice API, and can be away, slow or cross."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any, Self

FIELDS = frozenset(
    {
        "site", "route", "outcome", "reason", "at", "seconds", "bytes", "retries", "credits", "records_valid",
        "records_invalid", "fields_missing", "page_type", "count", "url", "status", "headers", "final_url", "body",
        "body_base64",
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """An answer given once, before any usual one. Without a status the connection is cut."""

    status: int | None = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    counts: bool = False


class PushServer:
    """Counts what is pushed, each key once. A context manager; `stop` and `start` in between keep port and counts."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.repeats = 0
        self.tokens: set[str] = set()
        self.scripted: deque[Scripted] = deque()
        self.advice: dict[str, tuple[str, bytes]] = {}
        self.asked: list[tuple[str, int]] = []
        self.refused_sites: set[str] = set()
        self.largest = 1 << 30
        self.gate = threading.Event()
        self.gate.set()
        self.lock = threading.Lock()
        self.port = 0
        self.connections: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self.stop()

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
            for connection in tuple(self.connections):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def advise(self, site: str, tag: str, **advice: object) -> None:
        """Answer this for a site from now on."""
        document = {"site": site, "band": advice.pop("band", "normal"), "score": advice.pop("score", None)}
        self.advice[site] = (tag, json.dumps({**document, "advice": advice}).encode())

    def take(self, body: bytes, key: str) -> tuple[int, bytes]:
        """Count a push; returns status and answer."""
        if len(body) > self.largest:
            return 413, b"{}"
        items = [json.loads(line) for line in gzip.decompress(body).splitlines()]
        rejected = []
        with self.lock:
            if key in self.keys:
                self.repeats += 1
                return 200, json.dumps({"accepted": len(items), "rejected": []}).encode()
            self.keys.add(key)
            for index, item in enumerate(items):
                if item.get("site") in self.refused_sites or not FIELDS.issuperset(item) or "at" not in item:
                    rejected.append({"index": index, "reason": "unknown site"})
                else:
                    self.items.append(item)
        return 200, json.dumps({"accepted": len(items) - len(rejected), "rejected": rejected}).encode()


def _handler(server: PushServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            server.connections.add(self.connection)

        def finish(self) -> None:
            server.connections.discard(self.connection)
            with contextlib.suppress(OSError):
                super().finish()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.tokens.add(self.headers.get("Authorization", ""))
            server.gate.wait(20)
            scripted = server.scripted.popleft() if server.scripted else None
            if scripted is not None and not scripted.counts:
                self.answer(scripted.status, scripted.headers, scripted.body)
                return
            assert self.path == "/api/v1/observations"
            assert self.headers["Content-Encoding"] == "gzip"
            status, answer = server.take(body, self.headers["Idempotency-Key"])
            self.answer(scripted.status if scripted else status, {}, answer)

        def do_GET(self) -> None:
            server.gate.wait(20)
            path = self.path.partition("?")[0]
            site = path.removeprefix("/api/v1/sites/")
            tag, document = server.advice.get(site, ("", b'{"error": "unknown site", "advice": {}}'))
            if tag and self.headers.get("If-None-Match") == tag:
                server.asked.append((self.path, 304))
                self.answer(304, {"ETag": tag}, b"")
            else:
                server.asked.append((self.path, 200 if tag else 404))
                self.answer(200 if tag else 404, {"ETag": tag} if tag else {}, document)

        def answer(self, status: int | None, headers: dict[str, str], body: bytes) -> None:
            if status is None:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextlib.contextmanager
def no_tls() -> Iterator[str]:
    """The https address of a server that speaks no TLS."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(4096)
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"https://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
