"""Logs as chunks of whole lines, plain or compressed, with bounded memory whatever they hold."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import IO, Final, cast

CHUNK_BYTES: Final = 1 << 20
"""Fits the processor's cache, in which the scan is fastest."""
MAX_LINE_BYTES: Final = 1 << 18
"""A longer line is cut, so that it cannot be read."""


def whole_lines(stream: IO[bytes], size: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of a stream in chunks that end with a line; what is left at the end gets its line end.

    Raises OSError (EOFError, zlib.error) where reading fails.
    """
    carried = b""
    while data := stream.read(size):
        cut = data.rfind(b"\n") + 1
        if not cut:
            carried = (carried + data)[: MAX_LINE_BYTES + 1]
            continue
        yield carried + data[:cut]
        carried = data[cut:][: MAX_LINE_BYTES + 1]
    if carried:
        yield carried + b"\n"


def unpacked(stream: IO[bytes]) -> IO[bytes]:
    """A stream without its gzip, if it begins as one does; the stream must be able to seek or to peek."""
    peek = getattr(stream, "peek", None)
    if peek is None:
        return stream
    if peek(2)[:2] != b"\x1f\x8b":
        return stream
    return cast("IO[bytes]", gzip.GzipFile(fileobj=stream, mode="rb"))


UNPACKING_FAILED: Final = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading raises of a gzip that is cut or damaged."""
