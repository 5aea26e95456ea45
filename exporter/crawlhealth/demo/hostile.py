"""Bodies made to hurt whoever reads them. Pure, built when asked for, kept only where building costs time."""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Final

import brotli
import zstandard

BOMB_BYTES: Final = 256 * 1024 * 1024
"""What a bomb unpacks to."""
LARGE_BYTES: Final = 100_000_000
LARGE_PIECE: Final = b"<p>all work and no play</p>\n" * 4000
"""The body without end is this, again and again."""
BIG_HEADER: Final = "a" * 1_000_000

_PIECE: Final = bytes(1024 * 1024)


@lru_cache(maxsize=3)
def bomb(encoding: str) -> bytes:
    """`BOMB_BYTES` zero bytes, packed. Takes up to a second: not for an event loop."""
    pieces = range(BOMB_BYTES // len(_PIECE))
    if encoding == "gzip":
        gzip = zlib.compressobj(level=6, wbits=31)
        return b"".join(gzip.compress(_PIECE) for _ in pieces) + gzip.flush()
    if encoding == "br":
        packer = brotli.Compressor(quality=2)
        return b"".join([*(packer.process(_PIECE) for _ in pieces), packer.finish()])
    zstd = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join([*(zstd.compress(_PIECE) for _ in pieces), zstd.flush()])


def packed(body: bytes, encoding: str) -> bytes:
    """An ordinary body in a content coding."""
    if encoding == "gzip":
        gzip = zlib.compressobj(level=1, wbits=31)
        return gzip.compress(body) + gzip.flush()
    if encoding == "br":
        compressed: bytes = brotli.compress(body, quality=3)
        return compressed
    return zstandard.ZstdCompressor(level=1).compress(body)


def nested_tags() -> bytes:
    """A million tags, each within the one before; 3 MB."""
    return b"<html><body>" + b"<b>" * 1_000_000


def many_attributes() -> bytes:
    """One tag with 100,000 attributes; 1.1 MB."""
    return b"<html><body><p " + b" ".join(b"a%d=x" % n for n in range(100_000)) + b">text</p></body></html>"


def nested_divs() -> bytes:
    """20,000 paragraphs within 240 divs: a descendant selector visits every pair; 164 KB."""
    return b"<html><body>" + b"<div>" * 240 + b"<p>x</p>" * 20_000 + b"</div>" * 240 + b"</body></html>"


def catastrophic() -> bytes:
    """Text on which a backtracking engine never ends with patterns like `(a+)+$` or `(.*,){20}x`."""
    return b"<html><body><p>" + b"a" * 50_000 + b"!</p><p>" + b"1,2," * 20_000 + b"</p></body></html>"


def bad_encoding() -> bytes:
    """A page that says UTF-8 and UTF-16 and is neither."""
    return (
        b'<html><head><meta charset="utf-16"><title>\xff\xfe\xfa</title></head><body><p class="price">\xa3 12\xc3</p>'
        + bytes(range(128, 256)) * 40
        + b"</body></html>"
    )


def nul_bytes(page: bytes) -> bytes:
    """The page with NUL bytes in its middle and between its tags."""
    return page.replace(b"<main>", b"<main>\0\0\0").replace(b"</p>", b"\0</p>")
