"""Incident: a site's stay outside `normal`, from its first verdict there to the one that ends it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, TypeVar

from crawlhealth.verdict import Advice, Band, Diagnosis, IncidentLabel, Penalty, Signal, Verdict

MOST_CHANGES: Final = 100
"""So many changes of the reasons and of the advice are kept of one incident; the last is then replaced by a new one."""
POINTS: Final = 5.0
"""Reasons have changed when other signals cost points, or when those of one have moved so far."""
CONCURRENCY: Final = 0.1
"""Advice has changed when a pause begins or ends, or when the concurrency has moved so far."""
WARNING_Z: Final = 3.0
"""The drift, in standard deviations, that an early warning begins at where nothing else is said."""
WARNED_SECONDS: Final = 86_400.0
"""An early warning that ended this long before an incident, or longer, is no warning of it."""
INSTANT: Final = 0.001
"""Seconds that an incident lasts at least, though a clock steps back."""

Reasons = tuple[tuple[Signal, float], ...]
"""Signals with the points they cost, dearest first."""
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One stay of a site outside `normal`, from `start` until before `end` (None while it lasts).

    `worst_score` is the lowest score in it, None where there never was one, first seen at `worst_at`; without a score
    that is when the worst band began. `first_reason` is the dearest signal when it began: the refused cap only where
    it stands alone, for it adds up what the others say; None where it began without a score. `reasons` and `advice`
    are their changes (POINTS, CONCURRENCY) with their times. `diagnosis` is the last one that was not `none`.
    `warned_at` is when the early warning began that came before it. `paused_seconds` reach up to the last change of
    advice; `paused` adds what has come since. The last five fields are what a person said of it afterwards;
    `right_reason` is what its first reason should have been.
    """

    site: str
    start: float
    end: float | None = None
    worst_score: int | None = None
    worst_band: Band
    worst_at: float
    first_reason: Signal | None = None
    reasons: tuple[tuple[float, Reasons], ...] = ()
    advice: tuple[tuple[float, Advice], ...] = ()
    diagnosis: Diagnosis = Diagnosis.NONE
    warned_at: float | None = None
    degrading_at: float | None = None
    resisting_at: float | None = None
    paused_seconds: float = 0.0
    label: IncidentLabel | None = None
    note: str = ""
    right_reason: Signal | None = None
    labelled_at: float | None = None

    @property
    def name(self) -> str:
        """What it is called within its site: its start, as in 2026-11-30T12:00:00Z."""
        return datetime.fromtimestamp(math.floor(self.start), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def seconds(self, now: float) -> float:
        """How long it lasted, or has lasted by `now`."""
        return max(0.0, (now if self.end is None else self.end) - self.start)

    def paused(self, now: float) -> float:
        """For how many seconds its crawlers were told to stop, up to its end or to `now`."""
        return self.paused_seconds + (_since_paused(self, now) if self.end is None else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """An early warning of a site: on since `since`; `ended` is when it went off, None while it is on."""

    since: float
    ended: float | None = None


class Incidents:
    """Follows the sites from verdict to verdict. Not thread-safe: it belongs to the judge.

    It begins with the incidents that were open when the exporter stopped, and with the warnings of that time.
    """

    def __init__(self, open_: Iterable[Incident] = (), warned: Mapping[str, Warned] | None = None) -> None:
        self._open = {incident.site: incident for incident in open_}
        self._warned = dict(warned or {})
        self._fresh: dict[str, Warned | None] = {}

    def take(self, previous: Verdict | None, verdict: Verdict, *, threshold: float = WARNING_Z) -> Incident | None:
        """The incident of a site as this verdict leaves it, where it began, changed or ended; None else.

        `previous` is the site's verdict before this one. The early warning is on from a drift of `threshold`.
        """
        site, band = verdict.site, verdict.state.band
        if verdict.drift or site in self._warned:
            self._watch(verdict, threshold)
        known = self._open.get(site)
        if band is Band.NORMAL or band is Band.UNKNOWN:
            return None if known is None else self._closed(known, verdict.at)
        if known is not None:
            incident = followed(known, verdict)
            if incident is known:
                return None
        elif verdict.maintenance:
            return None
        else:
            missed = previous is not None and previous.state.band not in (Band.NORMAL, Band.UNKNOWN)
            incident = self._begun(
                verdict, min(verdict.at, verdict.state.since or verdict.at) if missed else verdict.at
            )
        self._open[site] = incident
        return incident

    def warnings(self) -> Mapping[str, Warned | None]:
        """The warnings that began, ended or expired (None) since the last call."""
        fresh, self._fresh = self._fresh, {}
        return fresh

    def _begun(self, verdict: Verdict, start: float) -> Incident:
        """A new incident that began at `start`, with its first verdict."""
        warned, band = self._warned.get(verdict.site), verdict.state.band
        incident = Incident(
            site=verdict.site,
            start=start,
            worst_score=verdict.score,
            worst_band=band,
            worst_at=start if verdict.score is None else verdict.at,
            first_reason=_first(verdict.reasons),
            warned_at=None if warned is None else min(warned.since, start),
            degrading_at=start if band is Band.DEGRADING else None,
            resisting_at=start if band is Band.RESISTING else None,
        )
        return followed(incident, verdict)

    def _closed(self, known: Incident, at: float) -> Incident:
        """The end of an incident. A warning that outlives it warns of the next one from now on."""
        del self._open[known.site]
        if known.site in self._warned:
            on = self._warned[known.site].ended is None
            self._put(known.site, Warned(since=at) if on else None)
        end = max(at, known.start + INSTANT)
        return replace(known, end=end, paused_seconds=known.paused(end))

    def _watch(self, verdict: Verdict, threshold: float) -> None:
        """Keep since when the warning of a site is on, for a day after it went off."""
        site, at = verdict.site, verdict.at
        known = self._warned.get(site)
        on = False
        for z in verdict.drift.values():
            on = on or z >= threshold
        if on:
            if known is None or known.ended is not None:
                self._put(site, Warned(since=at))
        elif known is not None:
            if known.ended is None:
                self._put(site, Warned(since=known.since, ended=at))
            elif at - known.ended >= WARNED_SECONDS:
                self._put(site, None)

    def _put(self, site: str, warned: Warned | None) -> None:
        self._fresh[site] = warned
        if warned is None:
            self._warned.pop(site, None)
        else:
            self._warned[site] = warned


def followed(incident: Incident, verdict: Verdict) -> Incident:
    """An incident after one more verdict in it; the same object where nothing worth keeping has changed.

    Under maintenance only the advice counts: what is seen then says nothing of the site.
    """
    incident = _advised(incident, verdict)
    return incident if verdict.maintenance else _reasoned(_worse(_diagnosed(incident, verdict), verdict), verdict)


def _advised(incident: Incident, verdict: Verdict) -> Incident:
    advice, last = verdict.advice, incident.advice[-1][1] if incident.advice else None
    if last is not None and last.paused is advice.paused:
        moved = abs(last.concurrency_ratio - advice.concurrency_ratio)
        if moved < CONCURRENCY and (not moved or advice.concurrency_ratio not in (0.0, 1.0)):
            return incident
    at = verdict.at if incident.advice else incident.start
    paused = incident.paused_seconds + _since_paused(incident, verdict.at)
    return replace(incident, advice=_kept(incident.advice, (at, advice)), paused_seconds=paused)


def _since_paused(incident: Incident, now: float) -> float:
    """Seconds since the last change of advice, where that was a pause."""
    if not incident.advice or not incident.advice[-1][1].paused:
        return 0.0
    return max(0.0, now - incident.advice[-1][0])


def _diagnosed(incident: Incident, verdict: Verdict) -> Incident:
    if verdict.diagnosis in (Diagnosis.NONE, incident.diagnosis):
        return incident
    return replace(incident, diagnosis=verdict.diagnosis)


def _worse(incident: Incident, verdict: Verdict) -> Incident:
    """The first moment of each band, and the worst that was seen."""
    at, band, score = max(verdict.at, incident.start), verdict.state.band, verdict.score
    if band is Band.DEGRADING and incident.degrading_at is None:
        incident = replace(incident, degrading_at=at)
    if band is Band.RESISTING and incident.resisting_at is None:
        worst_at = at if incident.worst_score is None else incident.worst_at
        incident = replace(incident, resisting_at=at, worst_band=band, worst_at=worst_at)
    if score is not None and (incident.worst_score is None or score < incident.worst_score):
        incident = replace(incident, worst_score=score, worst_at=at)
    return incident


def _reasoned(incident: Incident, verdict: Verdict) -> Incident:
    """The reasons where they changed. Without a score there are none to read, and the last ones stand."""
    if verdict.score is None:
        return incident
    if incident.reasons:
        last = dict(incident.reasons[-1][1])
        if last.keys() == {reason.signal for reason in verdict.reasons} and all(
            abs(last[reason.signal] - reason.points) < POINTS for reason in verdict.reasons
        ):
            return incident
    now: Reasons = tuple((reason.signal, round(reason.points, 1)) for reason in verdict.reasons)
    return replace(incident, reasons=_kept(incident.reasons, (verdict.at, now)))


def _first(reasons: Iterable[Penalty]) -> Signal | None:
    """The dearest signal that says what was seen; the refused cap only where it stands alone."""
    signals = [reason.signal for reason in reasons]
    return next((signal for signal in signals if signal is not Signal.REFUSED_CAP), signals[0] if signals else None)


def _kept(entries: tuple[Entry, ...], entry: Entry) -> tuple[Entry, ...]:
    return (*entries[: MOST_CHANGES - 1], entry)
