"""Combined, common, and both with the virtual host in front: `address ident user [time] "request" status bytes "…"`."""

from __future__ import annotations

from typing import Final

import re2

from crawlhealth.searchbots.formats.clock import Clock
from crawlhealth.searchbots.formats.entry import QUOTE, Entry, Format, count, count_unreadable
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


_STATUS: Final = {b" %03d " % status: status for status in range(1000)}
_ENDS: Final = b" \r"
"""What may follow the user agent: fields that are not needed, or a line end of another system."""


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
            if len(parts) == 7:  # the usual line
                head, request, numbers, _, between, agent, rest = parts
                good = between == b" " and (not rest or rest[0] in _ENDS)
                return self._entry(head, request, numbers, agent) if good else None
            return self._odd(parts)
        except ValueError:
            return None

    def unreadable(self, chunk: bytes, lines: int) -> int:
        """How many lines of a chunk cannot be read."""
        usual = (6 * lines, 8 * lines) if self._agents else (2 * lines,)
        found = count(chunk, QUOTE)
        if found in usual or found - chunk.count(b'\\"') in usual:
            return 0
        return count_unreadable(self, chunk)

    def _odd(self, parts: list[bytes]) -> Entry | None:
        """A line without escapes that is not the usual one."""
        found = len(parts)
        if found == 6 and parts[4] == b" ":  # cut at its end, in the user agent
            return self._entry(parts[0], parts[1], parts[2], parts[5])
        if found == 3:
            return self._entry(parts[0], parts[1], parts[2].rstrip(b" \r") + b" ", b"")
        if found == 9 and parts[4] == b" " == parts[6]:
            return self._entry(parts[0], parts[1], parts[2], parts[5], parts[7])
        return None

    def _careful(self, line: bytes) -> Entry | None:
        match = _CAREFUL.fullmatch(line)
        if match is None:
            return None
        head, time, request, status, _, agent, forwarded = match.groups()
        return self._entry(
            head + b"[" + time + b"] ", unescaped(request), b" " + status + b" - ", unescaped(agent or b""),
            forwarded or b"",
        )  # fmt: skip

    def _entry(self, head: bytes, request: bytes, numbers: bytes, agent: bytes, forwarded: bytes = b"") -> Entry | None:
        """Put a line together, None where a part is not what stands there. Raises ValueError for a time that is none.

        `head` is all before the request, `numbers` status and bytes with the blanks around them.
        """
        status = _STATUS.get(numbers[:5])
        size = numbers[5:-1]
        if status is None or not (size.isdigit() or size == b"-") or head[-29:-28] != b"[" or head[-2:] != b"] ":
            return None
        at, day = self._clock.common(head[-28:-2])
        host = b""
        if self._host:
            host, _, head = head.partition(b" ")
            name, _, port = host.rpartition(b":")
            host = name if port.isdigit() else host
        address, _, rest = head.partition(b" ")
        if not address.isascii() or not address or rest.count(b" ", 0, -29) < 2:
            return None
        return Entry(
            address=address, at=at, day=day, status=status, agent=agent, request=request, host=host, forwarded=forwarded
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
