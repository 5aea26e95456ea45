"""Evaluate: a site's recent record, its baseline and the verdict before, to the verdict now. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from crawlhealth import cost, score, stats
from crawlhealth.config import ScoreSettings
from crawlhealth.outcome import Source
from crawlhealth.verdict import BandState, Baseline, Penalty, Rates, Unknown, Verdict, Window
from crawlhealth.weighted import Sums, View, by_route, of_source
from crawlhealth.windows import EPSILON


class SiteRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is on record of one site at the moment of an evaluation.

    `windows` are its exponentially weighted sums, shortest half-life first, in all and by route and source. `requests`
    is how many requests were ever counted of the site (an import does not move it); `generation` changes when its
    history was replaced from outside.
    """

    site: str
    windows: tuple[View, ...] = ()
    requests: int = 0
    generation: int = 0


def evaluate(
    record: SiteRecord, baseline: Baseline | None, previous: Verdict | None, now: float, settings: ScoreSettings
) -> Verdict:
    """The verdict on one site at `now` (unix seconds).

    The present is the window of the shortest half-life that holds `min_requests` weighted requests, all routes and
    sources together. The score is the lower of the plain formula and the refused cap, smoothed over time (the first one
    is not). Without such a window or without a baseline there is no score. The parser score reads the shortest window
    with `min_requests` extractions.
    """
    enough = max(1, settings.min_requests) - EPSILON
    present = next((view for view in record.windows if view.requests >= enough), None)
    before = previous.state if previous is not None else BandState(since=now)
    new_evidence = previous is None or record.requests != previous.evidence
    if present is None:
        return Verdict(
            site=record.site,
            at=now,
            state=score.next_state(before, None, at=now, new_evidence=new_evidence, settings=settings),
            unknown=Unknown.NOT_ENOUGH_REQUESTS,
            baseline=baseline,
            evidence=record.requests,
        )
    strata = present.strata
    window = _window(present, strata, next((view for view in record.windows if view.extractions >= enough), None))
    scored = _scored(window.rates, baseline, previous, now, settings)
    failed = window.rates.extraction
    normal = baseline.rates.extraction if baseline is not None else None
    routes = [(route, sums, sums.requests) for route, sums in by_route(strata).items()]
    return Verdict(
        site=record.site,
        at=now,
        state=score.next_state(before, scored.rounded, at=now, new_evidence=new_evidence, settings=settings),
        score=scored.rounded,
        score_raw=scored.raw,
        smoothed=scored.value,
        parser_score=score.parser_score(failed, normal) if failed is not None and normal is not None else None,
        unknown=Unknown.NO_BASELINE if baseline is None else None,
        penalties=scored.penalties,
        reasons=score.reasons(scored.penalties),
        window=window,
        baseline=baseline,
        route_refused={route: sums.refused / requests for route, sums, requests in routes},
        route_error={route: sums.error / requests for route, sums, requests in routes},
        route_requests={route: _whole(requests) for route, _, requests in routes},
        evidence=record.requests,
    )


def _window(present: View, strata: Mapping[tuple[str, Source], Sums], extraction: View | None) -> Window:
    """The window that is read, with the extractions of another one when those take longer to come by."""
    total = present.total
    tried = Sums()
    if extraction is not None:
        tried = total if extraction is present else extraction.total
    only_traffic = all(source is Source.TRAFFIC for _, source in strata)
    failed = tried.extractions_failed / tried.extractions if tried.extractions > 0 else None
    rates = total.rates(present.latency_p95, extraction=failed)
    assert rates is not None, "a window holds at least one request"
    return Window(
        seconds=present.half_life,
        requests=_whole(total.requests),
        extractions=_whole(tried.extractions),
        rates=rates,
        cost=cost.per_record(total if only_traffic else of_source(strata, Source.TRAFFIC)),
    )


class _Scored(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The penalties, and the score before and after rounding; the plain formula alone as `raw`."""

    penalties: tuple[Penalty, ...] = ()
    value: float | None = None
    rounded: int | None = None
    raw: int | None = None


def _scored(
    rates: Rates, baseline: Baseline | None, previous: Verdict | None, now: float, settings: ScoreSettings
) -> _Scored:
    """What the signals cost; nothing without a baseline."""
    if baseline is None:
        return _Scored()
    costs = score.penalties(rates, baseline.rates, settings.weights)
    raw = score.plain(costs)
    cap = score.cap_penalty(raw, rates, baseline.rates)
    value = raw - cap.points
    if previous is not None and previous.smoothed is not None:
        value = stats.smooth(previous.smoothed, value, now - previous.at, settings.smoothing.total_seconds())
    return _Scored(penalties=(*costs, cap), value=value, rounded=round(value), raw=round(raw))


def _whole(weighted: float) -> int:
    return math.floor(weighted + EPSILON)
