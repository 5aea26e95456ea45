"""Roll-up: fine slots move into hours packed by site and day, old hours into days, and what is too old goes.

Every datum stands in exactly one place: a move and its deletion are one transaction, and an hour that exists is added
to, so that a move cut off anywhere can be made again.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
import zstandard

from crawlhealth.history.batch import HOUR
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally, pack, unpack

DAY = 86400.0
KEEP_DAYS = 730 * DAY
"""How long whole days are kept after their hours."""

Hours = dict[tuple[str, Source, float], Tally]
"""The hours of one site and day: sums by route, source and start."""


@dataclass(slots=True, kw_only=True)
class PackedDay:
    """One site's day: sums `step` seconds wide, hours or, when it is old, the whole day."""

    step: float = HOUR
    hours: Hours = field(default_factory=dict)

    def key(self, start: float) -> float:
        """The start of the sum that a time belongs to."""
        return start // self.step * self.step


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[str, Source, float, bytes]]).decode


ROWS_IN_AN_HOUR = 180
"""About how many fine slots a site has in an hour."""
_OLDEST_HOUR = """
WITH RECURSIVE oldest(start) AS (SELECT min(start) FROM minutes WHERE start < ?1),
  some(site) AS (SELECT DISTINCT site FROM minutes WHERE start = (SELECT start FROM oldest) LIMIT ?2),
  starts(start) AS (
    SELECT start FROM oldest WHERE start IS NOT NULL
    UNION ALL
    SELECT (SELECT min(start) FROM minutes WHERE start > starts.start) AS next FROM starts
    WHERE next < min(?1, (CAST((SELECT start FROM oldest) / ?3 AS INTEGER) + 1) * ?3)
  )
SELECT m.site, m.route, m.source, m.start, m.tally FROM starts CROSS JOIN some CROSS JOIN minutes AS m
WHERE m.start = starts.start AND m.site = some.site LIMIT ?4
"""


def move_minutes(connection: sqlite3.Connection, *, before: float, limit: int) -> int:
    """Move up to `limit` fine slots that began before `before` into the hours; how many.

    Those of the oldest hour come first, and all of a site's hour at once where the limit allows, so that its packed day
    is written once and not for every minute.
    """
    rows = connection.execute(_OLDEST_HOUR, (before, max(1, limit // ROWS_IN_AN_HOUR), HOUR, limit)).fetchall()
    hours: dict[tuple[str, float], list[tuple[str, Source, float, Tally]]] = defaultdict(list)
    for site, route, word, start, blob in rows:
        hours[site, start // DAY * DAY].append((route, Source(word), start // HOUR * HOUR, unpack(blob)))
    for (site, start), parts in hours.items():
        day = read_day(connection, site, start)
        for route, source, hour, tally in parts:
            day.hours.setdefault((route, source, day.key(hour)), Tally()).merge(tally)
        put_day(connection, site, start, day)
    connection.executemany(
        "DELETE FROM minutes WHERE site = ? AND route = ? AND source = ? AND start = ?",
        ((site, route, word, start) for site, route, word, start, _ in rows),
    )
    return len(rows)


def read_day(connection: sqlite3.Connection, site: str, start: float) -> PackedDay:
    """The hours of one site and day; empty when there are none."""
    row = connection.execute("SELECT step, strata FROM days WHERE site = ? AND day = ?", (site, int(start))).fetchone()
    return PackedDay(step=float(row[0]), hours=_unpacked(row[1])) if row else PackedDay()


def put_day(connection: sqlite3.Connection, site: str, start: float, day: PackedDay) -> None:
    """Write the hours of one site and day in place of what was there."""
    connection.execute(
        "INSERT OR REPLACE INTO days (site, day, step, strata) VALUES (?, ?, ?, ?)",
        (site, int(start), int(day.step), packed(day.hours)),
    )


def read_hours(connection: sqlite3.Connection, site: str, since: float) -> Iterable[Slot]:
    """The hours of one site that begin at `since` or later. Raises ValueError where they cannot be read."""
    rows = connection.execute(
        "SELECT strata FROM days WHERE site = ? AND day >= ? AND +step = ?",
        (site, int(since // DAY * DAY), int(HOUR)),
    ).fetchall()
    for (strata,) in rows:
        for (route, source, start), tally in _unpacked(strata).items():
            if start >= since:
                yield Slot(site=site, route=route, source=source, start=start, seconds=HOUR, tally=tally)


def read_all_hours(connection: sqlite3.Connection, since: float) -> Iterable[Slot]:
    """The hours of all sites that begin at `since` or later. Raises ValueError where they cannot be read."""
    rows = connection.execute(
        "SELECT site, strata FROM days WHERE day >= ? AND step = ?", (int(since // DAY * DAY), int(HOUR))
    )
    for site, strata in rows:
        for (route, source, start), tally in _unpacked(strata).items():
            if start >= since:
                yield Slot(site=site, route=route, source=source, start=start, seconds=HOUR, tally=tally)


def fold_days(connection: sqlite3.Connection, *, before: float, limit: int) -> int:
    """Sum the hours of up to `limit` days before `before` to one entry a route and source; how many days."""
    rows = connection.execute(
        "SELECT site, day, strata FROM days WHERE step = ? AND day + ? <= ? LIMIT ?",
        (int(HOUR), int(DAY), before, limit),
    ).fetchall()
    for site, day, strata in rows:
        put_day(connection, site, day, folded(PackedDay(hours=_unpacked(strata)), day, {}))
    return len(rows)


def folded(day: PackedDay, start: float, whole: Hours) -> PackedDay:
    """A day's hours summed to one entry a route and source, but for those that `whole` has as such."""
    total: Hours = {}
    for (route, source, _), tally in day.hours.items():
        total.setdefault((route, source, float(start)), Tally()).merge(tally)
    return PackedDay(step=DAY, hours={**total, **whole})


def prune(connection: sqlite3.Connection, *, days_before: float, verdicts_before: float, limit: int) -> int:
    """Delete up to `limit` days and as many verdicts that are too old; how many in all."""
    days = connection.execute(
        "DELETE FROM days WHERE rowid IN (SELECT rowid FROM days WHERE step = ? AND day < ? LIMIT ?)",
        (int(DAY), days_before, limit),
    )
    verdicts = connection.execute(
        "DELETE FROM verdicts WHERE rowid IN (SELECT rowid FROM verdicts WHERE at < ? LIMIT ?)",
        (verdicts_before, limit),
    )
    return days.rowcount + verdicts.rowcount


def packed(hours: Mapping[tuple[str, Source, float], Tally]) -> bytes:
    """Hours as bytes: compressed, as there are a thousand for a site and two weeks."""
    rows = [(route, source, start, pack(tally)) for (route, source, start), tally in sorted(hours.items())]
    return zstandard.compress(_encode(rows))


def _unpacked(strata: bytes) -> Hours:
    """The hours that were packed. Raises ValueError on anything else."""
    return {(route, source, start): unpack(tally) for route, source, start, tally in decoded(strata)}


def decoded(
    strata: bytes, decompress: Callable[[bytes], bytes] = zstandard.decompress
) -> list[tuple[str, Source, float, bytes]]:
    """Packed hours as route, source, start and packed tally. Raises ValueError on anything else.

    They are compressed, or not as in the first version. Who reads many brings a decompressor: to make one takes longer
    than a day.
    """
    if strata.startswith(zstandard.FRAME_HEADER):
        try:
            strata = decompress(strata)
        except zstandard.ZstdError as error:
            raise ValueError(f"not packed hours: {error}") from error
    return _decode(strata)
