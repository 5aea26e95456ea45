"""The shard whose exporter a history is of: the one that `serve` last had, kept beside what it wrote."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

from crawlhealth.history.database import transaction
from crawlhealth.history.reading import reading
from crawlhealth.shard import Shard, parse

log = logging.getLogger(__name__)


def shard_of(path: Path) -> Shard | None:
    """The shard of the exporter that last had the history at `path`.

    None where it had none, and where there is no history yet. Raises HistoryError where that cannot be read.
    """
    if not path.is_file() or path.stat().st_size == 0:
        return None
    with reading(path) as connection:
        return _read(connection)


def keep(connection: sqlite3.Connection, shard: Shard | None) -> None:
    """Keep the shard of the exporter that has the history from now on; nothing is written where it is the same."""
    try:
        before = _read(connection)
    except ValueError as error:
        log.warning("the shard that this history was of cannot be read: %s", error)
        before = None
    else:
        if before == shard:
            return
    if before is not None:
        whose = "of all sites" if shard is None else f"of shard {shard}"
        log.warning("this history was of shard %s, and is %s from now on", before, whose)
    with transaction(connection):
        if shard is None:
            connection.execute("DELETE FROM meta WHERE name = 'shard'")
        else:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('shard', ?)", (shard.written,))


def _read(connection: sqlite3.Connection) -> Shard | None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'shard'").fetchone()
    return None if row is None else parse(str(row[0]))
