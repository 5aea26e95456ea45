"""Formats of the user's own, told by the text of an nginx `log_format`."""

from __future__ import annotations

import re
from typing import Final

import re2

from crawlhealth.searchbots.formats.clock import Clock, Moment, unix
from crawlhealth.searchbots.formats.entry import Entry, count_unreadable
from crawlhealth.searchbots.formats.escapes import unescaped
from crawlhealth.searchbots.formats.quoted import compiled

_VARIABLE: Final = re.compile(r"\$(?:\{([a-z0-9_]+)\}|([a-z0-9_]+))")
_TIMES: Final = ("time_local", "time_iso8601", "msec")
_ADDRESSES: Final = ("remote_addr", "realip_remote_addr", "http_x_real_ip")
MAX_FORMAT: Final = 4000


class Named:
    """A reader of lines as an nginx `log_format` writes them. Raises ValueError, saying what is missing or wrong."""

    def __init__(self, text: str) -> None:
        self.name = "nginx"
        self._pattern, names = _pattern(text)
        for wanted, one in (("$remote_addr", _ADDRESSES), ("$time_local, $time_iso8601 or $msec", _TIMES)):
            if not set(one) & set(names):
                raise ValueError(f"lacks {wanted}: copy the log_format as nginx has it")
        for wanted in ("status", "http_user_agent"):
            if wanted not in names:
                raise ValueError(f"lacks ${wanted}: copy the log_format as nginx has it")
        self._names = names
        self._clock = Clock()

    @property
    def state(self) -> bytes:
        """Nothing: every line speaks for itself."""
        return b""

    def resume(self, state: bytes) -> None:
        """Nothing to go on with."""

    def read(self, line: bytes) -> Entry | None:
        """What a line says; None where it cannot be read."""
        match = self._pattern.fullmatch(line)
        if match is None:
            return None
        fields = dict(zip(self._names, match.groups(), strict=True))
        try:
            at, day = self._time(fields)
            return Entry(
                address=next(fields[name] for name in _ADDRESSES if name in fields),
                at=at,
                day=day,
                status=int(fields["status"]),
                agent=unescaped(fields["http_user_agent"]),
                request=unescaped(_request(fields)),
                host=fields.get("host") or fields.get("http_host") or fields.get("server_name") or b"",
                forwarded=fields.get("http_x_forwarded_for", b""),
                target=fields.get("target", b"").decode("utf-8", "replace"),
                decision=fields.get("decision", b"").decode("utf-8", "replace"),
            )
        except ValueError:
            return None

    def unreadable(self, chunk: bytes, lines: int) -> int:
        """How many lines of a chunk cannot be read."""
        return count_unreadable(self, chunk)

    def _time(self, fields: dict[str, bytes]) -> Moment:
        if "time_local" in fields:
            return self._clock.common(fields["time_local"])
        if "time_iso8601" in fields:
            return self._clock.iso(fields["time_iso8601"])
        return unix(float(fields["msec"]))


def _request(fields: dict[str, bytes]) -> bytes:
    if "request" in fields:
        return fields["request"]
    path = fields.get("request_uri") or fields.get("uri") or b"-"
    return fields.get("request_method", b"-") + b" " + path


def _pattern(text: str) -> tuple[re2._Regexp, tuple[str, ...]]:
    """The pattern of a whole line, and the variables of its groups."""
    if len(text) > MAX_FORMAT:
        raise ValueError(f"has more than {MAX_FORMAT} characters: name only what is needed")
    pattern, names, end, literal = b"", [], 0, True
    for match in _VARIABLE.finditer(text):
        between = text[end : match.start()]
        if not between and not literal:
            raise ValueError(f"has {match[0]} right after another variable: put a blank between them")
        after = text[match.end() : match.end() + 1]
        pattern += re2.escape(between.encode()) + b"(" + _value(between[-1:], after) + b")"
        names.append(match[1] or match[2])
        end, literal = match.end(), False
    if len(set(names)) < len(names):
        raise ValueError("names a variable twice: leave one of them out")
    return compiled(pattern + re2.escape(text[end:].encode())), tuple(names)


def _value(before: str, after: str) -> bytes:
    """What a variable may hold: up to the character after it, escapes aside."""
    if not after or after == "$":
        return b".*"
    if before == after == '"':
        return rb'(?:[^"\\]|\\.)*'
    return b"[^" + bytes(re2.escape(after.encode())) + b"]*"
