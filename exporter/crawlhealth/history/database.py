"""The file itself: opening, schema versions, and what happens to a file that cannot be read."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TypeVar

from crawlhealth.history import acceptances, dispatches, incidents, journal, judgedrows, pushes, resets, visits

log = logging.getLogger(__name__)

FILE_NAME = "history.db"
"""What the file is called in the data folder."""
APPLICATION_ID = 0x43724865
"""Marks the file as ours ("CrHe"), so that another program's database is never touched."""
BUSY_SECONDS = 2.0
"""How long a commit waits for another process that writes; then it is tried again later."""
IMPORT_PATIENCE_SECONDS = 60.0
"""How long an import waits for an exporter that writes."""
QUICK_CHECK_BYTES = 200_000_000
"""A larger file is not checked as a whole at the start; damage then shows where it is read."""

Loaded = TypeVar("Loaded")
Migration = Callable[[sqlite3.Connection], None]


class HistoryError(Exception):
    """The history cannot be used; the message says which file, why, and what to do."""


def _create(connection: sqlite3.Connection) -> None:
    for statement in (
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID",
        "CREATE TABLE minutes (start REAL, site TEXT, route TEXT, source TEXT, seconds REAL, tally BLOB,"
        " PRIMARY KEY (start, site, route, source)) WITHOUT ROWID",
        "CREATE TABLE days (site TEXT, day INTEGER, step INTEGER, strata BLOB, PRIMARY KEY (site, day))",
        "CREATE INDEX days_by_age ON days (step, day)",
        "CREATE TABLE totals (site TEXT, route TEXT, source TEXT, tally BLOB, PRIMARY KEY (site, route, source))"
        " WITHOUT ROWID",
        "CREATE TABLE last (site TEXT, source TEXT, at REAL, PRIMARY KEY (site, source)) WITHOUT ROWID",
        "CREATE TABLE counters (name TEXT, labels TEXT, value REAL, PRIMARY KEY (name, labels)) WITHOUT ROWID",
        "CREATE TABLE timings (name TEXT, labels TEXT, value BLOB, PRIMARY KEY (name, labels)) WITHOUT ROWID",
        "CREATE TABLE runs (site TEXT, canary TEXT, route TEXT, run BLOB, PRIMARY KEY (site, canary, route))",
        "CREATE TABLE states (site TEXT PRIMARY KEY, verdict BLOB)",
        "CREATE TABLE verdicts (site TEXT, at REAL, verdict BLOB, PRIMARY KEY (site, at))",
        "CREATE INDEX verdicts_by_age ON verdicts (at)",
        "INSERT INTO meta VALUES ('generation', 0)",
    ):
        connection.execute(statement)


def _add_refusals(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE refusals (site TEXT, route TEXT, source TEXT, reason TEXT, at REAL, refusal BLOB,"
        " PRIMARY KEY (site, route, source, reason, at)) WITHOUT ROWID"
    )


def _add_decisions(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE overrides (site TEXT, at REAL, until REAL, override BLOB, PRIMARY KEY (site, at)) WITHOUT ROWID"
    )
    connection.execute(
        "CREATE TABLE norms (site TEXT, page_type TEXT, pages BLOB, PRIMARY KEY (site, page_type)) WITHOUT ROWID"
    )


MIGRATIONS: tuple[Migration, ...] = (
    _create,
    _add_refusals,
    pushes.create,
    _add_decisions,
    journal.create,
    incidents.create,
    acceptances.create,
    judgedrows.create,
    resets.create,
    visits.create,
    dispatches.create,
)
"""Each brings the schema from the version of its place to the next; never changed once released."""


def connect(path: Path, *, patience: float = BUSY_SECONDS) -> sqlite3.Connection:
    """A connection as every process must open it: WAL, and a commit returns only when it is on disk.

    Transactions are begun and ended by hand, and wait `patience` seconds for their turn. Threads may share it, one at
    a time.
    """
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA journal_size_limit=67108864")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """All or nothing, and from the first statement on against all other writers."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def open_database(
    path: Path,
    *,
    now: float,
    load: Callable[[sqlite3.Connection], Loaded],
    migrations: Sequence[Migration] = MIGRATIONS,
) -> tuple[sqlite3.Connection, Loaded]:
    """The database at `path`, made or brought to the newest schema, with what `load` reads from it.

    A file that cannot be read is renamed aside with a message that names both, and a new one is begun. Raises
    HistoryError for a newer schema, another program's database, and a file that cannot be opened for other reasons.
    """
    try:
        return _opened(path, now, load, migrations)
    except (sqlite3.DatabaseError, ValueError, OSError) as error:
        if not damaged(error):
            raise HistoryError(f"cannot open the history {path}: {error}") from error
        aside = _set_aside(path, now)
        log.error(
            "the history %s cannot be read (%s): it is kept as %s, and a new history is begun; counters start at 0",
            path, error, aside,
        )  # fmt: skip
    return _opened(path, now, load, migrations)


