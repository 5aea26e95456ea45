"""Import: windows from before the first day, also while an exporter writes the same file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from crawlhealth.config import HistorySettings
from crawlhealth.history import rollup, rows
from crawlhealth.history.batch import HOUR
from crawlhealth.history.database import HistoryError, open_undamaged, transaction
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally, pack, unpack

DAYS_AT_ONCE = 100
"""Sites' days written in one transaction, so that a running exporter never waits long."""


def import_windows(path: Path, settings: HistorySettings, slots: Iterable[Slot], *, now: float) -> int:
    """Bring slots into the history at `path`, each in place of what was there; how many were taken.

    Replaced are all rows of the same site, route and source that a slot overlaps, whatever their width, so that no time
    counts twice; of slots that overlap one another the finer ones count. Those older than `keep_minutes` are summed to
    their hour, so that all of an hour's minutes belong into one import. No counter moves. `slots` must be aligned to
    their width: a day for days older than `keep_hours`, at most an hour for later ones. A running exporter notices at
    its next commit or evaluation. Raises HistoryError; what was written by then stays, and it may be imported again.
    """
    try:
        with closing(open_undamaged(path, now=now)) as connection:
            kept = (now - settings.keep_hours.total_seconds()) // rollup.DAY * rollup.DAY
            taken = gather(connection, slots, oldest=kept)
            fine_from = (now - settings.keep_minutes.total_seconds()) // HOUR * HOUR
            days = connection.execute("SELECT DISTINCT site, day FROM incoming ORDER BY site, day").fetchall()
            for first in range(0, len(days), DAYS_AT_ONCE):
                some = days[first : first + DAYS_AT_ONCE]
                with transaction(connection):
                    _clear(connection, some[0], some[-1], fine_from)
                    for site, day in some:
                        _replace(connection, site, day, fine_from)
                    connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'generation'")
                    connection.executemany(
                        "INSERT OR REPLACE INTO imported SELECT ?, value FROM meta WHERE name = 'generation'",
                        ((site,) for site in {site for site, _ in some}),
                    )
            return taken
    except (sqlite3.Error, ValueError) as error:
        raise HistoryError(f"cannot import into the history {path}: {error}") from error


def gather(connection: sqlite3.Connection, slots: Iterable[Slot], *, oldest: float) -> int:
    """Put the slots, in any order, where they can be read by site and day: a temporary table `incoming`; how many.

    A later one replaces its like, and of slots that overlap one another the finer ones stay. Raises ValueError for
    one of less than a day that is older than `oldest`.
    """
    taken = 0

    def counted() -> Iterator[tuple[object, ...]]:
        nonlocal taken
        for slot in slots:
            if slot.seconds < rollup.DAY and slot.start < oldest:
                raise ValueError(f"a window of {slot.site} is older than what is kept")
            taken += 1
            day = slot.start // rollup.DAY * rollup.DAY
            yield slot.site, day, slot.route, slot.source.value, slot.start, slot.seconds, pack(slot.tally)

    connection.execute(
        "CREATE TEMP TABLE incoming (site TEXT, day REAL, route TEXT, source TEXT, start REAL, seconds REAL,"
        " tally BLOB, PRIMARY KEY (site, day, route, source, start, seconds)) WITHOUT ROWID"
    )
    with transaction(connection, "BEGIN"):
        connection.executemany("INSERT OR REPLACE INTO incoming VALUES (?, ?, ?, ?, ?, ?, ?)", counted())
        connection.execute(
            "DELETE FROM incoming AS wide WHERE EXISTS (SELECT 1 FROM incoming AS fine WHERE fine.site = wide.site"
            " AND fine.day = wide.day AND fine.route = wide.route AND fine.source = wide.source"
            " AND fine.start > wide.start - wide.seconds AND fine.start < wide.start + wide.seconds"
            " AND fine.seconds < wide.seconds AND fine.start + fine.seconds > wide.start)"
        )
    return taken


def _clear(connection: sqlite3.Connection, first: tuple[str, float], last: tuple[str, float], since: float) -> None:
    """Delete the fine rows from `since` on that a slot overlaps, of the sites' days from `first` to `last`."""
    connection.execute(
        "DELETE FROM minutes WHERE start >= ? AND (site, start) >= (?, ?) AND (site, start) < (?, ?)"
        " AND EXISTS (SELECT 1 FROM incoming AS i WHERE i.site = minutes.site"
        " AND i.day = CAST(minutes.start / ? AS INTEGER) * ? AND i.route = minutes.route AND i.source = minutes.source"
        " AND i.start > minutes.start - ? AND i.start < minutes.start + minutes.seconds"
        " AND i.start + i.seconds > minutes.start)",
        (since, *first, last[0], last[1] + rollup.DAY, rollup.DAY, rollup.DAY, HOUR),
    )


def _replace(connection: sqlite3.Connection, site: str, day: float, fine_from: float) -> None:
    """Put one site's day of incoming slots in place of what is there."""
    packed = rollup.read_day(connection, site, day)
    hours: dict[tuple[str, Source, float], Tally] = {}
    summed: dict[tuple[str, Source, float], Tally] = {}
    fine: list[Slot] = []
    whole: rollup.Hours = {}
    for slot in _incoming(connection, site, day):
        key = (slot.route, slot.source, slot.start // HOUR * HOUR)
        if slot.seconds >= rollup.DAY:
            whole[slot.route, slot.source, day] = slot.tally
        elif slot.seconds >= HOUR:
            hours[key] = slot.tally
        elif slot.start < fine_from:
            summed.setdefault(key, Tally()).merge(slot.tally)
        else:
            fine.append(slot)
    for key, tally in (hours | summed).items():
        if packed.step >= rollup.DAY:  # kept as a whole already, under other settings
            whole.setdefault((key[0], key[1], day), Tally()).merge(tally)
        else:
            packed.hours[key] = tally
        connection.execute(
            "DELETE FROM minutes WHERE start >= ? AND start < ? AND site = ? AND route = ? AND source = ?",
            (key[2], key[2] + HOUR, site, key[0], key[1].value),
        )
    connection.executemany(
        "DELETE FROM minutes WHERE start >= ? AND start < ? AND site = ? AND route = ? AND source = ?",
        ((day, day + rollup.DAY, site, route, source.value) for route, source, _ in whole),
    )
    for slot in fine:
        packed.hours.pop((slot.route, slot.source, slot.start // HOUR * HOUR), None)
    rows.put_slots(connection, fine)
    rollup.put_day(connection, site, day, rollup.folded(packed, day, whole) if whole else packed)


def _incoming(connection: sqlite3.Connection, site: str, day: float) -> Iterator[Slot]:
    for route, source, start, seconds, tally in connection.execute(
        "SELECT route, source, start, seconds, tally FROM incoming WHERE site = ? AND day = ?", (site, day)
    ):
        yield Slot(site=site, route=route, source=Source(source), start=start, seconds=seconds, tally=unpack(tally))
