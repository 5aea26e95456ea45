"""The store of search bots' visits: what is on disk of them, in memory, and the way to add to it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from crawlhealth.history import dispatches, pushes
from crawlhealth.history.database import HistoryError, open_undamaged, transaction
from crawlhealth.history.dispatches import DispatchKey
from crawlhealth.history.pushes import Pushed, PushKey
from crawlhealth.history.visits import CounterKey, HourKey, LogUpdate, Place, PlaceKey, SeenKey, WaitingKey, read_hours

KEPT_SECONDS: Final = 2 * 365 * 86_400.0
"""How long hours are kept."""

_encode = msgspec.msgpack.Encoder().encode
_place = msgspec.msgpack.Decoder(Place).decode


class VisitStore:
    """What is on disk of all this, and the way to add to it. All methods raise HistoryError; any thread may call them.

    `counters`, `last`, `places` and `waiting` are what is committed: a mapping is replaced, never changed. So are
    `dispatched`, where visits were sent in the last days, and `begun`, the first hour in which any was, by target.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, *, now: float) -> None:
        self._path = path
        self._connection = connection
        self._lock = threading.Lock()
        self._adding = threading.Lock()  # what is shown is made from what was shown: logs and posts take turns
        with self._using():
            self.counters: Mapping[CounterKey, float] = {
                (name, tuple(json.loads(labels))): value
                for name, labels, value in connection.execute("SELECT name, labels, value FROM visit_counters")
            }
            self.last: Mapping[SeenKey, float] = {
                (tenant, domain, bot): at
                for tenant, domain, bot, at in connection.execute("SELECT tenant, domain, bot, at FROM visit_last")
            }
            self.places: Mapping[PlaceKey, Place] = {
                (log, device, inode): _place(blob)
                for log, device, inode, blob in connection.execute("SELECT log, device, inode, place FROM log_places")
            }
            self.waiting: Mapping[WaitingKey, tuple[int, float]] = {
                tuple(row[:7]): (row[7], row[8]) for row in connection.execute("SELECT * FROM visits_waiting")
            }
            self.dispatched: Mapping[DispatchKey, int] = dispatches.read(connection, now)
            self.begun: Mapping[tuple[str, str], int] = dispatches.begun(connection)

    @classmethod
    def open(cls, path: Path, *, now: float) -> VisitStore:
        """That of the history at `path`, which is begun when there is none."""
        return cls(path, open_undamaged(path, now=now), now=now)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def add(self, update: LogUpdate) -> None:
        """Bring all of an update to disk in one transaction, then show it."""
        with self._adding:
            self._add(update)

    def pushed(self, key: PushKey) -> Pushed | None:
        """What is remembered of a push by its key, None when there is nothing."""
        with self._using():
            return pushes.read(self._connection, key)

    def _add(self, update: LogUpdate) -> None:
        counters = {key: self.counters.get(key, 0.0) + amount for key, amount in update.counters.items()}
        last = {key: max(at, self.last.get(key, at)) for key, at in update.last.items()}
        with self._writing():
            run = self._connection.executemany
            run(
                "INSERT OR REPLACE INTO visit_counters VALUES (?, ?, ?)",
                ((name, json.dumps(labels), value) for (name, labels), value in counters.items()),
            )
            run("INSERT OR REPLACE INTO visit_last VALUES (?, ?, ?, ?)", ((*key, at) for key, at in last.items()))
            run(_ADD_HOUR, ((*key, visits) for key, visits in update.hours.items()))
            run(
                "INSERT OR REPLACE INTO log_places VALUES (?, ?, ?, ?)",
                ((*key, _encode(place)) for key, place in update.places.items() if place is not None),
            )
            run(
                "DELETE FROM log_places WHERE log = ? AND device = ? AND inode = ?",
                (key for key, place in update.places.items() if place is None),
            )
            run(
                "INSERT OR REPLACE INTO visits_waiting VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                ((*key, *waiting) for key, waiting in update.waiting.items() if waiting is not None),
            )
            run(
                "DELETE FROM visits_waiting WHERE tenant = ? AND domain = ? AND bot = ? AND address = ? AND status = ?"
                " AND hour = ? AND target = ?",
                (key for key, waiting in update.waiting.items() if waiting is None),
            )
            dispatches.add(self._connection, update.dispatches)
            pushes.put(self._connection, update.pushes)
        self.counters = {**self.counters, **counters}
        self.last = {**self.last, **last}
        self.places = _changed(self.places, update.places)
        self.waiting = _changed(self.waiting, update.waiting)
        if update.dispatches:
            self.dispatched = dispatches.recent(self.dispatched, update.dispatches)
            self.begun = dispatches.earliest(self.begun, update.dispatches)

    def replace_hours(self, hours: Mapping[HourKey, int]) -> None:
        """Put these hours in place of all that was known of the same hour, tenant and domain. No counter moves."""
        with self._writing():
            self._connection.executemany(
                "DELETE FROM visit_hours WHERE hour = ? AND tenant = ? AND domain = ?", {key[:3] for key in hours}
            )
            self._connection.executemany(_ADD_HOUR, ((*key, visits) for key, visits in hours.items()))

    def hours(self, since: float, until: float) -> list[tuple[HourKey, int]]:
        """Hours that began in a time, the oldest first."""
        with self._using():
            return read_hours(self._connection, since, until)

    def prune(self, now: float) -> None:
        """Forget the hours that are older than what is kept."""
        with self._writing():
            self._connection.execute("DELETE FROM visit_hours WHERE hour < ?", (now - KEPT_SECONDS,))
            dispatches.prune(self._connection, before=now - KEPT_SECONDS)

    @contextmanager
    def _using(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except (sqlite3.Error, ValueError) as error:
                raise HistoryError(f"cannot use the visits in {self._path}: {error}") from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._using(), transaction(self._connection):
            yield


Key = TypeVar("Key")
Value = TypeVar("Value")
_ADD_HOUR: Final = (
    "INSERT INTO visit_hours VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET visits = visits + excluded.visits"
)


def _changed(before: Mapping[Key, Value], changes: Mapping[Key, Value | None]) -> dict[Key, Value]:
    after = dict(before)
    for key, value in changes.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    return after
