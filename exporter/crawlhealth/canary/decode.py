"""Content codings taken off a body as it arrives, bounded in output, input and time to the next look at the clock."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import brotli
import zstandard

from crawlhealth.canary.failure import Failure
from crawlhealth.outcome import Reason

STEP: Final = 65_536
"""The most that one step of zlib and brotli puts out."""
_ZSTD_INPUT: Final = 128
"""Bytes given to zstd at once: a block of 4 bytes may stand for 128 KiB and its output cannot be bounded otherwise."""
_ZSTD_WINDOW: Final = 8 << 20
"""What RFC 9659 allows over HTTP."""
_FRAME_BYTES: Final = 2
"""What a zlib frame begins with: only they tell it from deflate without one, and they may come one by one."""
_MOST_CODINGS: Final = 2
_MOST_MEMBERS: Final = 1_000
_DAMAGED: Final = (zlib.error, brotli.error, zstandard.ZstdError)


class Coding(Protocol):
    """One coding of one body."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What these bytes decode to, in bounded pieces."""

    def complete(self) -> bool:
        """Whether the coded stream has come to its end."""


class _Zlib:
    """gzip with any number of members, or deflate with and without its zlib frame."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._stream = zlib.decompressobj(wbits)
        self._members = 0
        self._started = False
        self._head = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        full = False
        while data or full:
            if self._stream.eof and not self._next_member(data):
                return
            out = self._step(data)
            yield out
            full = len(out) == STEP and not self._stream.eof  # more may wait inside, without any input left
            data = self._stream.unconsumed_tail or self._stream.unused_data

    def complete(self) -> bool:
        return self._stream.eof or not self._started

    def _step(self, data: bytes) -> bytes:
        self._started = True
        try:
            out = self._stream.decompress(data, STEP)
        except zlib.error:
            if self._wbits != zlib.MAX_WBITS or len(self._head) >= _FRAME_BYTES:
                raise
            self._wbits = -zlib.MAX_WBITS
            self._stream = zlib.decompressobj(self._wbits)
            return self._stream.decompress(self._head + data, STEP)
        self._head = (self._head + data[:_FRAME_BYTES])[:_FRAME_BYTES]
        return out

    def _next_member(self, data: bytes) -> bool:
        """Begin the next gzip member; anything else after the end is ignored, as browsers do."""
        if self._wbits <= zlib.MAX_WBITS or not data.startswith(b"\x1f"):
            return False
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise Failure(Reason.UNDECODABLE_BODY, f"more than {_MOST_MEMBERS} gzip members")
        self._stream = zlib.decompressobj(self._wbits)
        return True


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self._started = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._started = True
        if self._stream.is_finished():
            return
        out = self._stream.process(data, output_buffer_limit=STEP)
        yield out
        while not self._stream.is_finished() and (len(out) >= STEP or not self._stream.can_accept_more_data()):
            out = self._stream.process(b"", output_buffer_limit=STEP)
            yield out

    def complete(self) -> bool:
        return not self._started or self._stream.is_finished()


class _Zstd:
    def __init__(self) -> None:
        self._context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._stream = self._context.decompressobj()
        self._started = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._started = True
        for start in range(0, len(data), _ZSTD_INPUT):
            if self._stream.eof:
                return
            yield self._stream.decompress(data[start : start + _ZSTD_INPUT])

    def complete(self) -> bool:
        return not self._started or self._stream.eof


_CODINGS: Final[dict[str, Callable[[], Coding]]] = {
    "gzip": lambda: _Zlib(16 + zlib.MAX_WBITS),
    "x-gzip": lambda: _Zlib(16 + zlib.MAX_WBITS),
    "deflate": lambda: _Zlib(zlib.MAX_WBITS),
    "br": _Brotli,
    "zstd": _Zstd,
}
ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd"


class Body:
    """A body as it comes in; `data` is what is decoded so far, at most `most` bytes.

    `header` is the Content-Encoding; a coding that nobody knows is taken as none, like browsers do. `tick` is called
    between steps and may raise to end the work, `grow` with the size so far whenever there is more.
    """

    def __init__(
        self, header: str, most: int, tick: Callable[[], object], grow: Callable[[int], object] = lambda _size: None
    ) -> None:
        names = [name for name in map(str.strip, header.lower().split(",", _MOST_CODINGS * 4)) if name in _CODINGS]
        if len(names) > _MOST_CODINGS:
            raise Failure(Reason.UNDECODABLE_BODY, f"more than {_MOST_CODINGS} content codings")
        self._codings = [_CODINGS[name]() for name in reversed(names)]
        self._passed = [0] * (len(names) + 1)
        self._most = most
        self._tick = tick
        self._grow = grow
        self._data = bytearray()

    @property
    def data(self) -> bytes:
        """What is decoded so far."""
        return bytes(self._data)

    def feed(self, data: bytes) -> None:
        """Take in more of the body. Raises Failure: too large, or not what the header says."""
        try:
            self._through(data, 0)
        except _DAMAGED:
            raise Failure(Reason.UNDECODABLE_BODY, "the body is not in the coding that its header names") from None

    def finish(self) -> None:
        """Check that nothing is missing at the end of a coded body. Raises Failure."""
        if not all(coding.complete() for coding in self._codings):
            raise Failure(Reason.TRUNCATED_BODY, "the coded body ends too early")

    def _through(self, data: bytes, stage: int) -> None:
        self._passed[stage] += len(data)
        if stage == len(self._codings):
            self._grow(len(self._data) + len(data))
            self._data += data[: max(0, self._most - len(self._data))]
        decoded = stage > 0 or not self._codings
        if decoded and self._passed[stage] > self._most:
            raise Failure(Reason.BODY_TOO_LARGE, f"more than {self._most} bytes, decoded")
        if stage < len(self._codings):
            for piece in self._codings[stage].feed(data):
                self._tick()
                if piece:
                    self._through(piece, stage + 1)
