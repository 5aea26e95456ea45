"""Evaluate: a site's recent record, its baseline and the verdict before, to the verdict now. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from crawlhealth import cost, score, stats
from crawlhealth.config import ScoreSettings
from crawlhealth.model import BandState, Baseline, Penalty, Unknown, Verdict, Window
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot
from crawlhealth.windows import EPSILON, View


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRecord:
    """What is on record of one site at the moment of an evaluation.

    `windows` are its exponentially weighted sums, shortest half-life first, in all and by route and source. `hours` are
    what a baseline is learnt from; they are many, and read only when iterated. `requests` is how many requests were
    ever counted of the site (an import does not move it); `generation` changes when hours were replaced from outside.
    """

    site: str
    windows: tuple[View, ...] = ()
    hours: Iterable[Slot] = ()
    requests: int = 0
    generation: int = 0


def evaluate(
    record: SiteRecord, baseline: Baseline | None, previous: Verdict | None, now: float, settings: ScoreSettings
) -> Verdict:
    """The verdict on one site at `now` (unix seconds).

    The present is the window of the shortest half-life that holds `min_requests` weighted requests, all routes and
    sources together.
    The score is the lower of the plain formula and the refused cap, smoothed over time (the first one is not).
    Without such a window or without a baseline there is no score. The parser score reads the shortest window with
    `min_requests` extractions.
    """
    present = _shortest(record.windows, settings, lambda view: view.total.requests)
    before = previous.state if previous is not None else BandState(since=now)
    new_evidence = previous is None or record.requests != previous.evidence
    blank = Verdict(site=record.site, at=now, state=before, baseline=baseline, evidence=record.requests)
    if present is None:
        verdict = replace(blank, unknown=Unknown.NOT_ENOUGH_REQUESTS)
    else:
        verdict = _judged(blank, present, _shortest(record.windows, settings, lambda view: view.total.extractions))
        verdict = _scored(verdict, previous, now, settings)
    state = score.next_state(before, verdict.score, at=now, new_evidence=new_evidence, settings=settings)
    return replace(verdict, state=state)


def _judged(blank: Verdict, present: View, extraction: View | None) -> Verdict:
    """The verdict with its window, its routes and its parser score."""
    rates = present.total.rates(present.latency_p95)
    assert rates is not None, "a window holds at least one request"
    tried = extraction.total if extraction is not None else None
    failed = tried.extractions_failed / tried.extractions if tried is not None else None
    window = Window(
        seconds=present.half_life,
        requests=_whole(present.total.requests),
        extractions=_whole(tried.extractions) if tried is not None else 0,
        rates=replace(rates, extraction=failed),
        cost=cost.per_record(present.of(Source.TRAFFIC)),
    )
    routes = present.routes()
    normal = blank.baseline.rates.extraction if blank.baseline is not None else None
    return replace(
        blank,
        window=window,
        parser_score=score.parser_score(failed, normal) if failed is not None and normal is not None else None,
        route_refused={route: tally.refused / tally.requests for route, tally in routes.items()},
        route_error={route: tally.error / tally.requests for route, tally in routes.items()},
        route_requests={route: _whole(tally.requests) for route, tally in routes.items()},
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


def _shortest(windows: Iterable[View], settings: ScoreSettings, size: Callable[[View], float]) -> View | None:
    """The first window that is large enough: canaries alone may carry the extractions."""
    enough = max(1, settings.min_requests) - EPSILON
    return next((view for view in windows if size(view) >= enough), None)


def _whole(weighted: float) -> int:
    return math.floor(weighted + EPSILON)
