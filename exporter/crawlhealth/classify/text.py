"""Bytes of a body to UTF-8 bytes that patterns can read: character set and entities, bounded, and never failing."""

from __future__ import annotations

import codecs
from typing import Final

import re2

LIMIT: Final = 1_000_000
"""Bytes of a body that are read; a marker beyond them is not seen."""
MAX_ENTITIES: Final = 8_000
"""Ampersands that are looked at; a page with more keeps the rest of its entities as it wrote them."""

_META: Final = re2.compile(
    rb"(?i)<meta\b[^>]*\bcharset\s*=\s*[\"']?\s*([a-z0-9_:.+-]+)|^\s*<\?xml[^>]*\bencoding\s*=\s*[\"']([a-z0-9_:.+-]+)"
)
_META_BYTES: Final = 4_096
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_WIDER: Final = {  # what browsers read under these names
    "ascii": "utf-8",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "utf-16": "utf-16-le",
}
_KNOWN: Final = frozenset(
    {"utf-8", "utf-16-le", "utf-16-be", "gb18030", "big5hkscs", "cp932", "euc_jp", "iso2022_jp", "cp949", "koi8-r"}
    | {"koi8-u", "mac-roman", "cp866", "cp874"}
    | {f"cp{n}" for n in range(1250, 1259)}
    | {f"iso8859-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)}
)


def charset(body: bytes, content_type: str = "") -> str:
    """The Python codec of a page: byte order mark, then header, then `meta` or XML declaration, then UTF-8."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name
    wide = _wide(body)
    if wide:
        return wide
    _, _, parameters = content_type.partition(";")
    for parameter in parameters.split(";"):
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset":
            name = _codec(value.strip(" \t\"'"))
            if name and not name.startswith("utf-16"):
                return name
    match = _META.search(body[:_META_BYTES])
    if match:
        name = _codec((match.group(1) or match.group(2)).decode("ascii", "replace"))
        if name and not name.startswith("utf-16"):
            return name
    return "utf-8"


def _wide(body: bytes) -> str:
    """UTF-16 by its zero bytes: a label alone is not believed, for pages of plain ASCII carry it too."""
    head = body[:64]
    if len(head) < 4 or head.count(0) * 3 < len(head):
        return ""
    if head[1::2].count(0) * 3 >= len(head):
        return "utf-16-le"
    return "utf-16-be" if head[::2].count(0) * 3 >= len(head) else ""


def _codec(label: str) -> str:
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return ""
    name = _WIDER.get(name, name)
    return name if name in _KNOWN else ""


def readable(body: bytes, content_type: str = "") -> bytes:
    """The first megabyte of a body as UTF-8 with its entities decoded. Bytes that are no text stay as they are."""
    head = body[:LIMIT]
    codec = charset(head, content_type)
    if codec != "utf-8":
        head = head.decode(codec, "replace").encode("utf-8", "replace")
    elif head.startswith(codecs.BOM_UTF8):
        head = head[len(codecs.BOM_UTF8) :]
    return unescape(head)


_NAMED: Final = {
    b"nbsp": b" ",
    b"quot": b'"',
    b"apos": b"'",
    b"rsquo": b"'",
    b"lsquo": b"'",
    b"hellip": b"...",
    b"num": b"#",
    b"period": b".",
    b"colon": b":",
    b"sol": b"/",
    b"amp": b"&",
}
_LONGEST: Final = 8
_ANGLES: Final = frozenset({0x3C, 0x3E})


def unescape(page: bytes) -> bytes:
    """A page with its entities decoded, except angle brackets: text that shows a tag must not become one."""
    if b"&" not in page:
        return page
    first, *rest = page.split(b"&", MAX_ENTITIES)
    return first + b"".join(map(_entity, rest))


def _entity(piece: bytes) -> bytes:
    """A piece that followed an ampersand, the entity at its start decoded."""
    end = piece.find(b";", 0, _LONGEST)
    if end < 0:
        return b"&" + piece
    name = piece[:end]
    character = _character(name) if name[:1] == b"#" else _NAMED.get(name)
    return b"&" + piece if character is None else character + piece[end + 1 :]


def _character(name: bytes) -> bytes | None:
    """The character that `#60` or `#x3c` names; None for none, and for angle brackets."""
    digits, base = (name[2:], 16) if name[1:2] in {b"x", b"X"} else (name[1:], 10)
    if not digits.isalnum():
        return None
    try:
        number = int(digits, base)
    except ValueError:
        return None
    if not 0x09 <= number < 0xD800 or number in _ANGLES:
        return None
    return b" " if number == 0xA0 else chr(number).encode()
