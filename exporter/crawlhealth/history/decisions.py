"""What people decided and what was learnt, in the same file but in transactions of their own.

Both the exporter and the command line write decisions, each through a connection of its own.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from crawlhealth.acceptance import Begun, begun
from crawlhealth.history import acceptances, incidents
from crawlhealth.history.database import HistoryError, open_undamaged, transaction
from crawlhealth.incident import Incident
from crawlhealth.labels import Label
from crawlhealth.scoresettings import BaselineSettings
from crawlhealth.verdict import Accepted, Override, Verdict

KEPT_SECONDS = 2 * 365 * 86_400.0
"""How long an override is kept after it has ended, to be looked up."""

log = logging.getLogger(__name__)

NormKey = tuple[str, str]
"""Site, page type."""
Counts = Mapping[int, float]
"""Pages by bucket of size."""

_encode = msgspec.msgpack.Encoder().encode
_override = msgspec.msgpack.Decoder(Override).decode
_verdict = msgspec.msgpack.Decoder(Verdict).decode
_counts = msgspec.msgpack.Decoder(dict[int, float]).decode


class Decisions:
    """Decisions and norms of the history at a path. All methods may be called from any thread; they raise HistoryError.

    What a method that writes has returned from is on disk.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Path, *, now: float) -> Decisions:
        """Those of the history at `path`, which is begun when there is none."""
        return cls(path, open_undamaged(path, now=now))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def put(self, override: Override) -> None:
        """Let an override be in force, in place of any other of its site."""
        with self._writing():
            self._connection.execute("DELETE FROM overrides WHERE until < ?", (override.at - KEPT_SECONDS,))
            self._end(override.site, override.at)
            self._connection.execute(
                "INSERT OR REPLACE INTO overrides VALUES (?, ?, ?, ?)",
                (override.site, override.at, override.until, _encode(override)),
            )

    def end(self, site: str, now: float) -> bool:
        """End the override of a site before its time; False when there was none."""
        with self._writing():
            return self._end(site, now) > 0

    def active(self, now: float) -> Mapping[str, Override]:
        """The overrides in force, by site."""
        found = {}
        with self._reading():
            rows = self._connection.execute("SELECT site, override FROM overrides WHERE until > ?", (now,)).fetchall()
        for site, blob in rows:
            try:
                found[site] = _override(blob)
            except msgspec.MsgspecError as error:
                log.warning("the override of %s cannot be read: %s", site, error)
        return found

    def accept(self, accepted: Accepted) -> None:
        """Let what a person accepted be in force, in place of what was accepted of its site before."""
        with self._writing():
            acceptances.put(self._connection, accepted)

    def undo_accept(self, site: str, now: float) -> bool:
        """Take back what is in force of a site, so that what was accepted before is again; False where nothing is."""
        with self._writing():
            return acceptances.undo(self._connection, site, now)

    def accepted(self) -> Mapping[str, Accepted]:
        """What is in force, by site, whichever process accepted it."""
        with self._reading():
            return acceptances.in_force(self._connection)

    def accepted_of(self, site: str) -> tuple[tuple[Accepted, float | None], ...]:
        """What was accepted of a site, newest first, each with the time it was taken back."""
        with self._reading():
            return tuple(acceptances.of_site(self._connection, site))

    def outside_since(self, site: str, now: float, settings: BaselineSettings) -> Begun:
        """Since when a site is what a person may accept of it now, by what is on disk."""
        with self._reading():
            row = self._connection.execute("SELECT verdict FROM states WHERE site = ?", (site,)).fetchone()
            latest = next(incidents.read(self._connection, site=site, limit=1), None)
        try:
            verdict = None if row is None else _verdict(row[0])
        except msgspec.MsgspecError as error:
            log.warning("the last verdict on %s cannot be read: %s", site, error)
            verdict = None
        start = latest.start if latest is not None and latest.end is None else None
        return begun(verdict, start, now=now, settings=settings)

    def label(self, label: Label) -> bool:
        """Keep what a person said of an incident, in place of what was said before; False where there is no such."""
        with self._writing():
            return incidents.put_label(self._connection, label)

    def incidents(
        self, *, site: str | None = None, since: float = -math.inf, until: float = math.inf, limit: int | None = None
    ) -> tuple[Incident, ...]:
        """The incidents that lasted at any moment from `since` until before `until`, with their labels, newest first.

        Of one site, or of all.
        """
        with self._reading():
            return tuple(incidents.read(self._connection, site=site, since=since, until=until, limit=limit))

    def incident(self, site: str, name: str) -> Incident | None:
        """The incident of a site by its name, or its `latest`. Raises ValueError for what cannot be a name."""
        with self._reading():
            return incidents.find(self._connection, site, name)

    def put_norms(self, norms: Mapping[NormKey, Counts]) -> None:
        """Keep size norms, each in place of what was there."""
        if not norms:
            return
        with self._writing():
            self._connection.executemany(
                "INSERT OR REPLACE INTO norms VALUES (?, ?, ?)",
                ((site, page_type, _encode(dict(counts))) for (site, page_type), counts in norms.items()),
            )

    def norms(self) -> Mapping[NormKey, Counts]:
        """All size norms on disk."""
        found: dict[NormKey, Counts] = {}
        with self._reading():
            rows = self._connection.execute("SELECT site, page_type, pages FROM norms").fetchall()
        for site, page_type, blob in rows:
            try:
                found[site, page_type] = _counts(blob)
            except msgspec.MsgspecError as error:
                log.warning("the size norms of %s cannot be read: %s", site, error)
        return found

    def _end(self, site: str, now: float) -> int:
        return self._connection.execute(
            "UPDATE overrides SET until = ? WHERE site = ? AND until > ?", (now, site, now)
        ).rowcount

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """One at a time, and with errors that name the file."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise HistoryError(f"cannot use the history {self._path}: {error}") from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._reading(), transaction(self._connection):
            yield
