"""The past: everything on disk as windows that an import takes back exactly, site by site, while the exporter runs."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter, itemgetter

from crawlhealth.config import HistorySettings
from crawlhealth.history import rollup, rows
from crawlhealth.history.batch import HOUR
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, merged
from crawlhealth.verdict import Verdict

MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What of the history to read: windows that begin from `since` on and before `until`, at the time `now`."""

    settings: HistorySettings
    now: float
    since: float
    until: float

    def windows(self, connection: sqlite3.Connection) -> Iterator[tuple[str, list[Slot]]]:
        """Each site with its windows, oldest first; one site is in memory at a time.

        Sums that overlap one another (a straggler beside its hour) are added up: the widest of an hour counts.
        """
        slots = heapq.merge(self._packed(connection), self._fine(connection), key=attrgetter("site"))
        for site, its in groupby(slots, key=attrgetter("site")):
            yield site, self._aligned(its)

    def verdicts(self, connection: sqlite3.Connection) -> Iterator[tuple[str, list[Verdict]]]:
        """Each site with its recorded verdicts, oldest first."""
        sites = connection.execute("SELECT DISTINCT site FROM verdicts ORDER BY site").fetchall()
        for (site,) in sites:
            found = rows.read_verdicts(connection, site, self.since)
            yield site, [verdict for verdict in found if verdict.at < self.until]

    def _packed(self, connection: sqlite3.Connection) -> Iterator[Slot]:
        query = "SELECT site, day, step FROM days WHERE day + ? > ? AND day < ? ORDER BY site, day"
        days = connection.execute(query, (rollup.DAY, self.since, self.until))
        for site, day, step in days:
            for (route, source, start), tally in rollup.read_day(connection, site, day).hours.items():
                if self.since <= start < self.until:
                    yield Slot(site=site, route=route, source=source, start=start, seconds=float(step), tally=tally)

    def _fine(self, connection: sqlite3.Connection) -> Iterator[Slot]:
        query = (
            "SELECT site, route, source, start, seconds, tally FROM minutes WHERE start >= ? AND start < ?"
            " ORDER BY site, start"
        )
        return rows.slots_of(connection.execute(query, (self.since, self.until)))

    def _aligned(self, slots: Iterator[Slot]) -> list[Slot]:
        """The slots of one site in widths that an import takes, with no two that overlap."""
        spans: dict[tuple[str, Source, float, float], list[Slot]] = {}
        for slot in slots:
            span = self._span(slot)
            spans.setdefault((slot.route, slot.source, slot.start // span * span, span), []).append(slot)
        windows: list[Slot] = []
        for (_, _, start, span), its in spans.items():
            width = span if span > HOUR else max(self._width(slot.seconds) for slot in its)
            by_start = sorted(((slot.start // width * width, slot) for slot in its), key=itemgetter(0))
            for begin, together in groupby(by_start, key=itemgetter(0)):
                parts = [slot for _, slot in together]
                tally = parts[0].tally if len(parts) == 1 else merged(slot.tally for slot in parts)
                assert start <= begin < start + span, "a width fills its span"
                windows.append(replace(its[0], start=begin, seconds=width, tally=tally))
        return sorted(windows, key=attrgetter("start", "route", "source", "seconds"))

    def _span(self, slot: Slot) -> float:
        """Within what time sums must not overlap: an hour; a day where only days are kept."""
        kept = (self.now - self.settings.keep_hours.total_seconds()) // rollup.DAY * rollup.DAY
        return rollup.DAY if slot.seconds > HOUR or slot.start < kept else HOUR

    def _width(self, seconds: float) -> float:
        known = (self.settings.resolution.total_seconds(), MINUTE, HOUR)
        return seconds if seconds in known else MINUTE if seconds < MINUTE else HOUR
