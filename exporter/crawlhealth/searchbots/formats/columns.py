"""Logs whose columns are named in the file itself: W3C (IIS) and CloudFront. `#Fields:` may change in mid-file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

from crawlhealth.searchbots.formats.clock import Clock
from crawlhealth.searchbots.formats.entry import Entry, Format, count_unreadable

_FIELDS: Final = b"#Fields:"
_CLOUDFRONT: Final = (
    b"#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer)"
    b" cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header"
)
_PERCENT: Final = re.compile(rb"%25(?=[0-9A-Fa-f]{2})")
MAX_STATE: Final = 4096


class Columns:
    """A reader of such lines; what comes before any `#Fields:` cannot be read unless `first` says what it is."""

    def __init__(self, name: str, *, separator: bytes, decode: Callable[[bytes], bytes], first: bytes = b"") -> None:
        self.name = name
        self._separator = separator
        self._decode = decode
        self._clock = Clock()
        self._line = b""
        self._places: Mapping[bytes, int] = {}
        self._count = 0
        if first:
            self.resume(first)

    @property
    def state(self) -> bytes:
        """The `#Fields:` line in force."""
        return self._line

    def resume(self, state: bytes) -> None:
        """Go on under a `#Fields:` line."""
        if not state.startswith(_FIELDS) or len(state) > MAX_STATE:
            return
        names = state[len(_FIELDS) :].split()
        self._line, self._count = state, len(names)
        self._places = {name.lower(): place for place, name in enumerate(names)}

    def read(self, line: bytes) -> Entry | None:
        """What a line says; None where it cannot be read, and for directives, which are heeded."""
        line = line.rstrip(b"\r")
        if line.startswith(b"#"):
            self.resume(line)
            return None
        values = line.split(self._separator)
        if len(values) != self._count and not (self._separator == b"\t" and len(values) > self._count):
            return None
        try:
            return self._entry(values)
        except (KeyError, ValueError):
            return None

    def unreadable(self, chunk: bytes, lines: int) -> int:
        """How many lines of a chunk cannot be read; what `#Fields:` is in force stays."""
        if b"#" not in chunk and chunk.count(self._separator) == lines * (self._count - 1):
            return 0
        before = self._line
        found = count_unreadable(self, chunk)
        self.resume(before)
        return found

    def _entry(self, values: list[bytes]) -> Entry:
        places = self._places
        at, day = self._clock.iso(values[places[b"date"]] + b"T" + values[places[b"time"]] + b"+00:00")
        query = self._value(values, b"cs-uri-query")
        path = values[places[b"cs-uri-stem"]] + (b"?" + query if query else b"")
        status = values[places[b"sc-status"]]
        return Entry(
            address=values[places[b"c-ip"]],
            at=at,
            day=day,
            status=int(status) if status.isdigit() else 0,
            agent=self._decode(self._value(values, b"cs(user-agent)")),
            request=self._value(values, b"cs-method") + b" " + path,
            host=self._value(values, b"x-host-header") or self._value(values, b"cs-host", b"cs(host)"),
            forwarded=self._decode(self._value(values, b"x-forwarded-for", b"cs(x-forwarded-for)")),
        )

    def _value(self, values: list[bytes], *names: bytes) -> bytes:
        for name in names:
            place = self._places.get(name)
            if place is not None and values[place] != b"-":
                return values[place]
        return b""


def _blanks(text: bytes) -> bytes:
    """A field of IIS as it was sent: a `+` that stands for itself comes after a blank, as in `(x; +http://…)`."""
    return text.replace(b"++", b" \0").replace(b"+", b" ").replace(b"\0", b"+")


def w3c() -> Format:
    """The extended format of the W3C, as IIS writes it: blanks in a field are `+`."""
    return Columns("w3c", separator=b" ", decode=_blanks)


def cloudfront() -> Format:
    """CloudFront's standard logs: tabs between fields, percent signs (once or twice) inside."""
    return Columns(
        "cloudfront",
        separator=b"\t",
        decode=lambda text: unquote_to_bytes(_PERCENT.sub(b"%", text)),
        first=_CLOUDFRONT,
    )
