"""Answers: what is known of addresses, for one to two hours, bounded, and kept on disk over restarts."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec

from crawlhealth.history import HistoryError
from crawlhealth.history.database import open_database, transaction
from crawlhealth.searchbots.facts import Facts

FILE_NAME: Final = "addresses.db"
"""What the file is called in the data folder. It may be deleted at any time: everything is found out again."""
MOST: Final = 50_000
"""Addresses that are known at once."""
GOOD_FOR: Final = 3600.0
"""Seconds: an answer is good for that to twice that, each address for its own time, so that they do not end at once."""
RETRY_FIRST: Final = 60.0
RETRY_LAST: Final = 3600.0
KEEP_CONFIRMED: Final = 86_400.0
"""Seconds that a proof outlives while asking again fails: a name server that is down makes nobody unknown."""

log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode
_facts = msgspec.msgpack.Decoder(Facts).decode


@dataclass(slots=True)
class Known:
    """Facts, until when they are good, and how often asking has failed since."""

    facts: Facts
    until: float
    failures: int = 0


class Answers:
    """What is known, by address, the oldest first. One writer; readers in other threads see whole entries."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[str, Known] = {}
        self._unsaved: set[str] = set()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, address: str) -> Known | None:
        """What is known of an address, however old."""
        return self._known.get(address)

    def put(self, address: str, facts: Facts, now: float) -> Known:
        """Take what a look-up found. One that failed does not take the place of a proof that is younger than a day."""
        before = self._known.pop(address, None)
        if not facts.failed:
            known = Known(facts, now + good_for(address))
        else:
            failures = 1 if before is None else before.failures + 1
            kept = before is not None and before.facts.confirmed and now - before.facts.at < KEEP_CONFIRMED
            pause = min(RETRY_LAST, RETRY_FIRST * 2.0 ** min(failures - 1, 10))
            known = Known(before.facts if before is not None and kept else facts, now + pause, failures)
        while len(self._known) >= self._most:
            self._known.pop(next(iter(self._known)))
        self._known[address] = known
        self._unsaved.add(address)
        return known

    def load(self, rows: Iterator[tuple[str, Facts]]) -> None:
        """Begin with what was kept on disk, oldest first."""
        for address, facts in rows:
            self._known[address] = Known(facts, facts.at + good_for(address))

    def unsaved(self) -> list[tuple[str, Facts]]:
        """What was found out since the last call and is worth keeping: answers, no failures."""
        addresses, self._unsaved = self._unsaved, set()
        known = ((address, self._known.get(address)) for address in addresses)
        return [(address, entry.facts) for address, entry in known if entry is not None and not entry.facts.failed]


def good_for(address: str) -> float:
    """Seconds that an answer on an address is good for."""
    return GOOD_FOR * (1.0 + crc32(address.encode()) % 1000 / 1000.0)


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE addresses (address TEXT PRIMARY KEY, at REAL, facts BLOB) WITHOUT ROWID")
    connection.execute("CREATE INDEX addresses_by_age ON addresses (at)")


class Shelf:
    """The answers on disk. A file that cannot be used costs look-ups, nothing else: it is told once in the log."""

    def __init__(self, path: Path, *, now: float) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection, _ = open_database(path, now=now, load=lambda _: None, migrations=(_create,))
            self._connection.execute("PRAGMA synchronous=NORMAL")
        except (HistoryError, OSError, sqlite3.Error) as error:
            log.warning("answers on addresses are not kept: %s", error)

    def rows(self, now: float, most: int = MOST) -> Iterator[tuple[str, Facts]]:
        """The newest answers that are younger than a day, oldest first."""
        if self._connection is None:
            return
        query = "SELECT address, facts FROM addresses WHERE at > ? AND at <= ? ORDER BY at DESC LIMIT ?"
        for address, blob in reversed(self._connection.execute(query, (now - KEEP_CONFIRMED, now, most)).fetchall()):
            with contextlib.suppress(msgspec.MsgspecError):  # a row of another version is found out again
                yield address, _facts(blob)

    def save(self, found: list[tuple[str, Facts]], now: float, most: int = MOST) -> None:
        """Keep answers in place of earlier ones, and drop what is old or too much. Raises HistoryError."""
        if self._connection is None or not found:
            return
        try:
            with transaction(self._connection):
                self._connection.executemany(
                    "INSERT OR REPLACE INTO addresses VALUES (?, ?, ?)",
                    ((address, facts.at, _encode(facts)) for address, facts in found),
                )
                self._connection.execute("DELETE FROM addresses WHERE at <= ?", (now - KEEP_CONFIRMED,))
                self._connection.execute(
                    "DELETE FROM addresses WHERE at <= (SELECT at FROM addresses ORDER BY at DESC LIMIT 1 OFFSET ?)",
                    (most,),
                )
        except sqlite3.Error as error:
            raise HistoryError(f"cannot keep answers in {self._path}: {error}") from error

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
