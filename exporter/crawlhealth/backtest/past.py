"""Past: the history of real sites, stored or imported, replayed with one configuration or with two."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final

from crawlhealth.backtest.stays import Outcome, Stays
from crawlhealth.backtest.working import Counted, Told
from crawlhealth.config import Maintenance
from crawlhealth.history import past_accepted, reading, stretches
from crawlhealth.replay import Replay
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.stretch import Stretch
from crawlhealth.verdict import Accepted

TOGETHER: Final = 50
"""So many sites are replayed at once."""

Outcomes = Mapping[str, Outcome]
"""What came of each configuration, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A configuration that is tried."""

    settings: ScoreSettings
    maintenance: tuple[Maintenance, ...] = ()

    @property
    def reach(self) -> float:
        """How many seconds before the first that is told a replay has to begin, for its baselines."""
        baseline = self.settings.baseline
        return (baseline.reach + baseline.quiet).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What is told: from `since` until before `until`, in steps of `seconds`; read is from `begin` on."""

    begin: float
    since: float
    until: float
    seconds: float

    @property
    def steps(self) -> int:
        """How many steps that is."""
        return max(0, round((self.until - self.begin) / self.seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Some sites of a stored history: a piece of work that needs nothing of the others."""

    path: Path
    sites: tuple[str, ...]
    tried: Mapping[str, Tried]
    span: Span

    @property
    def steps(self) -> int:
        """How many steps are judged, by all configurations together."""
        return self.span.steps * len(self.tried)

    def done(self, told: Told) -> Outcomes:
        """Replay them. Raises HistoryError."""
        with reading(self.path) as connection:
            accepted = past_accepted(connection)
            given = stretches(connection, self.sites, self.span.begin, self.span.until, seconds=self.span.seconds)
            return replayed(given, self.tried, self.span, sites=self.sites, accepted=accepted, told=told)


def pieces(path: Path, sites: Sequence[str], tried: Mapping[str, Tried], span: Span) -> list[Stored]:
    """The sites of a stored history in pieces."""
    return [
        Stored(path=path, sites=tuple(sites[first : first + TOGETHER]), tried=tried, span=span)
        for first in range(0, len(sites), TOGETHER)
    ]


def replayed(
    given: Iterable[Stretch],
    tried: Mapping[str, Tried],
    span: Span,
    *,
    sites: Sequence[str] = (),
    accepted: Mapping[str, Accepted] | None = None,
    only: Container[str] | None = None,
    told: Told,
) -> dict[str, Outcome]:
    """What each configuration makes of the same stretches, one after another.

    `sites` are all that may come; those of the first stretch where none are named. Of those that come, `only` some are
    told, where these are named. What people have accepted counts from when they did.
    """
    counted = Counted(told)
    following: dict[str, _Following] = {}
    for stretch in given:
        for name, one in tried.items():
            if name not in following:
                following[name] = _Following(stretch, one, span, sites=sites, accepted=accepted or {}, only=only)
            following[name].take(stretch, counted)
    counted.rest()
    return {name: following[name].stays.outcome() if name in following else Outcome() for name in tried}


class _Following:
    """One replay and what it finds."""

    def __init__(
        self,
        stretch: Stretch,
        tried: Tried,
        span: Span,
        *,
        sites: Sequence[str],
        accepted: Mapping[str, Accepted],
        only: Container[str] | None,
    ) -> None:
        self._replay = Replay(stretch.keys, tried.settings, seconds=span.seconds, sites=sites)
        known = set(self._replay.sites)
        self._waiting = sorted((one for one in accepted.values() if one.site in known), key=attrgetter("at"))
        self._span = span
        self.stays = Stays(
            self._replay.sites, tried.settings, since=span.since, maintenance=tried.maintenance, told=only
        )

    def take(self, stretch: Stretch, counted: Counted) -> None:
        for judged in self._replay.steps(stretch):
            counted.one_more()
            if judged.at - stretch.seconds < self._span.until:
                self.stays.take(judged, stretch.seconds)
            while self._waiting and self._waiting[0].at <= judged.at:
                self._replay.accept(self._waiting.pop(0))


def within(given: Iterable[Stretch], span: Span) -> Iterator[Stretch]:
    """Those of some stretches that may matter for a span; none is read after it."""
    for stretch in given:
        if stretch.start >= span.until:
            return
        if stretch.start + stretch.steps * stretch.seconds > span.begin:
            yield stretch
