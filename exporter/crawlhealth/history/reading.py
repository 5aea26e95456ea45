"""Reading a history that another process may be writing: nothing is locked, changed or migrated."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import msgspec

from crawlhealth.history import acceptances, incidents, rollup, rows
from crawlhealth.history.committed import RunKey, StoredRun
from crawlhealth.history.database import APPLICATION_ID, BUSY_SECONDS, MIGRATIONS, HistoryError
from crawlhealth.incident import Incident
from crawlhealth.tally import Slot
from crawlhealth.verdict import Accepted

_run = msgspec.msgpack.Decoder(StoredRun).decode


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The history at `path` as it is at one moment. Raises HistoryError when it cannot be read by this version."""
    try:
        with closing(_connected(path)) as connection:
            _check(connection, path)
            connection.execute("BEGIN")
            yield connection
    except (sqlite3.Error, OSError, ValueError) as error:
        raise HistoryError(f"cannot read the history {path}: {error}") from error


def _connected(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise HistoryError(f"there is no history {path}: has the exporter run with this data_dir?")
    location = f"file:{quote(str(path.absolute()))}?mode=ro"
    return sqlite3.connect(location, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if owner != APPLICATION_ID:
        raise HistoryError(f"{path} is no history of crawlhealth")
    if version > len(MIGRATIONS):
        raise HistoryError(f"the history {path} has schema version {version}, this crawlhealth knows {len(MIGRATIONS)}")


def stored_runs(path: Path) -> Mapping[RunKey, StoredRun]:
    """The latest runs of all canaries; none where there is no history. Raises HistoryError where it cannot be read."""
    if not path.is_file():
        return {}
    runs: dict[RunKey, StoredRun] = {}
    with reading(path) as connection:
        for site, canary, route, blob in connection.execute("SELECT site, canary, route, run FROM runs"):
            try:
                runs[site, canary, route] = _run(blob)
            except msgspec.MsgspecError:
                continue  # of another version: the next run replaces it
    return runs


def past_incidents(
    connection: sqlite3.Connection, *, site: str | None = None, since: float = -math.inf, until: float = math.inf
) -> tuple[Incident, ...]:
    """The incidents that lasted at any moment from `since` until before `until`, newest first, with their labels.

    None in a history of a version that knew no incidents.
    """
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'incidents'").fetchone() is None:
        return ()
    return tuple(incidents.read(connection, site=site, since=since, until=until))


def past_accepted(connection: sqlite3.Connection) -> Mapping[str, Accepted]:
    """What people have accepted as normal and not taken back, by site; nothing in a history that knew nothing of it."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'accepted'").fetchone() is None:
        return {}
    return acceptances.in_force(connection)


def past_slots(connection: sqlite3.Connection, site: str, since: float) -> tuple[Slot, ...]:
    """All of a site that began from `since` on: whole hours, then the fine slots. Raises ValueError."""
    return (*rollup.read_hours(connection, site, since), *rows.read_slots(connection, site, since))
