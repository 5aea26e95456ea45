"""One connection to the practice site: parses requests, sends answers, well or badly as they say."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, cast
from urllib.parse import urlsplit

from crawlhealth.demo.answers import Answer, Asked, Delivery

_MAX_HEAD: Final = 131_072
_MAX_BODY: Final = 1_000_000
_REASONS: Final[Mapping[int, str]] = {200: "OK", 302: "Found", 403: "Forbidden", 404: "Not Found", 503: "Unavailable"}
_LINGER_RESET: Final = struct.pack("ii", 1, 0)

Handler = Callable[[Asked, bytes], "Answer | Awaitable[Answer]"]


def head_of(answer: Answer, *, keep: bool) -> bytes:
    """The status line and headers of an answer."""
    length: int | None = len(answer.body)
    if answer.delivery is Delivery.REPEATED:
        length = answer.length
    lines = [f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Status')}"]
    lines.append(f"content-type: {answer.content_type}")
    lines += [f"{name}: {value}" for name, value in answer.headers]
    if length is not None:
        lines.append(f"content-length: {length}")
    if not keep:
        lines.append("connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def parse_head(head: bytes, origin: str) -> Asked | None:
    """The request a head asks, None if it is not HTTP. An absolute target (asked of a proxy) is served too."""
    first, *rest = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return None
    headers: dict[str, str] = {}
    for line in rest:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    target, host = words[1], headers.get("host", "")
    proxied = not target.startswith("/")
    if proxied:
        url = urlsplit(target)
        target, host = f"{url.path or '/'}?{url.query}", url.netloc
    path, _, query = target.partition("?")
    return Asked(
        method=words[0],
        path=path,
        query=query,
        host=host.rpartition(":")[0] or host,
        origin=origin,
        proxied=proxied,
        headers=headers,
    )


class Connection(asyncio.Protocol):
    """Answers one request after the other on one socket. `handler` may answer at once or later.

    Its transport is in `opened` as long as it is open.
    """

    def __init__(self, handler: Handler, origin: str, opened: set[asyncio.Transport]) -> None:
        self._handler = handler
        self._origin = origin
        self._opened = opened
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the other end."""
        self._transport = cast(asyncio.Transport, transport)
        self._opened.add(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop whatever is still being sent."""
        if self._transport is not None:
            self._opened.discard(self._transport)
        self._transport = None
        self._writable.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        """The other end is slower than we are."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The other end caught up."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Take bytes in, and answer when a request is whole."""
        self._buffer += data
        self._advance()

    def _advance(self) -> None:
        while self._task is None and self._transport is not None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _MAX_HEAD:
                    self._transport.close()
                return
            asked = parse_head(bytes(self._buffer[:end]), self._origin)
            length = _length(asked)
            if asked is None or length is None:
                self._transport.close()
                return
            if len(self._buffer) < end + 4 + length:
                return
            body = bytes(self._buffer[end + 4 : end + 4 + length])
            del self._buffer[: end + 4 + length]
            self._answer(asked, body)

    def _answer(self, asked: Asked, body: bytes) -> None:
        found = self._handler(asked, body)
        if isinstance(found, Answer) and found.delivery is Delivery.WHOLE and not found.delay:
            self._send_whole(asked, found)
            return
        self._task = asyncio.get_running_loop().create_task(self._send_later(asked, found))

    async def _send_later(self, asked: Asked, found: Answer | Awaitable[Answer]) -> None:
        answer = found if isinstance(found, Answer) else await found
        if answer.delay:
            await asyncio.sleep(answer.delay)
        await self._send(asked, answer)
        self._task = None
        self._advance()

    async def _send(self, asked: Asked, answer: Answer) -> None:
        transport = self._transport
        if transport is None:
            return
        if answer.delivery is Delivery.WHOLE or asked.method == "HEAD":
            self._send_whole(asked, answer)
        elif answer.delivery is Delivery.RESET:
            reset(transport)
        elif answer.delivery is Delivery.HANG:
            await asyncio.Event().wait()
        elif answer.delivery in (Delivery.DRIP, Delivery.DRIP_HEAD):
            await self._drip(answer)
        elif answer.delivery is Delivery.REPEATED:
            await self._repeat(answer)
        else:
            if answer.delivery is Delivery.TRUNCATED:
                transport.write(head_of(answer, keep=False) + answer.body[: len(answer.body) // 2])
            transport.close()

    def _send_whole(self, asked: Asked, answer: Answer) -> None:
        assert self._transport is not None
        keep = asked.headers.get("connection", "").lower() != "close"
        head = head_of(answer, keep=keep)
        self._transport.write(head if asked.method == "HEAD" else head + answer.body)
        if not keep:
            self._transport.close()

    async def _drip(self, answer: Answer) -> None:
        head = head_of(answer, keep=False)
        rest = answer.body
        if answer.delivery is Delivery.DRIP_HEAD:
            head, rest = b"", head + rest
        if self._transport is not None:
            self._transport.write(head)
        for byte in rest:
            if self._transport is None:
                return
            self._transport.write(bytes((byte,)))
            await asyncio.sleep(answer.pace)
        if self._transport is not None:
            self._transport.close()

    async def _repeat(self, answer: Answer) -> None:
        sent = 0
        if self._transport is not None:
            self._transport.write(head_of(answer, keep=False))
        while self._transport is not None and (answer.length is None or sent < answer.length):
            piece = answer.body if answer.length is None else answer.body[: answer.length - sent]
            self._transport.write(piece)
            sent += len(piece)
            await self._writable.wait()
            await asyncio.sleep(0)
        if self._transport is not None:
            self._transport.close()


def reset(transport: asyncio.Transport) -> None:
    """End a connection with a reset instead of a goodbye."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
    transport.abort()


def _length(asked: Asked | None) -> int | None:
    if asked is None:
        return None
    written = asked.headers.get("content-length", "0")
    if not (written.isascii() and written.isdigit()) or len(written) > 7 or int(written) > _MAX_BODY:
        return None
    return int(written)
