"""Visits of search bots, and how far each access log is read: in one transaction, so that none is lost or counts twice.

Counters are totals for /metrics; hours are kept apart from them, for an import moves no counter.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import Final

import msgspec

from crawlhealth.history.dispatches import DispatchKey
from crawlhealth.history.pushes import Pushed, PushKey

HOUR: Final = 3600

CounterKey = tuple[str, tuple[str, ...]]
"""Metric, labels."""
HourKey = tuple[int, str, str, str, str, str]
"""Start of the hour (unix seconds), tenant, domain, bot, identity, status class."""
SeenKey = tuple[str, str, str]
"""Tenant, domain, bot."""
WaitingKey = tuple[str, str, str, str, str, int, str]
"""Tenant, domain, bot, address, status class, hour, target: visits whose identity is being found out."""
PlaceKey = tuple[str, int, int]
"""The configured path of a log, device, inode."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """How far one file of a log is read. `base` is the path that its log is written to, `path` where it was last.

    `head` and `tail` are the first bytes of the file, and the last before `offset`: by them it is known again.
    `modified` is when it had been written last as it was read (unix seconds; 0 where that was not noted).
    """

    base: str
    path: str
    offset: int = 0
    head: bytes = b""
    tail: bytes = b""
    state: bytes = b""
    modified: float = 0.0


@dataclass(slots=True, kw_only=True)
class LogUpdate:
    """What some reading brought: an accumulator. Of `waiting`, each value is (visits, since); None is over."""

    counters: dict[CounterKey, float] = field(default_factory=dict)
    last: dict[SeenKey, float] = field(default_factory=dict)
    hours: dict[HourKey, int] = field(default_factory=dict)
    places: dict[PlaceKey, Place | None] = field(default_factory=dict)
    waiting: dict[WaitingKey, tuple[int, float] | None] = field(default_factory=dict)
    dispatches: dict[DispatchKey, int] = field(default_factory=dict)
    pushes: dict[PushKey, Pushed] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any((self.counters, self.last, self.hours, self.places, self.waiting, self.dispatches, self.pushes))

    def increase(self, name: str, labels: tuple[str, ...], amount: float) -> None:
        """Add to a counter."""
        key = (name, labels)
        self.counters[key] = self.counters.get(key, 0.0) + amount


def read_hours(connection: sqlite3.Connection, since: float, until: float) -> list[tuple[HourKey, int]]:
    """Hours that began in a time, the oldest first, with their visits."""
    rows = connection.execute(
        "SELECT hour, tenant, domain, bot, identity, status, visits FROM visit_hours"
        " WHERE hour >= ? AND hour < ? ORDER BY 1, 2, 3, 4, 5, 6",
        (since, until),
    )
    return [
        ((hour, tenant, domain, bot, identity, status), visits)
        for hour, tenant, domain, bot, identity, status, visits in rows
    ]


def visited_hours(connection: sqlite3.Connection, since: float, until: float) -> int:
    """How many hours with visits began in a time; 0 in a history of a version that knew none."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'visit_hours'").fetchone() is None:
        return 0
    query = "SELECT count(DISTINCT hour) FROM visit_hours WHERE hour >= ? AND hour < ?"
    return int(connection.execute(query, (since, until)).fetchone()[0])


def create(connection: sqlite3.Connection) -> None:
    """The tables, new in this version of the schema."""
    for statement in (
        "CREATE TABLE log_places (log TEXT, device INTEGER, inode INTEGER, place BLOB,"
        " PRIMARY KEY (log, device, inode)) WITHOUT ROWID",
        "CREATE TABLE visit_counters (name TEXT, labels TEXT, value REAL, PRIMARY KEY (name, labels)) WITHOUT ROWID",
        "CREATE TABLE visit_last (tenant TEXT, domain TEXT, bot TEXT, at REAL,"
        " PRIMARY KEY (tenant, domain, bot)) WITHOUT ROWID",
        "CREATE TABLE visit_hours (hour INTEGER, tenant TEXT, domain TEXT, bot TEXT, identity TEXT, status TEXT,"
        " visits INTEGER, PRIMARY KEY (hour, tenant, domain, bot, identity, status)) WITHOUT ROWID",
        "CREATE TABLE visits_waiting (tenant TEXT, domain TEXT, bot TEXT, address TEXT, status TEXT, hour INTEGER,"
        " target TEXT, visits INTEGER, since REAL,"
        " PRIMARY KEY (tenant, domain, bot, address, status, hour, target)) WITHOUT ROWID",
    ):
        connection.execute(statement)
