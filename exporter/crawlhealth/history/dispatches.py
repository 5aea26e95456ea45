"""Where visits of search bots were sent, by the hour: what shares, quotas and ramps are made of."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

DispatchKey = tuple[int, str, str, str, str]
"""Start of the hour (unix seconds), tenant, bot, target, decision."""
RECENT_SECONDS: Final = 26 * 3600
"""How much of it is kept in memory: today, and what shares look back on."""
SENT: Final = "sent"
"""The decision that counts as a visit of the target."""


def create(connection: sqlite3.Connection) -> None:
    """The table, new in this version of the schema."""
    connection.execute(
        "CREATE TABLE dispatch_hours (hour INTEGER, tenant TEXT, bot TEXT, target TEXT, decision TEXT, visits INTEGER,"
        " PRIMARY KEY (hour, tenant, bot, target, decision)) WITHOUT ROWID"
    )


def add(connection: sqlite3.Connection, more: Mapping[DispatchKey, int]) -> None:
    """Add to the hours on disk."""
    connection.executemany(
        "INSERT INTO dispatch_hours VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET visits = visits + excluded.visits",
        ((*key, visits) for key, visits in more.items()),
    )


def read(connection: sqlite3.Connection, now: float) -> dict[DispatchKey, int]:
    """The last days."""
    rows = connection.execute("SELECT * FROM dispatch_hours WHERE hour >= ?", (now - RECENT_SECONDS,))
    return {(hour, tenant, bot, target, decision): visits for hour, tenant, bot, target, decision, visits in rows}


def begun(connection: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """The first hour in which a visit was sent, by tenant and target."""
    rows = connection.execute(
        "SELECT tenant, target, min(hour) FROM dispatch_hours WHERE decision = ? AND visits > 0 GROUP BY 1, 2", (SENT,)
    )
    return {(tenant, target): hour for tenant, target, hour in rows}


def recent(before: Mapping[DispatchKey, int], more: Mapping[DispatchKey, int]) -> dict[DispatchKey, int]:
    """The last days with more of them; what is older than that goes."""
    after = dict(before)
    for key, visits in more.items():
        after[key] = after.get(key, 0) + visits
    since = max(key[0] for key in after) - RECENT_SECONDS
    return {key: visits for key, visits in after.items() if key[0] >= since}


def earliest(before: Mapping[tuple[str, str], int], more: Mapping[DispatchKey, int]) -> dict[tuple[str, str], int]:
    """The first hours with more of them."""
    after = dict(before)
    for (hour, tenant, _, target, decision), visits in more.items():
        if decision == SENT and visits:
            after[tenant, target] = min(hour, after.get((tenant, target), hour))
    return after


def prune(connection: sqlite3.Connection, *, before: float) -> None:
    """Forget the hours before a time."""
    connection.execute("DELETE FROM dispatch_hours WHERE hour < ?", (before,))
