"""How much of its usual speed a download slot may have. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from crawlhealth.client import SiteAdvice

LONGEST_DELAY: Final = 600.0
"""Seconds between two requests of a slowed site at most: it is to be slow, not forgotten."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The two settings of a download slot: requests at the same time, and seconds between their starts."""

    concurrency: int
    delay: float


def allowed(usual: Pace, advice: SiteAdvice, latency: float | None) -> Pace:
    """The pace that the advice asks for, from the usual one and the usual `latency` in seconds, None while unknown.

    Concurrency falls to the ratio's share of the usual, never under 1 unless paused; a usual delay is stretched. Where
    less than one request at a time is asked for, the starts are spread out in time instead.
    """
    ratio = 0.0 if advice.paused else advice.concurrency_ratio
    if ratio <= 0:
        return Pace(0, usual.delay)
    if ratio >= 1:
        return usual
    share = usual.concurrency * ratio
    delay = usual.delay / ratio
    if share < 1 and latency is not None:
        delay = max(delay, latency / share)
    return Pace(max(1, math.floor(share + 1e-9)), min(max(delay, usual.delay), max(LONGEST_DELAY, usual.delay)))
