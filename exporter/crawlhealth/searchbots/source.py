"""Logs as chunks of whole lines, plain or compressed, with bounded memory whatever they hold."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import IO, Final, Protocol

CHUNK_BYTES: Final = 1 << 20
"""Fits the processor's cache, in which the scan is fastest."""
MAX_LINE_BYTES: Final = 1 << 18
"""A longer line is cut, so that it cannot be read."""

PACKED_BYTES: Final = 1 << 16
"""Of a compressed file at once."""
BOM: Final = b"\xef\xbb\xbf"
"""Some editors begin a file with it; no part of its first line."""
GZIP: Final = 16 + zlib.MAX_WBITS


class Readable(Protocol):
    """What logs are read from."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most so many; nothing at the end."""


def whole_lines(stream: Readable, size: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of a stream in chunks that end with a line; what is left at the end gets its line end.

    Raises OSError (EOFError, zlib.error) where reading fails.
    """
    carried = b""
    first = True
    while data := stream.read(size):
        data, first = data.removeprefix(BOM) if first else data, False
        cut = data.rfind(b"\n") + 1
        if not cut:
            carried = (carried + data)[: MAX_LINE_BYTES + 1]
            continue
        yield carried + data[:cut]
        carried = data[cut:][: MAX_LINE_BYTES + 1]
    if carried:
        yield carried + b"\n"


class Unpacked:
    """The contents of a gzip, of any number of members. All that comes before damage is read, then that is raised."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed = packed
        self._member = zlib.decompressobj(GZIP)
        self._fed = b""
        self._begun = False
        self._rest = b""
        """What came before the damage, and is not read yet."""
        self._failure: Exception | None = None

    def read(self, size: int) -> bytes:
        """The next bytes, at most so many; nothing at the end. Raises OSError and UNPACKING_FAILED."""
        parts: list[bytes] = []
        while size > 0 and (self._rest or self._failure is None):
            part = self._some(size)
            if part is None:
                break
            parts.append(part)
            size -= len(part)
        if self._failure is not None and not any(parts):
            raise self._failure
        return b"".join(parts)

    def skip(self, size: int) -> None:
        """Pass over so many bytes. Raises as `read`."""
        while size > 0 and (data := self.read(min(size, CHUNK_BYTES))):
            size -= len(data)

    def _some(self, size: int) -> bytes | None:
        """Some bytes, maybe none yet; None at the end."""
        if self._failure is not None:
            part, self._rest = self._rest[:size], self._rest[size:]
            return part
        if self._member.eof:
            self._fed = self._member.unused_data + self._fed
            self._member, self._begun = zlib.decompressobj(GZIP), False
        if not self._begun:
            self._fed = self._fed.lstrip(b"\0")  # padding between members
        if not self._fed:
            if self._begun and (pending := self._member.decompress(b"", size)):
                return pending
            self._fed = self._packed.read(PACKED_BYTES)
            if not self._fed:
                if self._begun:
                    self._failure = EOFError("it is cut: its end is missing")
                return None
            return b""
        self._begun = True
        before, fed = self._member.copy(), self._fed
        try:
            part = self._member.decompress(fed, size)
        except zlib.error as error:
            self._failure = error
            self._rest = _up_to_damage(before, fed)
            return b""
        self._fed = self._member.unconsumed_tail
        return part


def _up_to_damage(member: zlib._Decompress, packed: bytes) -> bytes:
    """What a member gives before the damage in some bytes."""
    parts: list[bytes] = []
    try:
        parts.extend(member.decompress(packed[at : at + 1]) for at in range(len(packed)))
    except zlib.error:
        return b"".join(parts)
    return b"".join(parts)


def unpacked(stream: IO[bytes]) -> Readable:
    """A stream without its gzip, if it begins as one does; the stream must be able to peek."""
    peek = getattr(stream, "peek", None)
    if peek is None:
        return stream
    if peek(2)[:2] != b"\x1f\x8b":
        return stream
    return Unpacked(stream)


UNPACKING_FAILED: Final = (EOFError, zlib.error)
"""What reading raises of a gzip that is cut or damaged."""
