"""Shelf: what was looked up, on disk over restarts. Losing it costs look-ups, nothing else."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from crawlhealth.history import HistoryError
from crawlhealth.history.database import open_database, transaction
from crawlhealth.searchbots.answers import KEEP_CONFIRMED, MOST
from crawlhealth.searchbots.facts import Facts

FILE_NAME: Final = "lookups.db"
"""What the file is called in the data folder. It may be deleted while nothing runs: all is looked up again."""

log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode
_facts = msgspec.msgpack.Decoder(Facts).decode


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE addresses (address TEXT PRIMARY KEY, at REAL, facts BLOB) WITHOUT ROWID")
    connection.execute("CREATE INDEX addresses_by_age ON addresses (at)")
    connection.execute("CREATE TABLE expiries (domain TEXT PRIMARY KEY, until REAL, at REAL) WITHOUT ROWID")


class Shelf:
    """Answers on addresses and ends of domains, from any thread. The file is begun with the first of them."""

    def __init__(self, path: Path, *, now: float) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        if path.exists():
            try:
                self._open(now)
            except (HistoryError, OSError, sqlite3.Error) as error:
                log.warning("what was looked up before cannot be read: %s", error)

    def answers(self, now: float, most: int = MOST) -> Iterator[tuple[str, Facts]]:
        """The newest answers on addresses that are younger than a day, oldest first."""
        query = "SELECT address, facts FROM addresses WHERE at > ? AND at <= ? ORDER BY at DESC LIMIT ?"
        for address, blob in reversed(self._rows(query, (now - KEEP_CONFIRMED, now, most))):
            with contextlib.suppress(msgspec.MsgspecError):  # a row of another version is found out again
                yield address, _facts(blob)

    def expiries(self) -> list[tuple[str, float, float]]:
        """Domain, end of its registration, and when that was told."""
        return self._rows("SELECT domain, until, at FROM expiries", ())

    def save_answers(self, found: list[tuple[str, Facts]], now: float, most: int = MOST) -> None:
        """Keep answers in place of earlier ones, and drop what is old or too much. Raises HistoryError."""
        if not found:
            return
        with self._writing(now) as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO addresses VALUES (?, ?, ?)",
                ((address, facts.at, _encode(facts)) for address, facts in found),
            )
            connection.execute("DELETE FROM addresses WHERE at <= ?", (now - KEEP_CONFIRMED,))
            connection.execute(
                "DELETE FROM addresses WHERE at <= (SELECT at FROM addresses ORDER BY at DESC LIMIT 1 OFFSET ?)",
                (most,),
            )

    def save_expiry(self, domain: str, until: float, at: float) -> None:
        """Keep the end of a registration. Raises HistoryError."""
        with self._writing(at) as connection:
            connection.execute("INSERT OR REPLACE INTO expiries VALUES (?, ?, ?)", (domain, until, at))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self, now: float) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection, _ = open_database(self._path, now=now, load=lambda _: None, migrations=(_create,))
        connection.execute("PRAGMA synchronous=NORMAL")
        self._connection = connection
        return connection

    def _rows(self, query: str, values: tuple[float, ...]) -> list[Any]:
        with self._lock:
            if self._connection is None:
                return []
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                log.warning("what was looked up before cannot be read: %s", error)
                return []

    @contextlib.contextmanager
    def _writing(self, now: float) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                connection = self._connection or self._open(now)
                with transaction(connection):
                    yield connection
            except (sqlite3.Error, OSError) as error:
                raise HistoryError(f"cannot keep what was looked up in {self._path}: {error}") from error
