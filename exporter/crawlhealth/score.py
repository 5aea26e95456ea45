"""Score: signals against the site's own normal, what they cost, and the refused cap. Pure.

The formula is the plain one: hostile shares and p95 latency cost points by their excess over the baseline, each signal
capped at its weight. The refused cap is a step of its own, so that a site that refuses everything scores about 0. The
steps take single numbers or arrays of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from crawlhealth.scoresettings import Weights
from crawlhealth.verdict import Penalty, Rates, Signal

Number = TypeVar("Number", float, NDArray[np.float64])
"""A number, or an array of them that is worked on element by element."""

FULL_PENALTY_EXCESS: Final = 0.20
"""A share this far above its normal costs its whole weight."""
FULL_PENALTY_SLOWDOWN: Final = 2.0
"""A latency this many times its normal above it (three times its normal) costs its whole weight."""
MIN_SERVED: Final = 0.2
"""The smallest served share of a baseline that a fall is measured against."""
MIN_REASON_POINTS: Final = 1.0
"""What a signal must cost to be named as a reason."""


def share_badness(now: Number, baseline: Number) -> Number:
    """How bad a hostile share is, 0 to 1: 0 at its own normal, 1 at 20 percentage points above it."""
    return _clip((now - baseline) / FULL_PENALTY_EXCESS)


def latency_badness(now: Number, baseline: Number) -> Number:
    """How bad a p95 latency in seconds is, 0 to 1: 1 at three times its normal.

    Computed in milliseconds; a normal under 1 ms counts as 1 ms.
    """
    found: Number = _clip((now * 1000 / np.maximum(baseline * 1000, 1.0) - 1) / FULL_PENALTY_SLOWDOWN)
    return found


def penalties(now: Rates, baseline: Rates, weights: Weights) -> tuple[Penalty, ...]:
    """What each of the four signals costs in the plain formula, in the order of the weights."""
    known = now.latency_p95 is not None and baseline.latency_p95 is not None
    slow = latency_badness(now.latency_p95 or 0.0, baseline.latency_p95 or 0.0) if known else 0.0
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


def refused_cap(now: Number, baseline: Number) -> Number:
    """The highest score, 0 to 100, of a site that refuses this share of requests, against its normal share.

    100 x (1 - excess / served share of the baseline): a site that refuses everything scores 0 whatever the mix.
    """
    excess: Number = np.maximum(0.0, now - baseline)
    left: Number = 1 - excess / np.maximum(1 - baseline, MIN_SERVED)
    return 100 * _clip(left)


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


def parser_score(failed: Number, baseline: Number) -> Number:
    """How well extraction works, a whole number from 0 to 100: the failed share of served pages now and normally."""
    whole: Number = np.rint(refused_cap(failed, baseline))
    return whole


def _penalty(signal: Signal, weight: float, now: float, baseline: float) -> Penalty:
    return Penalty(signal=signal, points=weight * share_badness(now, baseline), now=now, baseline=baseline)


def _clip(value: Number) -> Number:
    clipped: Number = np.minimum(np.maximum(value, 0.0), 1.0)
    return clipped
