"""Rows of the history to and from Python: everything but the roll-up."""

from __future__ import annotations

import json
import logging
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from crawlhealth.history import incidents, journal
from crawlhealth.history.batch import SlotKey
from crawlhealth.history.committed import CounterKey, RunKey, StoredRun, Timings
from crawlhealth.history.contents import Contents
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, pack, unpack
from crawlhealth.verdict import Verdict

log = logging.getLogger(__name__)

_encode = msgspec.msgpack.Encoder().encode
_run = msgspec.msgpack.Decoder(StoredRun).decode
_verdict = msgspec.msgpack.Decoder(Verdict).decode
_timings = msgspec.msgpack.Decoder(Timings).decode


def load(connection: sqlite3.Connection) -> Contents:
    """The contents of the database. Raises ValueError or sqlite3.Error where sums cannot be read.

    A run or verdict of another version that cannot be read any more is left out with a message: the next replaces it.
    """
    row = connection.execute("SELECT value FROM meta WHERE name = 'committed_at'").fetchone()
    return Contents(
        totals={
            (site, route, Source(source)): unpack(blob)
            for site, route, source, blob in connection.execute("SELECT site, route, source, tally FROM totals")
        },
        last={
            (site, Source(source)): at for site, source, at in connection.execute("SELECT site, source, at FROM last")
        },
        counters={
            (name, tuple(json.loads(labels))): value
            for name, labels, value in connection.execute("SELECT name, labels, value FROM counters")
        },
        timings={
            (name, tuple(json.loads(labels))): _timings(blob)
            for name, labels, blob in connection.execute("SELECT name, labels, value FROM timings")
        },
        runs=_load_runs(connection),
        states=_load_states(connection),
        imported=journal.imported(connection, 0),
        baselines=journal.read_baselines(connection),
        begun=incidents.read_latest(connection),
        generation=generation(connection),
        sequence=journal.sequence(connection),
        at=row[0] if row else None,
    )


def _load_runs(connection: sqlite3.Connection) -> dict[RunKey, StoredRun]:
    runs: dict[RunKey, StoredRun] = {}
    for site, canary, route, blob in connection.execute("SELECT site, canary, route, run FROM runs"):
        try:
            runs[site, canary, route] = _run(blob)
        except msgspec.MsgspecError as error:
            log.warning("the last run of %s/%s through %s cannot be read: %s", site, canary, route, error)
    return runs


def _load_states(connection: sqlite3.Connection) -> dict[str, Verdict]:
    states: dict[str, Verdict] = {}
    for site, blob in connection.execute("SELECT site, verdict FROM states"):
        try:
            states[site] = _verdict(blob)
        except msgspec.MsgspecError as error:
            log.warning("the last verdict on %s cannot be read: %s", site, error)
    return states


_SITE_SINCE = """
WITH RECURSIVE starts(start) AS (
    SELECT min(start) FROM minutes WHERE start >= ?1 AND start < ?2
    UNION ALL
    SELECT (SELECT min(start) FROM minutes WHERE start > starts.start AND start < ?2) FROM starts
    WHERE starts.start IS NOT NULL
)
SELECT m.site, m.route, m.source, m.start, m.seconds, m.tally FROM starts CROSS JOIN minutes AS m
WHERE m.start = starts.start AND m.site = ?3
"""
"""Looks once for every start there is: the rows lie by start, and those of one site are few among them."""


def read_slots(connection: sqlite3.Connection, site: str, since: float, until: float = math.inf) -> Iterator[Slot]:
    """The fine slots of one site that began from `since` until before `until`.

    Raises ValueError where they cannot be read.
    """
    return slots_of(connection.execute(_SITE_SINCE, (since, until, site)).fetchall())


def read_all_slots(connection: sqlite3.Connection, since: float) -> Iterator[Slot]:
    """The fine slots of all sites that began at `since` or later, oldest first. Raises ValueError like `read_slots`."""
    query = "SELECT site, route, source, start, seconds, tally FROM minutes WHERE start >= ? ORDER BY start"
    return slots_of(connection.execute(query, (since,)))


def read_present(connection: sqlite3.Connection, keys: Iterable[SlotKey]) -> dict[SlotKey, Slot]:
    """Those of these fine slots that are on disk."""
    query = (
        "SELECT site, route, source, start, seconds, tally FROM minutes"
        " WHERE start = ? AND site = ? AND route = ? AND source = ?"
    )
    return {
        (slot.site, slot.route, slot.source, slot.start): slot
        for site, route, source, start in keys
        for slot in slots_of(connection.execute(query, (start, site, route, source.value)))
    }


def slots_of(found: Iterable[tuple[str, str, str, float, float, bytes]]) -> Iterator[Slot]:
    """The fine slots of rows: site, route, source, start, seconds, tally. Raises ValueError for one that is none."""
    for site, route, source, start, seconds, blob in found:
        yield Slot(site=site, route=route, source=Source(source), start=start, seconds=seconds, tally=unpack(blob))


def generation(connection: sqlite3.Connection) -> int:
    """How often rows were replaced from outside."""
    value: int = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()[0]
    return value


def put_slots(connection: sqlite3.Connection, slots: Iterable[Slot]) -> None:
    """Write fine slots, each in place of what was there."""
    connection.executemany(
        "INSERT OR REPLACE INTO minutes (start, site, route, source, seconds, tally) VALUES (?, ?, ?, ?, ?, ?)",
        ((s.start, s.site, s.route, s.source.value, s.seconds, pack(s.tally)) for s in slots),
    )


def put_contents(connection: sqlite3.Connection, changed: Contents, verdicts: Iterable[Verdict], now: float) -> None:
    """Write everything that has changed, each row in place of what was there."""
    put_slots(connection, changed.slots)
    execute = connection.executemany
    execute(
        "INSERT OR REPLACE INTO totals VALUES (?, ?, ?, ?)",
        ((site, route, source.value, pack(tally)) for (site, route, source), tally in changed.totals.items()),
    )
    execute(
        "INSERT OR REPLACE INTO last VALUES (?, ?, ?)",
        ((site, source.value, at) for (site, source), at in changed.last.items()),
    )
    execute("INSERT OR REPLACE INTO counters VALUES (?, ?, ?)", _labelled(changed.counters))
    execute(
        "INSERT OR REPLACE INTO timings VALUES (?, ?, ?)",
        _labelled({key: _encode(value) for key, value in changed.timings.items()}),
    )
    execute(
        "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", ((*key, _encode(run)) for key, run in changed.runs.items())
    )
    execute("INSERT OR REPLACE INTO states VALUES (?, ?)", ((site, _encode(v)) for site, v in changed.states.items()))
    execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", ((v.site, v.at, _encode(v)) for v in verdicts))
    if changed.added:
        journal.put(connection, changed.sequence, changed.added)
    journal.put_baselines(connection, changed.baselines)
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('committed_at', ?)", (now,))


def read_verdicts(connection: sqlite3.Connection, site: str, since: float) -> Iterable[Verdict]:
    """The recorded verdicts on a site from `since` on, oldest first; one that cannot be read any more is left out."""
    rows = connection.execute("SELECT verdict FROM verdicts WHERE site = ? AND at >= ? ORDER BY at", (site, since))
    for (blob,) in rows:
        try:
            yield _verdict(blob)
        except msgspec.MsgspecError as error:
            log.warning("a verdict on %s cannot be read: %s", site, error)


def _labelled(values: Mapping[CounterKey, object]) -> Iterable[tuple[str, str, object]]:
    for (name, labels), value in values.items():
        yield name, json.dumps(labels, ensure_ascii=False), value
