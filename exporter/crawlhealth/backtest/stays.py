"""Stays: what a replay found, as stays of a site outside normal, and how often there was anything. Pure.

A stay is what the running exporter calls an incident. What canaries alone lead to, and planned work, is no part of the
counts that are replayed, so it is no part of this either; a stay that begins in planned work is left out, as there.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from crawlhealth.bands import DEGRADING, RESISTING, UNKNOWN
from crawlhealth.config import Maintenance
from crawlhealth.evaluate import Judged
from crawlhealth.maintenance import under_maintenance
from crawlhealth.score import MIN_REASON_POINTS
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.verdict import Band, Signal

WARNING_HOLDS: Final = 6 * 3600.0
"""Seconds: an early warning is over after so long without one, as its alert has it."""
WEEK: Final = 7 * 86400.0
SIGNALS: Final = (Signal.HARD_BLOCK, Signal.CHALLENGE, Signal.SOFT_BLOCK, Signal.LATENCY, Signal.REFUSED_CAP)
"""The order of points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """One stay of a site outside normal; `end` is None where it lasts, `worst_score` where it was held without one.

    `first_reason` is the signal that cost most when the band left normal; the refused cap only where it stands alone.
    """

    site: str
    start: float
    end: float | None
    worst_score: int | None
    worst_band: Band
    first_reason: Signal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one configuration made of some sites: their stays, early warnings that began, and site-weeks judged.

    It was judged until `until` (unix seconds); None where nothing came.
    """

    stays: tuple[Stay, ...] = ()
    warnings: int = 0
    site_weeks: float = 0.0
    until: float | None = None

    @classmethod
    def together(cls, several: Iterable[Outcome]) -> Outcome:
        """That of several groups of sites; stays in the order of time."""
        given = list(several)
        stays = sorted((stay for one in given for stay in one.stays), key=lambda stay: (stay.start, stay.site))
        return cls(
            stays=tuple(stays),
            warnings=sum(one.warnings for one in given),
            site_weeks=sum(one.site_weeks for one in given),
            until=max((one.until for one in given if one.until is not None), default=None),
        )


class Stays:
    """Follows sites from step to step; only what comes after `since` counts, and stays that last then.

    Of all `sites` only those of `told` count, where any are named.
    """

    def __init__(
        self,
        sites: Sequence[str],
        settings: ScoreSettings,
        *,
        since: float = -math.inf,
        maintenance: tuple[Maintenance, ...] = (),
        told: Container[str] | None = None,
    ) -> None:
        count = len(sites)
        self._told = np.array([told is None or site in told for site in sites], dtype=np.bool_)
        self._until: float | None = None
        self._sites, self._settings, self._since, self._maintenance = sites, settings, since, maintenance
        self._outside = np.zeros(count, dtype=np.bool_)
        self._resisting = np.zeros(count, dtype=np.bool_)
        self._worst = np.full(count, np.nan)
        self._begun: dict[int, tuple[float, Signal | None]] = {}
        self._stays: list[Stay] = []
        self._warned = np.full(count, -np.inf)
        self._warnings = 0
        self._seconds = 0.0

    def take(self, judged: Judged, seconds: float) -> None:
        """One more step, so many seconds wide."""
        band = judged.states.band
        resisting = band == RESISTING
        outside = (resisting | (band == DEGRADING)) & self._told
        self._until = judged.at
        moved = np.flatnonzero(outside != self._outside).tolist()
        for place in moved:
            if outside[place]:
                self._begin(place, judged)
            else:
                self._end(place, judged.at)
        self._worst = np.where(outside, np.fmin(self._worst, judged.score), np.nan)
        self._resisting = outside & (self._resisting | resisting)
        self._outside = outside
        drift = np.fmax.reduce(judged.scored.drift, axis=1)
        on = np.flatnonzero((drift >= self._settings.drift_threshold) & self._told)
        if judged.at > self._since:
            self._warnings += int((judged.at - self._warned[on] > WARNING_HOLDS).sum())
            self._seconds += float(((band != UNKNOWN) & self._told).sum()) * seconds
        self._warned[on] = judged.at

    def outcome(self) -> Outcome:
        """All of it; what is still open lasts."""
        last = [self._stay(place, None) for place in self._begun]
        return Outcome(
            stays=tuple(stay for stay in (*self._stays, *last) if stay is not None),
            warnings=self._warnings,
            site_weeks=self._seconds / WEEK,
            until=self._until,
        )

    def _begin(self, place: int, judged: Judged) -> None:
        site = self._sites[place]
        if not under_maintenance(self._maintenance, site, judged.at):
            self._begun[place] = judged.at, _first_reason(judged.scored.points[place].tolist())

    def _end(self, place: int, at: float) -> None:
        stay = self._stay(place, at)
        self._begun.pop(place, None)
        if stay is not None:
            self._stays.append(stay)

    def _stay(self, place: int, end: float | None) -> Stay | None:
        begun = self._begun.get(place)
        if begun is None or (end is not None and end <= self._since):
            return None
        worst = self._worst[place]
        return Stay(
            site=self._sites[place],
            start=begun[0],
            end=end,
            worst_score=None if np.isnan(worst) else int(worst),
            worst_band=Band.RESISTING if self._resisting[place] else Band.DEGRADING,
            first_reason=begun[1],
        )


def _first_reason(points: Sequence[float]) -> Signal | None:
    """The dearest signal of at least a point; the refused cap only where it stands alone."""
    dear = [(-cost, place) for place, cost in enumerate(points) if cost >= MIN_REASON_POINTS]
    signals = [SIGNALS[place] for _, place in sorted(dear)]
    return next((signal for signal in signals if signal is not Signal.REFUSED_CAP), signals[0] if signals else None)
