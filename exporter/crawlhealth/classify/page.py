"""A page in parts: its title, its tags, its scripts, and what a reader sees. Linear in the page, whatever it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import re2

from crawlhealth.classify.marker import Room, Where
from crawlhealth.classify.text import readable
from crawlhealth.outcome import Reason

MAX_INERT: Final = 20_000
"""Comments, scripts and the like that are taken out one by one; what follows more of them is not read."""
_TITLE_BYTES: Final = 600
_TITLE_WITHIN: Final = 16_384
_SHORT_PAGE: Final = 8_192
_SHORT_TEXT: Final = 120

_OPENING: Final = re2.compile(rb"<(?:!--|(?:script|style|textarea|template|xmp|title)\b)")
_RUNNING: Final = re2.compile(
    rb"\btype\s*=\s*[\"']?[^\"'\s>]*(?:json|template|html|text/x-|text/plain|importmap|speculation)"
)
_HTML: Final = re2.compile(
    rb"^\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^>]*>\s*)*<(?:!doctype\s+html|html|head|body|title|meta)\b"
    rb"|^\s*<(?:script|link|div|p|h1|center)\b"
)
_JSON: Final = re2.compile(rb"^\s*(?:[\w$.]+\s*\(\s*)?\{")
_DATA_TYPE: Final = re2.compile(
    rb"json|xml|javascript|css|^(?:image|audio|video|font)/|pdf|zip|octet-stream|ocsp|protobuf"
)
_LOGIN_TITLE: Final = re2.compile(rb"(?:^|[|:\xb7]\s*|\s-\s)(?:log ?-?in|sign ?-?in|anmelden|connexion)\b")
_PASSWORD: Final = re2.compile(rb"<input\b[^<>&]*\btype\s*=\s*[\"']?password\b")
_CONSENT_TITLE: Final = re2.compile(
    rb"\b(?:consent|cookie (?:preferences|settings|notice)|before you continue|privacy settings)\b"
)
_CONTENT_TAG: Final = re2.compile(rb"<(?:div|main|section|article|a|img|link|form|table|ul|canvas|app-root)\b")


class Page:
    """One body, read once and taken apart only as far as a question needs."""

    def __init__(self, body: bytes, headers: Mapping[str, str]) -> None:
        self._type = headers.get("content-type", "").lower()
        self.text = readable(body, self._type)

    @cached_property
    def lower(self) -> bytes:
        """The text in lower case; made only where needed, for it costs as much as a quarter of the matching."""
        return self.text.lower()

    @cached_property
    def kind(self) -> str:
        """`html`, `data` (JSON, XML, anything that is no page) or `text` (plain text)."""
        main = self._type.partition(";")[0].strip().encode("ascii", "replace")
        looks_html = bool(_HTML.search(self.text[:1024].lower()))
        if looks_html and main != b"text/plain":
            return "html"
        if main not in {b"application/xhtml+xml"} and _DATA_TYPE.search(main):
            return "data"
        start = self.text[:64].lower().lstrip()
        if start.startswith((b"{", b"[", b"<?xml", b"<rss", b"<feed")):
            return "data"
        return "text" if main in {b"text/plain", b"text/markdown", b"text/csv"} or b"<" not in self.text else "html"

    @cached_property
    def title(self) -> bytes:
        """The title with white space collapsed, in its own case; empty when there is none."""
        head = self.text[:_TITLE_WITHIN].lower()
        opened = _title_start(head)
        if opened is None and len(self.text) > _TITLE_WITHIN:
            head = self.lower
            opened = _title_start(head)
        if opened is None:
            return b""
        end = head.find(b"<", opened, opened + _TITLE_BYTES)
        return b" ".join(self.text[opened : end if end >= 0 else opened + _TITLE_BYTES].split())

    @cached_property
    def subject(self) -> bytes:
        """The title, else the first heading of a short page, else the whole of a very short text."""
        if self.kind == "data" or self.title or len(self.text) > _SHORT_PAGE:
            return self.title if self.kind == "html" else b""
        parts = self.parts
        start = parts.markup.lower().find(b"<h1")
        if start >= 0:
            heading = _visible(parts.markup[start : parts.markup.lower().find(b"</h1", start)])
            if heading:
                return heading[:_TITLE_BYTES]
        return parts.visible if len(parts.visible) <= _SHORT_TEXT else b""

    @cached_property
    def parts(self) -> Parts:
        """The page taken apart; only pages with a marker on them are."""
        if self.kind == "html":
            return _take_apart(self.text, self.lower)
        words = b" ".join(self.text.split())
        return Parts(markup=b"", code=b"", visible=words)

    @cached_property
    def readers_share(self) -> int:
        """Characters a reader sees."""
        return len(self.parts.visible.decode("utf-8", "replace"))

    @cached_property
    def gate(self) -> Reason | None:
        """A login or consent page by its title and form; asked only where the expected content is missing."""
        if self.kind != "html":
            return None
        title = self.title.lower()
        if not self.fits(Room.LEAN):
            return None
        markup = self.parts.markup.lower()
        if _LOGIN_TITLE.search(title) and _PASSWORD.search(markup):
            return Reason.LOGIN_PAGE
        return Reason.CONSENT_PAGE if _CONSENT_TITLE.search(title) and b"<form" in markup else None

    def fits(self, room: Room, factor: int = 1) -> bool:
        """Whether no more than `room` is to be read on the page, so that it can be a gate and not content."""
        if room is Room.ANY:
            return True
        if room is Room.BARE:
            tags = self.parts.markup.lower()
            scripts = tags.count(b"<script")
            return self.readers_share <= room and scripts <= 2 and not _CONTENT_TAG.search(tags)
        return self.readers_share <= room * factor

    def part(self, where: Where) -> bytes:
        """The bytes that a marker of this place is searched in."""
        if where is Where.MARKUP:
            return self.parts.markup
        if where is Where.CODE:
            return self.parts.code
        if where is Where.TEXT:
            return self.parts.visible
        if where is Where.TITLE:
            return self.subject
        if where is Where.DATA:
            return self.text if self.kind == "data" and _JSON.search(self.text[:64]) else b""
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Tags and text outside of inert elements; script tags and running scripts; text that a reader sees."""

    markup: bytes
    code: bytes
    visible: bytes


