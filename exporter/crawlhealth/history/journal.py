"""Journal: what each commit added to the fine slots, until a snapshot of the windows holds it; and learnt baselines.

The windows in memory are a sum over all slots, far too many to read at a start. A start reads the last snapshot and
adds what the journal says has come since.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, pack, unpack
from crawlhealth.verdict import Baseline

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[str, str, Source, float, float, bytes]]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """A baseline and what it was learnt from: it is good as long as `key` is the same, from `at` until before `due`.

    `key` names the import, what a person accepted, and the settings. None is a baseline too: there was too little.
    """

    key: str
    baseline: Baseline | None
    at: float = 0.0
    due: float = 0.0


_learnt = msgspec.msgpack.Decoder(Learnt).decode


def create(connection: sqlite3.Connection) -> None:
    """The tables, new in this version of the schema."""
    for statement in (
        "CREATE TABLE journal (sequence INTEGER PRIMARY KEY, slots BLOB)",
        "CREATE TABLE imported (site TEXT PRIMARY KEY, generation INTEGER) WITHOUT ROWID",
        "CREATE TABLE baselines (site TEXT PRIMARY KEY, learnt BLOB) WITHOUT ROWID",
        "INSERT OR REPLACE INTO meta VALUES ('sequence', 0)",
        "INSERT OR REPLACE INTO meta VALUES ('identity', hex(randomblob(16)))",
    ):
        connection.execute(statement)


def put(connection: sqlite3.Connection, sequence: int, added: Iterable[Slot]) -> None:
    """Write what the commit of this number added to slots."""
    blob = _encode([(s.site, s.route, s.source, s.start, s.seconds, pack(s.tally)) for s in added])
    connection.execute("INSERT INTO journal VALUES (?, ?)", (sequence, blob))
    connection.execute("UPDATE meta SET value = ? WHERE name = 'sequence'", (sequence,))


def read(connection: sqlite3.Connection, after: int) -> Iterator[tuple[int, list[Slot]]]:
    """Each later commit's number and what it added, in order. Raises ValueError where that cannot be read."""
    rows = connection.execute("SELECT sequence, slots FROM journal WHERE sequence > ? ORDER BY sequence", (after,))
    for number, blob in rows:
        yield (
            number,
            [
                Slot(site=site, route=route, source=source, start=start, seconds=seconds, tally=unpack(tally))
                for site, route, source, start, seconds, tally in _decode(blob)
            ],
        )


def reaches(connection: sqlite3.Connection, after: int) -> bool:
    """Whether everything that was added after the commit of this number is still there."""
    last = sequence(connection)
    count = connection.execute("SELECT count(*) FROM journal WHERE sequence > ?", (after,)).fetchone()[0]
    return after <= last and bool(count == last - after)


def prune(connection: sqlite3.Connection, *, upto: int) -> None:
    """Delete what a snapshot holds."""
    connection.execute("DELETE FROM journal WHERE sequence <= ?", (upto,))


def sequence(connection: sqlite3.Connection) -> int:
    """The number of the last commit that added to slots."""
    value: int = connection.execute("SELECT value FROM meta WHERE name = 'sequence'").fetchone()[0]
    return value


def identity(connection: sqlite3.Connection) -> str:
    """What tells this database from every other."""
    value: str = connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()[0]
    return value


def imported(connection: sqlite3.Connection, after: int) -> dict[str, int]:
    """The sites with rows that were replaced from outside after a generation, and the generation of the last time."""
    return dict(connection.execute("SELECT site, generation FROM imported WHERE generation > ?", (after,)))


def put_baselines(connection: sqlite3.Connection, baselines: Mapping[str, Learnt]) -> None:
    """Keep baselines by site."""
    connection.executemany(
        "INSERT OR REPLACE INTO baselines VALUES (?, ?)", ((site, _encode(one)) for site, one in baselines.items())
    )


def read_baselines(connection: sqlite3.Connection) -> dict[str, Learnt]:
    """The baselines kept; one that a later version cannot read is left out, and learnt again."""
    found: dict[str, Learnt] = {}
    for site, blob in connection.execute("SELECT site, learnt FROM baselines"):
        try:
            found[site] = _learnt(blob)
        except msgspec.MsgspecError:
            continue
    return found
