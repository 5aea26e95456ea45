"""Undoing what servers do to bytes that would break a line."""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_CONTROL: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"b": b"\b", b"f": b"\f"}


def unescaped(text: bytes) -> bytes:
    r"""A text without nginx's and Apache's escapes: `\xNN`, `\"`, `\\` and the like."""
    return _ESCAPE.sub(_meant, text) if b"\\" in text else text


def _meant(match: re.Match[bytes]) -> bytes:
    code, letter = match.groups()
    return bytes((int(code, 16),)) if code else _CONTROL.get(letter, letter)
