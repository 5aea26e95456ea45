"""Baseline: the site's own normal, learnt from its own hours of two weeks without the last day. Pure.

By the robust method it is a level of the hourly rates (the median), of hours in which the site was judged well, so that
an incident never becomes the normal by itself; by the plain one it is the ratio of summed counts. Many sites are learnt
at once: arrays have a row for each series, which is a site with all its routes together, or one of its strata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth import marks as hours_judged
from crawlhealth import season
from crawlhealth.blocks import ANSWERED, Blocks, merged
from crawlhealth.cost import per_records
from crawlhealth.dispersion import spread_and_lasting
from crawlhealth.outcome import Source
from crawlhealth.phases import EFFECTS
from crawlhealth.scoresettings import BaselineSettings
from crawlhealth.verdict import Accepted, Baseline, Rates, Spread, StratumNormal
from crawlhealth.weighted import OUTCOMES

Array = NDArray[np.float64]

HOUR: Final = 3600.0
DAY_HOURS: Final = 24
YOUNG: Final = 72
"""A history of fewer hours leaves out less than the last day."""
YOUNG_EXCLUDED: Final = 6
ACCEPTED_BLOCKS: Final = 6
"""So many blocks since a change make a normal that a person accepted."""
LEAST_SPREAD_SCORE: Final = 80
"""Hours that scored less say nothing of how the site swings; those between are left out of its level only."""
ONSET_HOURS: Final = 2
NEVER: Final = 10**9
"""In place of a number of hours."""
LEAST_SERVED: Final = 0.5
"""A first baseline that serves less waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """What came of N sites in H hours, one after another, the last of which ended at `end` (unix seconds).

    There are R strata: `keys` are their routes and sources, `owner` the places of their sites, ascending. `counts` is
    (R, H, 12) by the columns of a tally, `p95` (R, H) in seconds, NaN where nothing was timed; `marks` (N, H).
    """

    sites: Sequence[str]
    keys: Sequence[tuple[str, Source]]
    owner: NDArray[np.intp]
    counts: Array
    p95: Array
    marks: NDArray[np.uint8]
    end: float

    @property
    def starts(self) -> Array:
        """When each hour begins, unix seconds: (H)."""
        return self.end - HOUR * np.arange(self.marks.shape[1], 0, -1, dtype=np.float64)


def learn(
    hours: Hours,
    settings: BaselineSettings,
    *,
    now: float,
    robust: bool = True,
    accepted: Mapping[str, Accepted] | None = None,
    known: Sequence[Baseline | None] | None = None,
) -> list[Baseline | None]:
    """The normal of each site at `now`: with too little to learn from the one before (`known`), or None.

    A first one that serves less than half is `refused` until a person has accepted it.
    """
    before = known if known is not None else [None] * len(hours.sites)
    if not hours.marks.shape[1]:
        return list(before)
    usable = _usable(hours, settings, now, accepted or {}, before, robust=robust)
    found = _Learnt(hours, settings, usable, before, robust=robust, accepted=accepted or {})
    return [found.baseline(site, now, before[site]) for site in range(len(hours.sites))]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usable:
    """Which hours of N sites teach their level, their spread and their season: (N, H).

    In its first weeks all hours of a site teach its season: what comes back in both of them is no incident, but would
    be taken for one before there is a season.
    """

    level: NDArray[np.bool_]
    spread: NDArray[np.bool_]
    season: NDArray[np.bool_]


def _usable(
    hours: Hours,
    settings: BaselineSettings,
    now: float,
    accepted: Mapping[str, Accepted],
    known: Sequence[Baseline | None],
    *,
    robust: bool,
) -> _Usable:
    """Which hours of each site teach what: (N, H).

    How hours up to an accepted change were judged says nothing of them; nor do those after it, until what was accepted
    is the normal they are judged by.
    """
    count, starts = hours.marks.shape[1], hours.starts
    seen = _by_site(hours, _requests(hours.counts)) > 0
    first = np.where(seen.any(axis=1), seen.argmax(axis=1), count)
    excluded = round(settings.exclude_last.total_seconds() / HOUR)
    young = count - first < YOUNG
    held_back = np.where(young, min(YOUNG_EXCLUDED, excluded), excluded) * HOUR if robust else excluded * HOUR
    end = np.broadcast_to(np.asarray(now - held_back, dtype=np.float64), len(seen)).copy()
    begin = end - settings.length.total_seconds()
    judged = hours.marks.copy()
    if not robust:
        judged[:] = hours_judged.NONE
    for site, name in enumerate(hours.sites):
        change = accepted.get(name)
        if change is None:
            continue
        begin[site] = max(begin[site], change.since)
        if now - change.since < settings.length.total_seconds():
            end[site] = now
        before = known[site]
        waiting = before is None or before.accepted_at != change.at
        judged[site, (starts < change.at) | waiting] = hours_judged.NONE
    within = (starts >= begin[:, None]) & (starts + HOUR <= end[:, None])
    quiet = round(settings.quiet.total_seconds() / HOUR)
    level = hours_judged.usable(judged, least=settings.least_score, quiet_hours=quiet)
    spread = hours_judged.usable(judged, least=LEAST_SPREAD_SCORE, quiet_hours=quiet)
    ahead = _until_outside(judged)
    spread &= ahead > quiet
    first_weeks = (count - first < round(settings.reach.total_seconds() / HOUR))[:, None]
    first_weeks = first_weeks & (judged != hours_judged.RESTING)
    return _Usable(
        level=within & level & (ahead > ONSET_HOURS), spread=within & spread, season=within & (spread | first_weeks)
    )


