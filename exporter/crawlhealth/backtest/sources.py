"""Sources: where the past of real sites comes from, and what it is told as."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from crawlhealth.backtest import working
from crawlhealth.backtest.labelled import Labelled
from crawlhealth.backtest.past import Span, Tried, pieces, replayed, within
from crawlhealth.backtest.stays import Outcome
from crawlhealth.config import Config
from crawlhealth.history import HistoryError, reading, span
from crawlhealth.traffic.importing import stretches_of
from crawlhealth.traffic.windows import Problem

Progress = Callable[[int, str], AbstractContextManager[working.Told]]
"""Tells how far so many steps of something are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What of the past is asked for: all sites where none is named, all time where none is given."""

    sites: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    seconds: float = 3600.0
    processes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of each configuration, by its name, from `since` until `until`."""

    outcomes: Mapping[str, Outcome]
    since: float
    until: float

    def covers(self, window: Labelled) -> bool:
        """Whether some of a window lies in this time."""
        return window.start < self.until and window.end > self.since


def stored(path: Path, config: Config, tried: Mapping[str, Tried], asked: Asked, *, progress: Progress) -> Told:
    """What came of a stored history, which is only read. Raises HistoryError."""
    sites = asked.sites or tuple(config.sites)
    with reading(path) as connection:
        known = span(connection, sites)
    if known is None:
        raise HistoryError(f"{path}: nothing of {'these sites' if asked.sites else 'any configured site'}")
    wanted = _span(asked, tried, *known)
    todo = pieces(path, sites, tried, wanted)
    with progress(sum(piece.steps for piece in todo), "replaying") as told:
        parts = list(working.each(todo, told, processes=asked.processes))
    outcomes = {name: Outcome.together(part[name] for part in parts) for name in tried}
    return Told(outcomes=outcomes, since=wanted.since, until=wanted.until)


def imported(
    lines: Iterable[bytes],
    config: Config,
    tried: Mapping[str, Tried],
    asked: Asked,
    *,
    problem: Callable[[Problem], object],
) -> Told:
    """What came of a file of windows, in one process. Raises HistoryError."""
    given = stretches_of(lines, config, problem=problem, seconds=asked.seconds)
    first = next(given, None)
    if first is None:
        raise HistoryError("there is no window in the file that could be taken")
    wanted = _span(asked, tried, first.start, math.inf)
    outcomes = replayed(
        within(chain([first], given), wanted), tried, wanted, only=frozenset(asked.sites) or None, told=lambda _: None
    )
    ends = [one.until for one in outcomes.values() if one.until is not None]
    return Told(outcomes=outcomes, since=wanted.since, until=min(wanted.until, max(ends, default=wanted.since)))


def _span(asked: Asked, tried: Mapping[str, Tried], first: float, last: float) -> Span:
    """What is told of what lies between two times. Raises HistoryError where nothing of it was asked for."""
    since = first if asked.since is None else max(first, asked.since)
    until = last if asked.until is None else min(last, asked.until)
    if until <= since:
        raise HistoryError("there is nothing of that time")
    begin = max(first, since - max(one.reach for one in tried.values()))
    return Span(begin=begin, since=since, until=until, seconds=asked.seconds)