def _title_start(lower: bytes) -> int | None:
    """Where the words of the first title begin that stands in no comment and names no drawing."""
    start = lower.find(b"<title")
    for _ in range(8):
        if start < 0:
            return None
        comment = lower.rfind(b"<!--", 0, start)
        closed = lower.find(b"-->", comment, start) if comment >= 0 else start
        drawn = lower.rfind(b"<svg", 0, start) > lower.rfind(b"</svg", 0, start)
        if closed >= 0 and not drawn:
            opened = lower.find(b">", start, start + _TITLE_BYTES)
            return opened + 1 if opened >= 0 else None
        start = lower.find(b"<title", start + 1)
    return None


def _take_apart(text: bytes, lower: bytes) -> Parts:
    markup: list[bytes] = []
    scripts: list[bytes] = []
    position = 0
    for _ in range(MAX_INERT):
        match = _OPENING.search(lower, position)
        if match is None:
            markup.append(text[position:])
            break
        start = match.start()
        markup.append(text[position:start])
        name = match.group()[1:]
        if name == b"!--":
            end = lower.find(b"-->", start + 2)
            position = len(lower) if end < 0 else end + 3
            markup.append(b" ")
            continue
        opened = _end_of_tag(lower, match.end())
        tag = text[start:opened]
        end = lower.find(b"</" + name, opened)
        end = len(lower) if end < 0 else end
        markup.append(tag)
        if name == b"script":
            scripts.append(tag)
            if not _RUNNING.search(tag.lower()):
                scripts.append(text[opened:end])
        position = end
    joined = b"".join(markup)
    return Parts(markup=joined, code=b"\n".join(scripts), visible=_visible(joined))


def _end_of_tag(lower: bytes, start: int) -> int:
    end = lower.find(b">", start)
    return len(lower) if end < 0 else end + 1


def _visible(markup: bytes) -> bytes:
    first, *rest = markup.split(b"<")
    words = [first, *(piece.partition(b">")[2] for piece in rest)]
    return b" ".join(b" ".join(words).split())
