"""The body of a push to the JSON texts in it: content coding taken off, one text an item, everything bounded."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Final

import msgspec
import zstandard

MAX_BODY_BYTES: Final = 16_000_000
MAX_DECODED_BYTES: Final = 64_000_000
MAX_ITEM_BYTES: Final = 8_000_000

_STEP: Final = 262_144
"""Bytes looked at in one go: small enough that other threads get their turn between two."""
_ZSTD_INPUT: Final = 256
"""Bytes given to zstd at once: a block of 4 bytes may stand for 128 KiB, and its output cannot be bounded otherwise."""
_ZSTD_WINDOW: Final = 8 << 20
"""What RFC 9659 allows over HTTP."""

Text = bytes | msgspec.Raw
"""One item as JSON."""


class Unreadable(ValueError):
    """A body in which nothing can be read; the message says why."""


class TooLarge(ValueError):
    """A body beyond a limit; the message says which."""


def _plain(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _STEP):
        yield data[start : start + _STEP]


def _gunzipped(data: bytes) -> Iterator[bytes]:
    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
    for start in range(0, len(data), _STEP):
        piece = data[start : start + _STEP]
        while piece:
            if stream.eof:  # one more member
                stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
            out = stream.decompress(piece, _STEP)
            while out:
                yield out
                out = b"" if stream.eof else stream.decompress(stream.unconsumed_tail, _STEP)
            piece = stream.unused_data
    if not stream.eof:
        raise Unreadable("the gzip body ends too early")


def _unzstd(data: bytes) -> Iterator[bytes]:
    context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    stream = context.decompressobj()
    for start in range(0, len(data), _ZSTD_INPUT):
        piece = data[start : start + _ZSTD_INPUT]
        while piece:
            if stream.eof:  # one more frame
                stream = context.decompressobj()
            yield stream.decompress(piece)
            piece = stream.unused_data if stream.eof else b""
    if not stream.eof:
        raise Unreadable("the zstd body ends too early")


CODINGS: Final = MappingProxyType[str, Callable[[bytes], Iterator[bytes]]](
    {"": _plain, "identity": _plain, "gzip": _gunzipped, "x-gzip": _gunzipped, "zstd": _unzstd}
)
"""Content codings of a push by their names in `Content-Encoding`."""


class Body:
    """One body, read once. `checksum` is that of what was decoded so far."""

    def __init__(self, data: bytes, coding: str) -> None:
        self._pieces = CODINGS[coding](data)
        self.checksum = 0

    def items(self) -> Iterator[Sequence[Text]]:
        """Its JSON texts in order, some at a time: the lines without blank ones, or the items of the array.

        Raises Unreadable and TooLarge, also after some were given out.
        """
        pieces = self.decoded()
        first = next(filter(None, (piece.lstrip() for piece in pieces)), b"")
        if first.startswith(b"["):
            yield from _array(b"".join((first, *pieces)))
        else:
            yield from _lines(chain((first,), pieces))

    def decoded(self) -> Iterator[bytes]:
        """Its bytes without the content coding, some at a time. Raises Unreadable and TooLarge."""
        size = 0
        try:
            for piece in self._pieces:
                size += len(piece)
                if size > MAX_DECODED_BYTES:
                    raise TooLarge(f"more than {MAX_DECODED_BYTES} bytes, decoded: send smaller batches")
                self.checksum = zlib.crc32(piece, self.checksum)
                yield piece
        except (zlib.error, zstandard.ZstdError):
            raise Unreadable("the body is not in the coding that Content-Encoding names") from None


def _lines(pieces: Iterator[bytes]) -> Iterator[Sequence[Text]]:
    rest = b""
    for piece in pieces:
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        if len(rest) > MAX_ITEM_BYTES:
            raise TooLarge(f"an item of more than {MAX_ITEM_BYTES} bytes")
        yield [line for line in lines if line and not line.isspace()]
    if rest and not rest.isspace():
        yield [rest]


def _array(text: bytes) -> Iterator[Sequence[Text]]:
    try:
        yield msgspec.json.decode(text, type=list[msgspec.Raw])
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not a JSON array: {str(error)[:200]}") from None