def _until_outside(judged: NDArray[np.uint8]) -> NDArray[np.intp]:
    """How many hours after each the next bad band was: it may have begun in them, though the score did not tell yet.

    A few hours of an incident are nothing to a level, but much to the dispersion of a calm site, which would then
    explain all the rest.
    """
    hours = np.arange(judged.shape[1])
    later = np.where(judged == hours_judged.OUTSIDE, hours, NEVER)
    found: NDArray[np.intp] = np.minimum.accumulate(later[:, ::-1], axis=1)[:, ::-1] - hours
    return found


def _by_site(hours: Hours, values: Array) -> Array:
    """The sums of what strata have, by site."""
    if len(hours.owner) == len(hours.sites) and np.array_equal(hours.owner, np.arange(len(hours.sites))):
        return values
    found = np.zeros((len(hours.sites), *values.shape[1:]))
    if len(hours.owner):
        starts = np.flatnonzero(np.diff(hours.owner, prepend=-1))
        found[hours.owner[starts]] = np.add.reduceat(values, starts, axis=0)
    return found


def _requests(counts: Array) -> Array:
    found: Array = counts[..., 0] + counts[..., 1]
    for column in range(2, OUTCOMES):
        found += counts[..., column]
    return found


def _summed(counts: Array, usable: NDArray[np.bool_]) -> Array:
    """The sums of the usable hours of each series, by column."""
    found: Array = (usable[:, None, :].astype(np.float64) @ counts)[:, 0]
    return found


