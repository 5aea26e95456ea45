"""Stretches of the past, for many sites at once: from the file of a history, or from windows without any history.

Read is one piece of time after another, so that memory does not grow with the length of the past. All that is needed
is a connection that may read (see `reading`): the exporter may run or not.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Literal

import numpy as np
import zstandard

from crawlhealth import columns
from crawlhealth.history import importing, rollup
from crawlhealth.history.batch import HOUR
from crawlhealth.history.database import HistoryError
from crawlhealth.history.rollup import DAY
from crawlhealth.outcome import Source
from crawlhealth.stretch import Key, Stretch
from crawlhealth.tally import Slot

AT_ONCE = 72_000
"""About how many steps of how many sites are in memory at once: a month of a hundred sites by the hour."""
LEAST_STEPS = 24
"""But so many steps at least."""

Row = tuple[str, str, str, float, float, bytes]
"""site, route, source, start, seconds, packed tally."""

_FINE = """
WITH RECURSIVE starts(start) AS (
    SELECT min(start) FROM minutes WHERE start >= ?1 AND start < ?2
    UNION ALL
    SELECT (SELECT min(start) FROM minutes WHERE start > starts.start AND start < ?2) FROM starts
    WHERE starts.start IS NOT NULL
)
SELECT m.site, m.route, m.source, m.start, m.seconds, m.tally FROM starts CROSS JOIN minutes AS m
WHERE m.start = starts.start AND m.site IN (SELECT value FROM json_each(?3))
"""
_FINE_SPAN = f"SELECT min(start), max(start + seconds) FROM ({_FINE})"  # noqa: S608 - our own words
_DAYS = "SELECT site, step, strata FROM days WHERE site IN (SELECT value FROM json_each(?)) AND day > ? AND day < ?"
_INCOMING = (
    "SELECT site, route, source, start, seconds, tally FROM incoming"
    " WHERE site IN (SELECT value FROM json_each(?)) AND day > ? AND day < ?"
)


def stretches(
    connection: sqlite3.Connection, sites: Sequence[str], since: float, until: float, *, seconds: float = HOUR
) -> Iterator[Stretch]:
    """All of these sites from the step of `seconds` that holds `since` until before `until`, in pieces one by one.

    Steps without anything are told too. Steps begin at multiples of `seconds`; hours and days that are wider are
    spread over the steps that they cover. The strata of a piece begin with those of the piece before, in their order.
    Times are finite (see `span`). Raises ValueError and sqlite3.Error where the file cannot be read.
    """
    names = json.dumps(list(sites))
    decompress = zstandard.ZstdDecompressor().decompress
    keys: dict[Key, int] = {}
    for begin, end in _pieces(since, until, seconds, len(sites)):
        found = _Found(keys)
        for site, step, strata in connection.execute(_DAYS, (names, begin - DAY, end)):
            found.add_day(site, float(step), rollup.decoded(strata, decompress))
        early = HOUR if seconds < HOUR else 0.0  # no fine row is wider than an hour
        found.add(connection.execute(_FINE, (begin - early, end, names)))
        yield found.stretch(begin, end, seconds)


def span(connection: sqlite3.Connection, sites: Sequence[str]) -> tuple[float, float] | None:
    """When the first datum of any of these sites begins, and when the last one ends; None where there is none.

    Raises ValueError and sqlite3.Error where the file cannot be read.
    """
    begins = [begin for site in sites for begin, _ in islice(_packed(connection, site, "ASC"), 1)]
    ends = [end for site in sites for _, end in islice(_packed(connection, site, "DESC"), 1)]
    first, last = connection.execute("SELECT min(start), max(start) FROM minutes").fetchone()
    if first is not None:
        given = (first, math.nextafter(last, math.inf), json.dumps(list(sites)))
        begin, end = connection.execute(_FINE_SPAN, given).fetchone()
        if begin is not None:
            begins.append(begin)
            ends.append(end)
    return (min(begins), max(ends)) if begins else None


def _packed(connection: sqlite3.Connection, site: str, order: Literal["ASC", "DESC"]) -> Iterator[tuple[float, float]]:
    """Begin and end of what is in each packed day of a site; some days are empty."""
    query = f"SELECT step, strata FROM days WHERE site = ? ORDER BY day {order}"  # noqa: S608 - one of two words
    for step, strata in connection.execute(query, (site,)):
        starts = [start for _, _, start, _ in rollup.decoded(strata)]
        if starts:
            yield min(starts), max(starts) + step


def stretches_of(slots: Iterable[Slot], *, seconds: float = HOUR) -> Iterator[Stretch]:
    """Slots in any order and of any width, without a history, as `stretches` tells those of one: all there are.

    Every stretch has all strata. A later slot replaces its like, and of slots that overlap one another the finer ones
    count, as in an import. They wait in a temporary file that goes with this. Raises HistoryError where that cannot be
    written.
    """
    try:
        with closing(sqlite3.connect("", isolation_level=None)) as connection:
            importing.gather(connection, slots, oldest=-math.inf)
            sites = [site for (site,) in connection.execute("SELECT DISTINCT site FROM incoming ORDER BY site")]
            since, until = connection.execute("SELECT min(start), max(start + seconds) FROM incoming").fetchone()
            strata = connection.execute(
                "SELECT DISTINCT site, route, source FROM incoming ORDER BY site, route, source"
            )
            keys: dict[Key, int] = {(site, way, Source(by)): row for row, (site, way, by) in enumerate(strata)}
            for begin, end in _pieces(since, until, seconds, len(sites)) if sites else ():
                found = _Found(keys)
                found.add(connection.execute(_INCOMING, (json.dumps(sites), begin - DAY, end)))
                yield found.stretch(begin, end, seconds)
    except sqlite3.Error as error:
        raise HistoryError(f"cannot sort windows in a temporary file: {error}") from error


def _pieces(since: float, until: float, seconds: float, sites: int) -> Iterator[tuple[float, float]]:
    """Pieces of time in whole steps; whole days where they are that long, so that no day is unpacked twice."""
    begin = math.floor(since / seconds) * seconds
    last = math.ceil(until / seconds) * seconds
    length = max(LEAST_STEPS, AT_ONCE // max(1, sites)) * seconds
    while begin < last:
        end = begin + length
        if length >= DAY and DAY % seconds == 0:
            end = end // DAY * DAY
        yield begin, min(end, last)
        begin = end


class _Found:
    """Rows on their way into one stretch. `keys` are the strata known so far, which it adds to."""

    def __init__(self, keys: dict[Key, int]) -> None:
        self._keys = keys
        self._rows: list[int] = []
        self._starts: list[float] = []
        self._widths: list[float] = []
        self._blobs: list[bytes] = []

    def add(self, rows: Iterable[Row]) -> None:
        for site, route, source, start, width, blob in rows:
            self._rows.append(self._row((site, route, Source(source))))
            self._starts.append(start)
            self._widths.append(width)
            self._blobs.append(blob)

    def add_day(self, site: str, width: float, sums: Sequence[tuple[str, Source, float, bytes]]) -> None:
        if not sums:
            return
        routes, sources, starts, blobs = zip(*sums, strict=True)  # much faster than one sum after another
        places = {way: self._row((site, *way)) for way in dict.fromkeys(zip(routes, sources, strict=True))}
        self._rows += map(places.__getitem__, zip(routes, sources, strict=True))
        self._starts += starts
        self._widths += [width] * len(sums)
        self._blobs += blobs

    def stretch(self, begin: float, end: float, seconds: float) -> Stretch:
        return Stretch.placed(
            tuple(self._keys),
            np.array(self._rows, dtype=np.intp),
            np.array(self._starts, dtype=np.float64),
            np.array(self._widths, dtype=np.float64),
            columns.unpacked(self._blobs),
            start=begin,
            seconds=seconds,
            steps=round((end - begin) / seconds),
        )

    def _row(self, key: Key) -> int:
        return self._keys.setdefault(key, len(self._keys))
