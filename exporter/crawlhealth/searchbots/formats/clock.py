"""Times as access logs write them, read fast: what a minute begins with is looked up, and only its seconds are read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Final

MAX_KNOWN: Final = 4096
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"), start=1
    )
}
_SECONDS: Final = {b":%02d" % second: second for second in range(61)}

Moment = tuple[float, str]
"""Unix seconds, and the day on the log's own clock."""


class Clock:
    """Reads times; remembers minutes it has seen."""

    def __init__(self) -> None:
        self._minutes: dict[bytes, Moment] = {}

    def common(self, text: bytes) -> Moment:
        """`17/May/2015:10:05:03 +0000`. Raises ValueError."""
        minute = text[:17] + text[20:]
        known = self._minutes.get(minute)
        if known is None:
            known = self._keep(minute, _common(text))
        second = _SECONDS.get(text[17:20])
        if second is None:
            raise ValueError("no time")
        return known[0] + second, known[1]

    def iso(self, text: bytes) -> Moment:
        """`2026-11-30T12:00:03.250Z`, with T or a blank, a zone or none (UTC). Raises ValueError."""
        minute, second = text[:16] + text[-6:], text[17:19]
        known = self._minutes.get(minute) if len(text) > 22 and text[19:20] in (b"Z", b"+", b"-") else None
        if known is not None and second.isdigit():
            return known[0] + int(second), known[1]
        moment = datetime.fromisoformat(text.decode("ascii"))
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if text[19:20] in (b"+", b"-") and len(text) == 25:
            self._keep(minute, (moment.timestamp() - moment.second, moment.date().isoformat()))
        return moment.timestamp(), moment.date().isoformat()

    def _keep(self, minute: bytes, moment: Moment) -> Moment:
        if len(self._minutes) >= MAX_KNOWN:
            self._minutes.clear()
        self._minutes[minute] = moment
        return moment


def unix(seconds: float) -> Moment:
    """A time in Unix seconds. Raises ValueError where no calendar has it."""
    if not 0 <= seconds < 2**33:
        raise ValueError("no time")
    return seconds, datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _common(text: bytes) -> Moment:
    """The minute that a time is in."""
    if len(text) != 26 or text[2:3] != b"/" or text[11:12] != b":":
        raise ValueError("no time")
    month = _MONTHS.get(text[3:6])
    sign = {b"+": 1, b"-": -1}.get(text[21:22])
    zone = text[22:26]
    if month is None or sign is None or not zone.isdigit():
        raise ValueError("no time")
    away = sign * timedelta(hours=int(zone[:2]), minutes=int(zone[2:]))
    moment = datetime(
        int(text[7:11]), month, int(text[:2]), int(text[12:14]), int(text[15:17]), tzinfo=timezone(away)
    )  # fmt: skip
    return moment.timestamp(), moment.date().isoformat()
