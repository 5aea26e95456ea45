"""Resets: when the longer windows of a site became what a shorter one held, on disk beside the verdict of that moment.

The windows in memory are a sum over slots; a reset stands between two commits of these. It bears the number of the last
commit that was in the windows then, so that a start which adds commits to a snapshot finds its place among them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """At `at`, every window of a site longer than `half_life` (seconds) became what that one held; 0: all were emptied.

    `number` counts the resets of a history, `sequence` is the last commit that was in the windows.
    """

    number: int
    sequence: int
    site: str
    at: float
    half_life: float


def create(connection: sqlite3.Connection) -> None:
    """The table, new in this version of the schema."""
    connection.execute(
        "CREATE TABLE resets (number INTEGER PRIMARY KEY, sequence INTEGER, site TEXT, at REAL, half_life REAL)"
    )
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('resets', 0)")


def put(connection: sqlite3.Connection, resets: Sequence[Reset]) -> None:
    """Write resets, later than all before."""
    connection.executemany(
        "INSERT OR REPLACE INTO resets VALUES (?, ?, ?, ?, ?)",
        ((one.number, one.sequence, one.site, one.at, one.half_life) for one in resets),
    )
    if resets:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'resets'", (resets[-1].number,))


def read(connection: sqlite3.Connection, after: int = 0) -> list[Reset]:
    """The resets with a later number, in order."""
    rows = connection.execute(
        "SELECT number, sequence, site, at, half_life FROM resets WHERE number > ? ORDER BY number", (after,)
    )
    return [
        Reset(number=number, sequence=sequence, site=site, at=at, half_life=half_life)
        for number, sequence, site, at, half_life in rows
    ]


def last(connection: sqlite3.Connection) -> int:
    """The number of the last reset that was ever written."""
    value: int = connection.execute("SELECT value FROM meta WHERE name = 'resets'").fetchone()[0]
    return value


def prune(connection: sqlite3.Connection, *, before: float, upto: int) -> None:
    """Delete resets up to a number whose effect has faded: those from before a time."""
    connection.execute("DELETE FROM resets WHERE at < ? AND number <= ?", (before, upto))


def joined(on_disk: Iterable[Reset], taken: Iterable[Reset]) -> list[Reset]:
    """The resets on disk and those that were taken and may not be there yet, each once, in order."""
    return sorted({one.number: one for one in (*on_disk, *taken)}.values(), key=lambda one: one.number)