def open_undamaged(path: Path, *, now: float) -> sqlite3.Connection:
    """The database for a second process: like `open_database`, but a damaged file is left alone (HistoryError).

    So is one of an earlier schema that an exporter uses: it would not know its own tables any more.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path) if _is_earlier(path) else nullcontext():
            return _opened(path, now, lambda _: None, MIGRATIONS, patience=IMPORT_PATIENCE_SECONDS)[0]
    except (sqlite3.DatabaseError, ValueError, OSError) as error:
        raise HistoryError(f"cannot open the history {path}: {error}") from error


def locked(path: Path) -> IO[bytes]:
    """A lock that ends with this process, in a folder made when it is new. Raises HistoryError when another has it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.with_name(path.name + ".lock").open("ab")
    except OSError as error:
        raise HistoryError(f"cannot open the history {path}: {error}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise HistoryError(
            f"the history {path} is in use by another exporter: stop it, or choose another data_dir"
        ) from error
    return file


def size_on_disk(path: Path) -> int:
    """Bytes of the database and its journal."""
    total = 0
    for suffix in ("", "-wal"):
        try:
            total += os.stat(path.with_name(path.name + suffix)).st_size
        except FileNotFoundError:
            continue
    return total


def damaged(error: Exception) -> bool:
    """Whether an error says that the contents are broken, rather than that the file cannot be reached now."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return isinstance(error, ValueError)


def _opened(
    path: Path,
    now: float,
    load: Callable[[sqlite3.Connection], Loaded],
    migrations: Sequence[Migration],
    *,
    patience: float = BUSY_SECONDS,
) -> tuple[sqlite3.Connection, Loaded]:
    _check_owner(path, len(migrations))
    connection = connect(path, patience=patience)
    try:
        _migrate(connection, path, now, migrations)
        if os.stat(path).st_size <= QUICK_CHECK_BYTES:
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise ValueError(f"the database is damaged: {verdict}")
        return connection, load(connection)
    except BaseException:
        connection.close()
        raise


def _check_owner(path: Path, newest: int) -> None:
    """Refuse, without touching it, what is not ours or from a later version."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with closing(sqlite3.connect(f"file:{_quoted(path)}?mode=rw", uri=True, timeout=BUSY_SECONDS)) as connection:
        owner = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and owner != APPLICATION_ID:
        raise HistoryError(f"{path} is a database of another program: move it away, or choose another data_dir")
    if version > newest:
        raise HistoryError(
            f"the history {path} has schema version {version}, this crawlhealth knows only {newest}:"
            " run the later version again, or move the file away to begin a new history"
        )


def _is_earlier(path: Path) -> bool:
    """Whether there is a database of an earlier schema."""
    if not path.exists() or path.stat().st_size == 0:
        return False
    with closing(sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return 0 < version < len(MIGRATIONS)


def _migrate(connection: sqlite3.Connection, path: Path, now: float, migrations: Sequence[Migration]) -> None:
    """Bring the schema forward, all steps or none, after a backup copy of what was there."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version >= len(migrations):
        return
    if version:
        backup = _free(path.with_name(f"{path.name}.backup-v{version}-{_stamp(now)}"))
        part = _free(backup.with_name(f"{backup.name}.part"))  # a copy cut off must not look like a whole one
        with closing(sqlite3.connect(part)) as copy:
            connection.backup(copy)
        part.rename(backup)
        log.info("the history %s moves from schema %d to %d, backup: %s", path, version, len(migrations), backup)
    with transaction(connection):
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        for migration in migrations[version:]:
            migration(connection)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={max(version, len(migrations))}")


def _set_aside(path: Path, now: float) -> Path:
    """Rename an unreadable file, with its journal, to a free name beside it."""
    aside = _free(path.with_name(f"{path.name}.unreadable-{_stamp(now)}"))
    try:
        for suffix in ("-wal", "-shm", ""):
            part = path.with_name(path.name + suffix)
            if part.exists():
                part.rename(aside.with_name(aside.name + suffix))
    except OSError as error:
        raise HistoryError(f"the history {path} cannot be read, and cannot be renamed to {aside}: {error}") from error
    return aside


def _free(path: Path) -> Path:
    candidate, number = path, 1
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}.{number}")
    return candidate


def _stamp(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")


def _quoted(path: Path) -> str:
    return path.absolute().as_uri().removeprefix("file:")
