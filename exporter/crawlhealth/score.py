"""Score: signals against the site's own normal, what they cost, the refused cap, and the bands. Pure.

The formula is the plain one: hostile shares and p95 latency cost points by their excess over the baseline, each signal
capped at its weight. The refused cap is a step of its own, so that a site that refuses everything scores about 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from crawlhealth.config import ScoreSettings, Weights
from crawlhealth.verdict import Band, BandState, Penalty, Rates, Signal

FULL_PENALTY_EXCESS: Final = 0.20
"""A share this far above its normal costs its whole weight."""
FULL_PENALTY_SLOWDOWN: Final = 2.0
"""A latency this many times its normal above it (three times its normal) costs its whole weight."""
MIN_SERVED: Final = 0.2
"""The smallest served share of a baseline that a fall is measured against."""
MIN_REASON_POINTS: Final = 1.0
"""What a signal must cost to be named as a reason."""


def share_badness(now: float, baseline: float) -> float:
    """How bad a hostile share is, 0 to 1: 0 at its own normal, 1 at 20 percentage points above it."""
    return _clip((now - baseline) / FULL_PENALTY_EXCESS)


def latency_badness(now: float | None, baseline: float | None) -> float:
    """How bad a p95 latency in seconds is, 0 to 1: 1 at three times its normal; without both of them 0.

    Computed in milliseconds; a normal under 1 ms counts as 1 ms.
    """
    if now is None or baseline is None:
        return 0.0
    return _clip((now * 1000 / max(baseline * 1000, 1.0) - 1) / FULL_PENALTY_SLOWDOWN)


def penalties(now: Rates, baseline: Rates, weights: Weights) -> tuple[Penalty, ...]:
    """What each of the four signals costs in the plain formula, in the order of the weights."""
    slow = latency_badness(now.latency_p95, baseline.latency_p95)
    return (
        _penalty(Signal.HARD_BLOCK, weights.hard_block, now.hard_block, baseline.hard_block),
        _penalty(Signal.CHALLENGE, weights.challenge, now.challenge, baseline.challenge),
        _penalty(Signal.SOFT_BLOCK, weights.soft_block, now.soft_block, baseline.soft_block),
        Penalty(
            signal=Signal.LATENCY,
            points=weights.latency * slow,
            now=now.latency_p95 or 0.0,
            baseline=baseline.latency_p95 or 0.0,
        ),
    )


def plain(costs: Iterable[Penalty]) -> float:
    """The plain score before rounding, 0 to 100: what the penalties leave of 100."""
    return max(0.0, 100 - sum([cost.points for cost in costs]))


def refused_cap(now: float, baseline: float) -> float:
    """The highest score, 0 to 100, of a site that refuses this share of requests, against its normal share.

    100 x (1 - excess / served share of the baseline): a site that refuses everything scores 0 whatever the mix.
    """
    excess = max(0.0, now - baseline)
    return 100 * _clip(1 - excess / max(1 - baseline, MIN_SERVED))


def cap_penalty(plain_score: float, now: Rates, baseline: Rates) -> Penalty:
    """The points by which the refused cap lies under the plain score; 0 where it does not."""
    cap = refused_cap(now.refused, baseline.refused)
    return Penalty(
        signal=Signal.REFUSED_CAP, points=max(0.0, plain_score - cap), now=now.refused, baseline=baseline.refused
    )


def reasons(costs: Iterable[Penalty]) -> tuple[Penalty, ...]:
    """The penalties of at least one point, dearest first; equal ones keep their order."""
    dear = [cost for cost in costs if cost.points >= MIN_REASON_POINTS]
    return tuple(sorted(dear, key=lambda cost: -cost.points)) if dear else ()


def parser_score(failed: float, baseline: float) -> int:
    """How well extraction works, 0 to 100, from the failed share of served pages now and normally."""
    excess = max(0.0, failed - baseline)
    return round(100 * _clip(1 - excess / max(1 - baseline, MIN_SERVED)))


def next_state(
    previous: BandState, score: float | None, *, at: float, new_evidence: bool, settings: ScoreSettings
) -> BandState:
    """The band after one more evaluation at time `at`.

    A band begins when every score has been under its threshold for its time, and ends when every score has been at or
    over its leaving level for its time. Only time with evidence counts: an observation vouches for the time since the
    one before, at most half the shortest window, and without a new one no band changes, except that unknown turns into
    normal with the first good score, as after an import. Without a score a bad band is held, any other is unknown. A
    clock that steps back loses no dwell.
    """
    if score is None:
        bad = previous.band in (Band.DEGRADING, Band.RESISTING)
        band = previous.band if bad else Band.UNKNOWN
        since = previous.since if band is previous.band else at
        return BandState(band=band, since=min(since, at) or at, held=bad, evidence_at=previous.evidence_at)
    state = _clocks(previous, score, at=at, new_evidence=new_evidence, settings=settings)
    if state.band is Band.UNKNOWN and score >= settings.bands.degrading:
        band = Band.NORMAL
    else:
        band = _next_band(state, at=at, settings=settings) if new_evidence else state.band
    return state if band is state.band else replace(state, band=band, since=at)


def _clocks(previous: BandState, score: float, *, at: float, new_evidence: bool, settings: ScoreSettings) -> BandState:
    """The previous state with its dwell clocks brought up to this score."""
    levels = settings.bands
    idle = 0.0
    if new_evidence and previous.evidence_at is not None:
        gap = at - previous.evidence_at
        idle = gap - min(max(gap, 0.0), min(settings.windows).total_seconds() / 2)

    def clock(begun: float | None, holds: bool) -> float | None:
        if not holds:
            return None
        if begun is None:
            return at if new_evidence else None
        return begun + idle

    return BandState(
        band=previous.band,
        since=min(previous.since, at) or at,
        held=False,
        under_degrading=clock(previous.under_degrading, score < levels.degrading),
        under_resisting=clock(previous.under_resisting, score < levels.resisting),
        over_degrading=clock(previous.over_degrading, score >= levels.leave_degrading),
        over_resisting=clock(previous.over_resisting, score >= levels.leave_resisting),
        evidence_at=at if new_evidence else previous.evidence_at,
    )


def _next_band(state: BandState, *, at: float, settings: ScoreSettings) -> Band:
    enter, leave = settings.enter_after, settings.leave_after

    def lasted(begun: float | None, seconds: float) -> bool:
        return begun is not None and at - begun >= seconds

    if state.band is Band.RESISTING:
        return Band.DEGRADING if lasted(state.over_resisting, leave.resisting.total_seconds()) else Band.RESISTING
    if lasted(state.under_resisting, enter.resisting.total_seconds()):
        return Band.RESISTING
    if state.band is Band.DEGRADING:
        return Band.NORMAL if lasted(state.over_degrading, leave.degrading.total_seconds()) else Band.DEGRADING
    if lasted(state.under_degrading, enter.degrading.total_seconds()):
        return Band.DEGRADING
    return state.band


def _penalty(signal: Signal, weight: float, now: float, baseline: float) -> Penalty:
    return Penalty(signal=signal, points=weight * share_badness(now, baseline), now=now, baseline=baseline)


def _clip(value: float) -> float:
    if value <= 0.0:
        return 0.0
    return value if value < 1.0 else 1.0
