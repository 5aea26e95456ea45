"""Evaluate: a site's recent record, its baseline and the verdict before, to the verdict now. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from crawlhealth import cost, score, stats
from crawlhealth.config import ScoreSettings
from crawlhealth.model import BandState, Baseline, Penalty, Unknown, Verdict, Window
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally, merged


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRecord:
    """What is on record of one site.

    `slots` reach over the present windows and never overlap in one (route, source): fine ones of the last hours, whole
    hours before. `hours` are what a baseline is learnt from; they are many, and read only when iterated. `requests` is
    how many requests were ever counted of the site (an import does not move it); `generation` changes when hours were
    replaced from outside.
    """

    site: str
    slots: tuple[Slot, ...] = ()
    hours: Iterable[Slot] = ()
    requests: int = 0
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Present:
    """The sums of the present window, in all and by route."""

    seconds: float
    total: Tally
    routes: Mapping[str, Tally]
    traffic: Tally


def evaluate(
    record: SiteRecord, baseline: Baseline | None, previous: Verdict | None, now: float, settings: ScoreSettings
) -> Verdict:
    """The verdict on one site at `now` (unix seconds).

    The present is the shortest of the windows that holds `min_requests` requests, all routes and sources together.
    The score is the lower of the plain formula and the refused cap, smoothed over time (the first one is not).
    Without such a window or without a baseline there is no score. The parser score reads the shortest window with
    `min_requests` extractions.
    """
    ordered = sorted((slot for slot in record.slots if slot.start <= now), key=lambda slot: -slot.start)
    present = _present(ordered, now, settings)
    before = previous.state if previous is not None else BandState(since=now)
    new_evidence = previous is None or record.requests != previous.evidence
    blank = Verdict(site=record.site, at=now, state=before, baseline=baseline, evidence=record.requests)
    if present is None:
        verdict = replace(blank, unknown=Unknown.NOT_ENOUGH_REQUESTS)
    else:
        verdict = _judged(blank, present, _extraction(ordered, now, settings), settings)
        verdict = _scored(verdict, previous, now, settings)
    state = score.next_state(before, verdict.score, at=now, new_evidence=new_evidence, settings=settings)
    return replace(verdict, state=state)


def _judged(blank: Verdict, present: _Present, extraction: Tally | None, settings: ScoreSettings) -> Verdict:
    """The verdict with its window, its routes and its parser score."""
    rates = present.total.rates()
    assert rates is not None, "a window holds at least one request"
    tried = extraction or Tally()
    failed = tried.extractions_failed / tried.extractions if tried.extractions else None
    window = Window(
        seconds=present.seconds,
        requests=present.total.requests,
        extractions=tried.extractions,
        rates=replace(rates, extraction=failed),
        cost=cost.per_record(present.traffic),
    )
    normal = blank.baseline.rates.extraction if blank.baseline is not None else None
    return replace(
        blank,
        window=window,
        parser_score=score.parser_score(failed, normal) if failed is not None and normal is not None else None,
        route_refused={route: tally.refused / tally.requests for route, tally in present.routes.items()},
        route_error={route: tally.error / tally.requests for route, tally in present.routes.items()},
        route_requests={route: tally.requests for route, tally in present.routes.items()},
    )


def _scored(verdict: Verdict, previous: Verdict | None, now: float, settings: ScoreSettings) -> Verdict:
    """The verdict with its penalties and scores, or with the reason why it has none."""
    if verdict.baseline is None or verdict.window is None:
        return replace(verdict, unknown=Unknown.NO_BASELINE)
    rates, normal = verdict.window.rates, verdict.baseline.rates
    costs = score.penalties(rates, normal, settings.weights)
    raw = score.plain(costs)
    cap = score.cap_penalty(raw, rates, normal)
    value = raw - cap.points
    if previous is not None and previous.smoothed is not None:
        value = stats.smooth(previous.smoothed, value, now - previous.at, settings.smoothing.total_seconds())
    every: tuple[Penalty, ...] = (*costs, cap)
    return replace(
        verdict,
        score=round(value),
        score_raw=round(raw),
        smoothed=value,
        penalties=every,
        reasons=score.reasons(every),
    )


def _present(ordered: Iterable[Slot], now: float, settings: ScoreSettings) -> _Present | None:
    """The shortest window with enough requests; `ordered` are the slots, newest first."""
    routes: defaultdict[str, Tally] = defaultdict(Tally)
    traffic = Tally()
    remaining = list(ordered)[::-1]
    for seconds in sorted(window.total_seconds() for window in settings.windows):
        while remaining and remaining[-1].start >= now - seconds:
            slot = remaining.pop()
            routes[slot.route].merge(slot.tally)
            if slot.source is Source.TRAFFIC:
                traffic.merge(slot.tally)
        total = merged(routes.values())
        if total.requests >= max(1, settings.min_requests):
            seen = {route: tally for route, tally in routes.items() if tally.requests}
            return _Present(seconds=seconds, total=total, routes=seen, traffic=traffic)
    return None


def _extraction(ordered: Iterable[Slot], now: float, settings: ScoreSettings) -> Tally | None:
    """The sums of the shortest window with enough extractions: canaries alone may carry them."""
    remaining = list(ordered)[::-1]
    total = Tally()
    for seconds in sorted(window.total_seconds() for window in settings.windows):
        while remaining and remaining[-1].start >= now - seconds:
            tally = remaining.pop().tally
            total.extractions_ok += tally.extractions_ok
            total.extractions_failed += tally.extractions_failed
        if total.extractions >= max(1, settings.min_requests):
            return total
    return None
