"""Incidents and running warnings on disk, and what people said of incidents, in a table of its own.

The exporter rewrites an open incident with every change; a label, written by another process perhaps, stands beside it
and is joined when incidents are read.
"""

from __future__ import annotations

import logging
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from crawlhealth.incident import Incident, Warned
from crawlhealth.labels import Label
from crawlhealth.maintenance import moment
from crawlhealth.verdict import IncidentLabel, Signal

KEPT_SECONDS: Final = 5 * 365.25 * 86_400.0
"""How long an incident is kept after its end, with its label."""

log = logging.getLogger(__name__)

LATEST: Final = "latest"
"""Stands for the name of a site's latest incident."""

IncidentKey = tuple[str, float]
"""Site, start."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Incident).decode


def create(connection: sqlite3.Connection) -> None:
    """The tables, new in this version of the schema."""
    for statement in (
        'CREATE TABLE incidents (site TEXT, start REAL, "end" REAL, incident BLOB, PRIMARY KEY (site, start))',
        "CREATE INDEX incidents_by_start ON incidents (start)",
        'CREATE INDEX incidents_by_end ON incidents ("end")',
        "CREATE TABLE incident_labels (site TEXT, start REAL, at REAL, label TEXT, reason TEXT, note TEXT,"
        " PRIMARY KEY (site, start)) WITHOUT ROWID",
        'CREATE TABLE warned (site TEXT PRIMARY KEY, since REAL, "end" REAL) WITHOUT ROWID',
    ):
        connection.execute(statement)


def put(connection: sqlite3.Connection, incidents: Iterable[Incident], warned: Mapping[str, Warned | None]) -> None:
    """Write incidents as they are now, and the warnings that changed."""
    connection.executemany(
        "INSERT OR REPLACE INTO incidents VALUES (?, ?, ?, ?)",
        ((incident.site, incident.start, incident.end, _encode(incident)) for incident in incidents),
    )
    connection.executemany(
        "INSERT OR REPLACE INTO warned VALUES (?, ?, ?)",
        ((site, one.since, one.ended) for site, one in warned.items() if one is not None),
    )
    connection.executemany(
        "DELETE FROM warned WHERE site = ?", ((site,) for site, one in warned.items() if one is None)
    )


def put_label(connection: sqlite3.Connection, label: Label) -> bool:
    """Write a label in place of the one before; False where there is no such incident."""
    reason = label.reason.value if label.reason is not None else None
    return (
        connection.execute(
            "INSERT OR REPLACE INTO incident_labels SELECT site, start, ?, ?, ?, ? FROM incidents"
            " WHERE site = ? AND start = ?",
            (label.at, label.label.value, reason, label.note, label.site, label.start),
        ).rowcount
        > 0
    )


_SELECT: Final = (
    "SELECT i.site, i.start, i.incident, l.at, l.label, l.reason, l.note FROM incidents AS i"
    " LEFT JOIN incident_labels AS l ON l.site = i.site AND l.start = i.start"
)


def read(
    connection: sqlite3.Connection,
    *,
    site: str | None = None,
    since: float = -math.inf,
    until: float = math.inf,
    limit: int | None = None,
) -> Iterator[Incident]:
    """The incidents, with their labels, that lasted at any moment from `since` until before `until`, newest first.

    Of one site or of all. One that cannot be read any more is left out, with a message.
    """
    where = "" if site is None else "i.site = ?4 AND "
    query = (
        f'{_SELECT} WHERE {where}i.start < ?1 AND (i."end" IS NULL OR i."end" > ?2)'
        " ORDER BY i.start DESC, i.site LIMIT ?3"
    )
    given = (until, since, -1 if limit is None else limit)
    return _incidents(connection.execute(query, given if site is None else (*given, site)))


def find(connection: sqlite3.Connection, site: str, name: str) -> Incident | None:
    """A site's incident of this name (Incident.name, or `latest`). Raises ValueError for what cannot be a name."""
    if name == LATEST:
        return next(read(connection, site=site, limit=1), None)
    try:
        at = math.floor(moment(name))
    except ValueError:
        raise ValueError(f"{name!r} is no start of an incident: write one as 2026-12-01T22:00:00Z, or latest") from None
    return next((one for one in read(connection, site=site, since=at, until=at + 1) if one.start >= at), None)


def read_open(connection: sqlite3.Connection) -> Iterator[Incident]:
    """Those that have not ended, oldest first."""
    return _incidents(connection.execute(f'{_SELECT} WHERE i."end" IS NULL ORDER BY i.start'))


def read_warned(connection: sqlite3.Connection) -> dict[str, Warned]:
    """The warnings that are on, and those that went off lately, by site."""
    rows = connection.execute('SELECT site, since, "end" FROM warned')
    return {site: Warned(since=since, ended=ended) for site, since, ended in rows}


def read_latest(connection: sqlite3.Connection) -> dict[str, float]:
    """The start of each site's latest incident."""
    return dict(connection.execute("SELECT site, max(start) FROM incidents GROUP BY site"))


def prune(connection: sqlite3.Connection, *, before: float, limit: int) -> int:
    """Delete up to `limit` incidents that ended before a time, with their labels; how many."""
    old = connection.execute('SELECT site, start FROM incidents WHERE "end" < ? LIMIT ?', (before, limit)).fetchall()
    for table in ("incidents", "incident_labels"):
        connection.executemany(f"DELETE FROM {table} WHERE site = ? AND start = ?", old)  # noqa: S608 - our own names
    return len(old)


def _incidents(
    rows: Iterable[tuple[str, float, bytes, float | None, str | None, str | None, str]],
) -> Iterator[Incident]:
    for site, start, blob, at, label, reason, note in rows:
        try:
            incident = _decode(blob)
            if label is not None:
                incident = replace(
                    incident,
                    label=IncidentLabel(label),
                    note=note,
                    right_reason=None if reason is None else Signal(reason),
                    labelled_at=at,
                )
        except ValueError as error:  # msgspec's too: written by another version
            log.warning("an incident of %s (%s) cannot be read: %s", site, start, error)
            continue
        yield incident
