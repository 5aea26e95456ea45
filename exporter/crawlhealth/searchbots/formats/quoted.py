"""Combined, common, and both with the virtual host in front: `address ident user [time] "request" status bytes "…"`."""

from __future__ import annotations

from typing import Final

import re2

from crawlhealth.searchbots.formats.clock import Clock
from crawlhealth.searchbots.formats.entry import Entry, Format, count_unreadable
from crawlhealth.searchbots.formats.escapes import unescaped

PATTERN_MEMORY: Final = 8_000_000
_QUOTED: Final = rb'"((?:[^"\\]|\\.)*)"'


def compiled(pattern: bytes) -> re2._Regexp:
    """A pattern over any bytes, in linear time."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = PATTERN_MEMORY
    options.dot_nl = True
    options.log_errors = False
    return re2.compile(pattern, options)


_CAREFUL: Final = compiled(
    rb'([^"\[]+)\[([^\]"]{26})\] ' + _QUOTED + rb" (\d{3}) (?:\d+|-)(?: " + _QUOTED
    + rb' "((?:[^"\\]|\\.)*)(?:"(?: ' + _QUOTED + rb')?(?: [^"]*)?)?)?[ \r]*'
)  # fmt: skip
"""The whole of a line that has escapes: quotes that the visitor sent stay inside their field."""


class Quoted:
    """A reader of these lines. `host` says whether the virtual host comes first, `agents` whether agents are there.

    A quoted field after the user agent is X-Forwarded-For, as in nginx's `main` format. A user agent may be cut off at
    the end of the line. Of a line with raw quotes inside a field nothing is guessed: it cannot be read.
    """

    def __init__(self, name: str, *, host: bool = False, agents: bool = True) -> None:
        self.name = name
        self._host = host
        self._agents = agents
        self._clock = Clock()

    @property
    def state(self) -> bytes:
        """Nothing: every line speaks for itself."""
        return b""

    def resume(self, state: bytes) -> None:
        """Nothing to go on with."""

    def read(self, line: bytes) -> Entry | None:
        """What a line says; None where it cannot be read."""
        try:
            if b"\\" in line:
                return self._careful(line)
            parts = line.split(b'"')
            count = len(parts)
            if count == 7 and parts[4] == b" ":  # the usual line comes first
                head, request, numbers, _, _, agent, rest = parts
                return self._entry(head, request, numbers, agent) if not rest.strip(b"\r ") or rest[0] == 32 else None
            if count == 6 and parts[4] == b" ":  # cut at its end, in the user agent
                return self._entry(parts[0], parts[1], parts[2], parts[5])
            if count == 3:
                return self._entry(parts[0], parts[1], parts[2], b"", bare=True)
            if count == 9 and parts[4] == b" " == parts[6]:
                return self._entry(parts[0], parts[1], parts[2], parts[5], parts[7])
        except ValueError:
            return None
        return None

    def unreadable(self, chunk: bytes, lines: int) -> int:
        """How many lines of a chunk cannot be read."""
        if chunk.count(b'] "') == lines and chunk.count(b'" "') in self._between(lines):
            return 0
        return count_unreadable(self, chunk)

    def _between(self, lines: int) -> tuple[int, ...]:
        """How often a quoted field may follow another in so many lines: once, or twice with X-Forwarded-For."""
        return (lines, 2 * lines) if self._agents else (0,)

    def _careful(self, line: bytes) -> Entry | None:
        match = _CAREFUL.fullmatch(line)
        if match is None:
            return None
        head, time, request, status, referer, agent, forwarded = match.groups()
        return self._entry(
            head + b"[" + time + b"] ", request, b" " + status + b" - ", agent or b"", forwarded or b"",
            bare=referer is None,
        )  # fmt: skip

    def _entry(
        self, head: bytes, request: bytes, numbers: bytes, agent: bytes, forwarded: bytes = b"", *, bare: bool = False
    ) -> Entry | None:
        """Put a line together. Raises ValueError where a part is not what stands there."""
        if head[-2:] != b"] " or numbers[4:5] != b" " or (numbers[-1:] != b" " and not bare):
            return None
        status = numbers[1:4]
        if not status.isdigit() or not (numbers[5:].strip() or b"x").replace(b"-", b"0").isdigit():
            return None
        start = head.rfind(b"[")
        at, day = self._clock.common(head[start + 1 : -2])
        fields = head[:start].split(b" ")
        host = fields.pop(0).rpartition(b":") if self._host else (b"", b"", b"")
        if len(fields) < 4 or not fields[0]:
            return None
        return Entry(
            address=fields[0],
            at=at,
            day=day,
            status=int(status),
            agent=unescaped(agent),
            request=unescaped(request),
            host=host[0] if host[2].isdigit() else host[0] + host[1] + host[2],
            forwarded=forwarded,
        )


def combined() -> Format:
    """Combined, of nginx and Apache."""
    return Quoted("combined")


def common() -> Format:
    """Common: no user agent, so that no bot is named."""
    return Quoted("common", agents=False)


def vhost() -> Format:
    """Combined or common with the virtual host first, with or without its port."""
    return Quoted("vhost", host=True)
