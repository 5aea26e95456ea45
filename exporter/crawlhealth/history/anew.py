"""Windows made anew, from the slots on disk and the resets between them."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain, islice

from crawlhealth.history import rollup, rows
from crawlhealth.history.contents import CLOCK_SLACK
from crawlhealth.history.resets import Reset
from crawlhealth.tally import Slot
from crawlhealth.windows import NOTHING, Resets, Windows

REACH = 8
"""Half-lives after which a slot is left out when windows are made anew: it would count 0.4 %."""
AT_ONCE = 10_000


def fill(windows: Windows, connection: sqlite3.Connection, now: float, resets: Iterable[Reset]) -> None:
    """Add all slots on disk to empty windows. Raises sqlite3.Error and ValueError, as `fill_site` does."""
    since = now - REACH * windows.half_lives[-1]
    _add(windows, chain(rollup.read_all_hours(connection, since), rows.read_all_slots(connection, since)), now, resets)


def fill_site(windows: Windows, connection: sqlite3.Connection, site: str, now: float, resets: Iterable[Reset]) -> None:
    """Make one site's windows anew."""
    since = now - REACH * windows.half_lives[-1]
    windows.forget(site)
    found = chain(rollup.read_hours(connection, site, since), rows.read_slots(connection, site, since))
    _add(windows, found, now, [one for one in resets if one.site == site])


def window_of(half_life: float, half_lives: Sequence[float]) -> int:
    """The window that a reset left as it was: the longest that is not longer than its own, else the shortest."""
    return max(0, bisect_right(half_lives, half_life) - 1) if half_life else NOTHING


def _add(windows: Windows, slots: Iterable[Slot], now: float, resets: Iterable[Reset]) -> None:
    """Add slots and resets that are not from the future: a clock was wrong then."""
    latest = now + CLOCK_SLACK
    between = _by_site([one for one in resets if one.at <= latest], windows.half_lives)
    iterator = (slot for slot in slots if slot.start <= latest)
    while piece := list(islice(iterator, AT_ONCE)):
        windows.add(piece, between)


def _by_site(resets: Iterable[Reset], half_lives: Sequence[float]) -> Resets:
    found: dict[str, list[tuple[float, int]]] = {}
    for one in sorted(resets, key=lambda one: one.at):
        found.setdefault(one.site, []).append((one.at, window_of(one.half_life, half_lives)))
    return found
