"""A server that does with each connection whatever a test says, byte by byte."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

Script = Callable[[socket.socket, "RawServer"], None]


class RawServer:
    """Runs `script(connection, server)` for each connection, in a thread of its own; a context manager."""

    def __init__(self, script: Script, *, tls: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self.received: list[bytes] = []
        self.over = threading.Event()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def url(self, path: str = "/", *, user: str = "") -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{user + '@' if user else ''}127.0.0.1:{self.port}{path}"

    def head(self, connection: socket.socket) -> bytes:
        """Read one request's head and note it."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(4096)
            if not more:
                break
            data += more
        self.received.append(data)
        return data

    def __enter__(self) -> Self:
        thread = threading.Thread(target=self._accept, daemon=True)
        thread.start()
        self._threads.append(thread)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with suppress(OSError):
                connection.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                thread.start()
                self._threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
                self._open.append(connection)
            try:
                self._script(connection, self)
            finally:
                connection.close()


def answering(*pieces: bytes) -> Script:
    """A script that reads a request's head, sends these pieces and closes."""

    def script(connection: socket.socket, server: RawServer) -> None:
        server.head(connection)
        for piece in pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass

    return script


def flooding(head: bytes, again: bytes) -> Script:
    """A script that sends `again` until the other side has had enough."""

    def script(connection: socket.socket, server: RawServer) -> None:
        server.head(connection)
        connection.sendall(head)
        while not server.over.is_set():
            connection.sendall(again)

    return script


def dripping(head: bytes, again: bytes, every: float = 0.05) -> Script:
    """A script that sends `again` slowly and for ever."""

    def script(connection: socket.socket, server: RawServer) -> None:
        server.head(connection)
        connection.sendall(head)
        while not server.over.wait(every):
            connection.sendall(again)

    return script


def silent(connection: socket.socket, server: RawServer) -> None:
    """Say nothing, and keep the connection."""
    server.over.wait()


def resetting(connection: socket.socket, server: RawServer) -> None:
    """Reset the connection after the request."""
    server.head(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
