"""What people accepted as normal, on disk: every acceptance in the order it was made, with when it was taken back."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from typing import Final

import msgspec

from crawlhealth.verdict import Accepted

MOST_OF_A_SITE: Final = 100
"""So many of the latest acceptances of a site are kept."""

log = logging.getLogger(__name__)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Accepted).decode


def create(connection: sqlite3.Connection) -> None:
    """The table, new in this version of the schema; a row without `undone` stands."""
    connection.execute(
        "CREATE TABLE accepted (number INTEGER PRIMARY KEY AUTOINCREMENT, site TEXT, undone REAL, accepted BLOB)"
    )
    connection.execute("CREATE INDEX accepted_by_site ON accepted (site, number)")


def put(connection: sqlite3.Connection, accepted: Accepted) -> None:
    """Add one, which is in force from then on."""
    connection.execute(
        "INSERT INTO accepted (site, undone, accepted) VALUES (?, NULL, ?)", (accepted.site, _encode(accepted))
    )
    connection.execute(
        "DELETE FROM accepted WHERE site = ?1 AND number <="
        " (SELECT number FROM accepted WHERE site = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
        (accepted.site, MOST_OF_A_SITE),
    )


def undo(connection: sqlite3.Connection, site: str, now: float) -> bool:
    """Take back the one in force, so that the one before it is again; False where there is none."""
    newest = "SELECT max(number) FROM accepted WHERE site = ? AND undone IS NULL"
    return connection.execute(f"UPDATE accepted SET undone = ? WHERE number = ({newest})", (now, site)).rowcount > 0  # noqa: S608 - our own words


def in_force(connection: sqlite3.Connection) -> dict[str, Accepted]:
    """The one in force of each site that has one."""
    newest = "SELECT max(number) FROM accepted WHERE undone IS NULL GROUP BY site"
    rows = connection.execute(f"SELECT site, undone, accepted FROM accepted WHERE number IN ({newest})")  # noqa: S608 - our own words
    return {accepted.site: accepted for accepted, _ in _readable(rows)}


def of_site(connection: sqlite3.Connection, site: str) -> Iterator[tuple[Accepted, float | None]]:
    """All of one site that are kept, newest first, with when each was taken back."""
    query = "SELECT site, undone, accepted FROM accepted WHERE site = ? ORDER BY number DESC"
    return _readable(connection.execute(query, (site,)))


def _readable(rows: sqlite3.Cursor) -> Iterator[tuple[Accepted, float | None]]:
    for site, undone, blob in rows:
        try:
            yield _decode(blob), undone
        except msgspec.MsgspecError as error:
            log.warning("what was accepted of %s cannot be read: %s", site, error)
