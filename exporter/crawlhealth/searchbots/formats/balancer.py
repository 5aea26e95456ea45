"""Access logs of AWS' application load balancers."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from crawlhealth.searchbots.formats.clock import Clock
from crawlhealth.searchbots.formats.entry import Entry, Format, count_unreadable
from crawlhealth.searchbots.formats.quoted import compiled

_LINE: Final = compiled(
    rb"(?:https?|h2|grpcs|wss?) (\S+) \S+ (\S+):\d+ \S+ \S+ \S+ \S+ (\d{3}|-) \S+ \d+ \d+"
    rb' "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)" \S+ .*'
)


class Balancer:
    """A reader of such lines."""

    name = "alb"

    def __init__(self) -> None:
        self._clock = Clock()

    @property
    def state(self) -> bytes:
        """Nothing: every line speaks for itself."""
        return b""

    def resume(self, state: bytes) -> None:
        """Nothing to go on with."""

    def read(self, line: bytes) -> Entry | None:
        """What a line says; None where it cannot be read."""
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        time, address, status, request, agent = match.groups()
        try:
            at, day = self._clock.iso(time)
            method, _, rest = request.partition(b" ")
            url = urlsplit(rest.partition(b" ")[0].decode("utf-8", "replace"))
            host = (url.hostname or "").encode()
        except ValueError:
            return None
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        return Entry(
            address=address.strip(b"[]"),
            at=at,
            day=day,
            status=int(status) if status != b"-" else 0,
            agent=agent,
            request=method + b" " + path.encode(),
            host=host,
        )

    def unreadable(self, chunk: bytes, lines: int) -> int:
        """How many lines of a chunk cannot be read."""
        return 0 if chunk.count(b'" "') == lines * 4 else count_unreadable(self, chunk)


def alb() -> Format:
    """Application load balancer."""
    return Balancer()
