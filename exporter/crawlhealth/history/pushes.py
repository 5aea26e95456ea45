"""Pushes that were taken, by the key their sender gave them, so that none counts twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

PushKey = tuple[str, str]
"""Who pushed (a hash of the token), and the `Idempotency-Key` of the push."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """What is remembered of one push: when it came, the checksum of its body, and what was answered."""

    at: float
    checksum: int
    answer: bytes


def create(connection: sqlite3.Connection) -> None:
    """The table, new in this version of the schema."""
    connection.execute(
        "CREATE TABLE pushes (who TEXT, key TEXT, at REAL, checksum INTEGER, answer BLOB, PRIMARY KEY (who, key))"
        " WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX pushes_by_age ON pushes (at)")


def put(connection: sqlite3.Connection, pushes: Mapping[PushKey, Pushed]) -> None:
    """Remember pushes by their keys."""
    connection.executemany(
        "INSERT OR REPLACE INTO pushes VALUES (?, ?, ?, ?, ?)",
        ((*key, push.at, push.checksum, push.answer) for key, push in pushes.items()),
    )


def read(connection: sqlite3.Connection, key: PushKey) -> Pushed | None:
    """What is remembered of one push, None when there is nothing."""
    row = connection.execute("SELECT at, checksum, answer FROM pushes WHERE who = ? AND key = ?", key).fetchone()
    return Pushed(at=row[0], checksum=row[1], answer=row[2]) if row else None


def prune(connection: sqlite3.Connection, *, before: float, limit: int) -> int:
    """Forget up to `limit` pushes from before a time; how many."""
    return connection.execute(
        "DELETE FROM pushes WHERE (who, key) IN (SELECT who, key FROM pushes WHERE at < ? LIMIT ?)", (before, limit)
    ).rowcount