class _Learnt:
    """What was learnt of many sites, in arrays."""

    def __init__(
        self,
        hours: Hours,
        settings: BaselineSettings,
        usable: _Usable,
        known: Sequence[Baseline | None],
        *,
        robust: bool,
        accepted: Mapping[str, Accepted],
    ) -> None:
        self._hours, self._settings, self._robust, self._accepted = hours, settings, robust, accepted
        level = self._level = usable.level
        counts, owner = hours.counts, hours.owner
        total = self._total = _by_site(hours, counts)
        p95 = _together(hours)
        least, whole = (settings.min_requests, ANSWERED) if robust else (1, OUTCOMES)
        traffic = np.array([source is Source.TRAFFIC for _, source in hours.keys], dtype=np.bool_)
        self._sums = paid = _summed(total, level)
        if not traffic.all():
            paid = _summed(_by_site(hours, np.where(traffic[:, None, None], counts, 0.0)), level)
        self._costs = per_records(paid)
        self._used = level & (_requests(total) > 0)
        self._blocks = merged(total, p95, level, least=least, whole=whole)
        several = np.bincount(owner, minlength=len(total)) > 1
        self._own = np.flatnonzero(several[owner])
        self._strata = merged(
            counts[self._own], hours.p95[self._own], level[owner[self._own]], least=least, whole=whole
        )
        self._latency, self._row_latency = (each.latencies(settings.level) for each in (self._blocks, self._strata))
        if robust:
            self._effects = self._season(total, usable.season, known)
            blocks, moved = self._blocks, None
            if self._effects[:, :-1].any():
                blocks = replace(blocks, shares=season.without(blocks.shares, self._effects, hours.starts))
                moved = season.at_hours(self._effects, blocks.levels(settings.level), hours.starts)
            self._rates = blocks.levels(settings.level)
            self._row_rates = self._strata.levels(settings.level)
            self._spread, self._lasting = spread_and_lasting(total, p95, usable.spread, least=least, season=moved)
        else:
            self._effects = np.zeros((len(total), ANSWERED + 1, EFFECTS))
            self._rates, self._row_rates = self._blocks.means(), self._strata.means()
            self._spread = self._lasting = np.zeros((len(total), 5))

    def _season(self, total: Array, usable: NDArray[np.bool_], known: Sequence[Baseline | None]) -> Array:
        """The effects of the hour and the day on each site."""
        shape = (len(total), ANSWERED + 1, EFFECTS)
        if self._settings.season == "none" or not usable.any():
            return np.zeros(shape)
        hostile = total[..., 1:ANSWERED].transpose(0, 2, 1)
        hostile = np.concatenate([hostile, hostile.sum(axis=1, keepdims=True)], axis=1)
        answered = total[..., 0] + hostile[:, -1]
        effects = np.zeros(shape)
        for site, one in enumerate(known):
            if one is not None and one.season:
                effects[site] = season.unpacked(one.season)
        return season.fitted(
            answered, hostile, usable & (answered > 0), self._hours.starts, known=effects, longest=self._settings.season
        )

    def baseline(self, site: int, now: float, known: Baseline | None) -> Baseline | None:
        """The normal of one site."""
        change = self._accepted.get(self._hours.sites[site])
        if not self._enough(self._blocks, site, accepted=change is not None):
            return known
        hours = np.flatnonzero(self._used[site])
        tallies = self._sums[site]
        rates = _rates(self._rates[site], float(self._latency[site]), tallies)
        first = known is None or known.refused
        return Baseline(
            hours=len(hours),
            newest=self._hours.end - HOUR * (self._level.shape[1] - 1 - int(hours[-1])),
            rates=rates,
            cost=self._costs[site],
            strata=self._strata_of(site) if self._robust else (),
            spread=_spread(self._spread[site]),
            lasting=_spread(self._lasting[site]),
            season=self._kept(site),
            learnt_at=now,
            accepted_at=change.at if change is not None else None,
            refused=self._robust and first and change is None and rates.refused > 1 - LEAST_SERVED,
        )

    def _kept(self, site: int) -> bytes:
        """The season of a site as a Baseline has it."""
        effects = self._effects[site]
        return season.packed(effects) if effects[:-1].any() else b""

    def _enough(self, blocks: Blocks, place: int, *, accepted: bool) -> bool:
        """Whether a series has enough blocks, days and requests."""
        settings = self._settings
        number = int(blocks.number[place])
        if accepted:
            return number >= ACCEPTED_BLOCKS
        if not self._robust:
            return number >= settings.min_blocks
        enough = number >= settings.min_blocks or (
            number >= settings.min_days and int(blocks.days[place]) >= settings.min_days
        )
        return enough and float(blocks.total[place]) >= settings.min_total

    def _strata_of(self, site: int) -> tuple[StratumNormal, ...]:
        change = self._hours.sites[site] in self._accepted
        found = []
        for place in np.flatnonzero(self._hours.owner[self._own] == site).tolist():
            if self._enough(self._strata, place, accepted=change):
                route, source = self._hours.keys[self._own[place]]
                rates = _rates(self._row_rates[place], float(self._row_latency[place]), None)
                found.append(StratumNormal(route=route, source=source.value, rates=rates))
        return tuple(found)


def _together(hours: Hours) -> Array:
    """The latency of all strata of a site, hour by hour: the geometric mean of their p95 by what each served."""
    served = np.where(np.isnan(hours.p95), 0.0, hours.counts[..., 0])
    logs = np.where(served > 0, np.log(np.where(served > 0, hours.p95, 1.0)), 0.0)
    weighed, total = _by_site(hours, logs * served), _by_site(hours, served)
    return np.where(total > 0, np.exp(weighed / np.where(total > 0, total, 1.0)), np.nan)


def _rates(shares: Array, latency: float, tallies: Array | None) -> Rates:
    hard_block, challenge, soft_block, together = shares.tolist()
    tried = 0.0 if tallies is None else float(tallies[5] + tallies[6])
    return Rates(
        hard_block=hard_block,
        challenge=challenge,
        soft_block=soft_block,
        latency_p95=None if np.isnan(latency) else latency,
        extraction=float(tallies[6]) / tried if tallies is not None and tried > 0 else None,
        together=together,
    )


def _spread(deviations: Array) -> Spread:
    hard_block, challenge, soft_block, refused, latency = deviations.tolist()
    return Spread(hard_block=hard_block, challenge=challenge, soft_block=soft_block, refused=refused, latency=latency)
