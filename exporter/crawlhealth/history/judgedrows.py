"""The rows of judged hours: the 24 marks of a site's day. They lie by day, since all sites are written together."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from crawlhealth.marks import NONE, Marks, worse

HOURS: Final = 24
DAY: Final = 86400

Hours = dict[int, Mapping[str, int]]
"""By number of the hour since 1970: the mark of each site."""
Day = tuple[str, bytes]
"""A site and the marks of its day."""


def create(connection: sqlite3.Connection) -> None:
    """The table, new in this version of the schema."""
    connection.execute(
        "CREATE TABLE judged (day INTEGER, site TEXT, hours BLOB, PRIMARY KEY (day, site)) WITHOUT ROWID"
    )


def put(connection: sqlite3.Connection, hours: Mapping[int, Mapping[str, int]]) -> None:
    """Join marks with what is there: the worse of each hour counts. Raises ValueError for rows that are none."""
    for number, marks in hours.items():
        day, hour = divmod(number, HOURS)
        sites = list(marks)
        found = read(connection, sites, day * HOURS, HOURS)
        found[:, hour] = worse(found[:, hour], list(marks.values()))
        _write(connection, day, sites, found)


def replace(connection: sqlite3.Connection, site: str, first: int, marks: Marks, *, over: bool) -> None:
    """Write marks of a site's hours from number `first` on where there is NONE, or `over` what is there."""
    begin = first // HOURS
    days = -(-(first + len(marks)) // HOURS) - begin
    found = read(connection, [site], begin * HOURS, days * HOURS)[0]
    there = found[first - begin * HOURS :][: len(marks)]
    there[:] = marks if over else np.where(there == NONE, marks, there)
    for day in range(days):
        _write(connection, begin + day, [site], found[None, day * HOURS : (day + 1) * HOURS])


def read(connection: sqlite3.Connection, sites: Sequence[str], first: int, count: int) -> Marks:
    """The marks of sites by site and hour: `count` hours from number `first` on; NONE where there is no row.

    Raises ValueError for rows that are none.
    """
    begin, end = first // HOURS, -(-(first + count) // HOURS)
    block = np.full((len(sites), end - begin, HOURS), NONE, dtype=np.uint8)
    places = {site: place for place, site in enumerate(sites)}
    names = json.dumps(list(sites))
    for day in range(begin, end):
        rows = connection.execute(
            "SELECT site, hours FROM judged WHERE day = ? AND site IN (SELECT value FROM json_each(?))",
            (day * DAY, names),
        ).fetchall()
        if rows:
            block[[places[site] for site, _ in rows], day - begin] = _unpacked(rows)
    return block.reshape(len(sites), -1)[:, first - begin * HOURS :][:, :count]


def prune(connection: sqlite3.Connection, *, before: float, limit: int) -> int:
    """Delete up to `limit` rows of days that ended before a time; how many."""
    return connection.execute(
        "DELETE FROM judged WHERE (day, site) IN (SELECT day, site FROM judged WHERE day <= ? LIMIT ?)",
        (before - DAY, limit),
    ).rowcount


def _write(connection: sqlite3.Connection, day: int, sites: Iterable[str], marks: Marks) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO judged VALUES (?, ?, ?)",
        ((day * DAY, site, hours.tobytes()) for site, hours in zip(sites, marks, strict=True)),
    )


def _unpacked(rows: Sequence[Day]) -> Marks:
    if any(not isinstance(hours, bytes) or len(hours) != HOURS for _, hours in rows):
        raise ValueError("a day of judged hours has not 24 of them")
    return np.frombuffer(b"".join([hours for _, hours in rows]), dtype=np.uint8).reshape(-1, HOURS)
