"""Review: how good the judgement was over a period, from its incidents, their labels and the traffic then. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from crawlhealth.incident import Incident
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, merged
from crawlhealth.verdict import IncidentLabel, Signal

HOUR: Final = 3600.0
DAY: Final = 86_400.0
MARGIN: Final = 0.1
"""Advice was obeyed when the traffic, as a share of before, was no more than this over what was advised."""
_REFUSALS: Final = (Signal.HARD_BLOCK, Signal.CHALLENGE, Signal.SOFT_BLOCK, Signal.REFUSED_CAP, Signal.REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obedience:
    """What came of the advice of one incident in the whole hours after it, at most a day, while the incident lasted.

    `advised` is the mean share of the usual concurrency, `followed` the requests of traffic as a share of those in the
    same hours a day before. The refused shares, of answered requests of canaries too, are of the same hours; None
    where nothing was answered.
    """

    site: str
    start: float
    hours: int
    advised: float
    followed: float
    refused_before: float | None
    refused_after: float | None

    @property
    def obeyed(self) -> bool:
        """Whether crawlers did as they were told."""
        return self.followed <= self.advised + MARGIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of some incidents. Times are seconds; what there is nothing to take of is None.

    `warned` incidents had an early warning, which came `warning_to_band` before the band (median); the worst came
    `band_to_worst` after it. Reasons are right or wrong where a label says so. `advised` is how many incidents had
    advice that can be told from the traffic; the last four are their medians.
    """

    incidents: int
    open: int
    true: int
    false_alarms: int
    unlabelled: int
    precision: float | None
    warned: int
    warning_to_band: float | None
    band_to_worst: float | None
    reason_right: int
    reason_wrong: int
    reason_unknown: int
    paused_seconds: float
    advised: int
    obeyed: int
    advised_ratio: float | None
    traffic_ratio: float | None
    refused_before: float | None
    refused_after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFigures:
    """The figures of one site."""

    site: str
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The figures of the incidents that began from `since` until before `until`, in all and by site."""

    since: float
    until: float
    overall: Figures
    sites: tuple[SiteFigures, ...]
    obedience: tuple[Obedience, ...]


def review(
    incidents: Iterable[Incident],
    slots: Callable[[str, float], Iterable[Slot]],
    *,
    since: float,
    until: float,
    now: float,
) -> Review:
    """The review of a period; `slots` are those of a site from a time on, and are asked for once a site."""
    by_site: dict[str, list[Incident]] = {}
    for incident in incidents:
        if since <= incident.start < until:
            by_site.setdefault(incident.site, []).append(incident)
    sites: list[SiteFigures] = []
    told: list[Obedience] = []
    for site, its in sorted(by_site.items()):
        obeyed = _site_obedience(its, slots, now)
        told += obeyed
        sites.append(SiteFigures(site=site, figures=figures(its, obeyed, now)))
    every = [incident for its in by_site.values() for incident in its]
    return Review(
        since=since, until=until, overall=figures(every, told, now), sites=tuple(sites), obedience=tuple(told)
    )


def figures(incidents: Sequence[Incident], told: Sequence[Obedience], now: float) -> Figures:
    """The figures of these incidents, with what came of their advice."""
    labels = [incident.label for incident in incidents]
    true, false = labels.count(IncidentLabel.TRUE), labels.count(IncidentLabel.FALSE_ALARM)
    right = [found for found in map(_reason_right, incidents) if found is not None]
    return Figures(
        incidents=len(incidents),
        open=sum(incident.end is None for incident in incidents),
        true=true,
        false_alarms=false,
        unlabelled=len(incidents) - true - false,
        precision=true / (true + false) if true + false else None,
        warned=sum(incident.warned_at is not None for incident in incidents),
        warning_to_band=_median(i.start - i.warned_at for i in incidents if i.warned_at is not None),
        band_to_worst=_median(max(0.0, incident.worst_at - incident.start) for incident in incidents),
        reason_right=sum(right),
        reason_wrong=len(right) - sum(right),
        reason_unknown=len(incidents) - len(right),
        paused_seconds=round(sum(incident.paused(now) for incident in incidents), 3),
        advised=len(told),
        obeyed=sum(each.obeyed for each in told),
        advised_ratio=_median(each.advised for each in told),
        traffic_ratio=_median(each.followed for each in told),
        refused_before=_median(each.refused_before for each in told),
        refused_after=_median(each.refused_after for each in told),
    )


def obedience(incident: Incident, slots: Iterable[Slot], now: float) -> Obedience | None:
    """What came of an incident's advice; None without a whole hour of it, or without traffic a day before.

    The hours of day are the same on both sides, so that night is not taken for obedience.
    """
    asked = _asked_at(incident)
    if asked is None:
        return None
    begin = math.ceil(asked / HOUR) * HOUR
    end = math.floor(min(now if incident.end is None else incident.end, asked + DAY) / HOUR) * HOUR
    if end <= begin:
        return None
    known = [slot for slot in slots if slot.seconds <= HOUR]
    after = [slot for slot in known if begin <= slot.start < end]
    before = [slot for slot in known if begin - DAY <= slot.start < end - DAY]
    usual = _traffic(before)
    if not usual:
        return None
    return Obedience(
        site=incident.site,
        start=incident.start,
        hours=round((end - begin) / HOUR),
        advised=_advised(incident, begin, end),
        followed=_traffic(after) / usual,
        refused_before=_refused(before),
        refused_after=_refused(after),
    )


def _site_obedience(
    incidents: Sequence[Incident], slots: Callable[[str, float], Iterable[Slot]], now: float
) -> list[Obedience]:
    asked = [at for at in map(_asked_at, incidents) if at is not None]
    if not asked:
        return []
    known = list(slots(incidents[0].site, min(asked) // HOUR * HOUR - DAY))
    return [found for incident in incidents if (found := obedience(incident, known, now)) is not None]


def _asked_at(incident: Incident) -> float | None:
    """When crawlers were first asked for less than usual."""
    return next((at for at, advice in incident.advice if advice.paused or advice.concurrency_ratio < 1), None)


def _advised(incident: Incident, begin: float, end: float) -> float:
    """The mean share of the usual concurrency that was advised in a stretch of time."""
    ends = [at for at, _ in incident.advice[1:]] + [math.inf]
    total = 0.0
    for (at, advice), until in zip(incident.advice, ends, strict=True):
        seconds = max(0.0, min(until, end) - max(at, begin))
        total += 0.0 if advice.paused else advice.concurrency_ratio * seconds
    return total / (end - begin)


def _traffic(slots: Iterable[Slot]) -> int:
    return sum(slot.tally.requests for slot in slots if slot.source is Source.TRAFFIC)


def _refused(slots: Iterable[Slot]) -> float | None:
    """The refused share of answered requests."""
    total = merged(slot.tally for slot in slots)
    answered = total.requests - total.error
    return total.refused / answered if answered else None


def _reason_right(incident: Incident) -> bool | None:
    """Whether the first reason was what a person says it should have been; None where nobody says."""
    said = incident.right_reason
    if said is None:
        return None
    return incident.first_reason in (_REFUSALS if said is Signal.REFUSED else (said,))


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
