"""Literal: the plain formula as SCORE's table of figures to beat reads it, on raw hours, with thresholds of its own.

That table was made with a simulator of which only the description is left. This reading of it comes out nearest:

- every hour is scored by itself, with no least number of requests, against the mean shares of 14 days without the last
  day (sums of counts); the smoothed row is the EWMA of that score, weight 0.3;
- a threshold on the score is set for each row so that the calm run has 0.1 false alarms a site-week; a site is found
  when its score is below that for one hour;
- a false alarm is a run of hours below the threshold, and alarms with one hour between them are one.

With a least number of 50 requests there are fewer false alarms (5.3 and 0.6 in place of 5.9 and 0.7 a site-week), since
the small windows of 60 requests an hour are left out at night, and all is found a little more often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth import score
from crawlhealth.scoresettings import Weights
from crawlhealth.stats import ewma

Array = NDArray[np.float64]
Scores = NDArray[np.float32]
"""The plain score of N sites in T hours."""
Reading = Callable[[Scores], Scores]

DAY: Final = 24
BASELINE: Final = 14 * DAY
WEIGHT: Final = 0.3
"""Of the newest score in the smoothed one."""
RUN_IN: Final = 4 * DAY
"""Hours before the first that is told, in which smoothing begins."""
HOSTILE: Final = slice(1, 4)


def scores(counts: Array, *, first: int) -> Scores:
    """The plain scores of the hours from `first` - RUN_IN on, of counts (N, hours, ok and three hostile kinds...).

    An hour without a request scores 100.
    """
    outcomes = counts[..., :4]
    upto = np.concatenate([np.zeros_like(outcomes[:, :1]), np.cumsum(outcomes, axis=1)], axis=1)
    hours = np.arange(first - RUN_IN, outcomes.shape[1])
    before = upto[:, np.maximum(hours - DAY, 0)] - upto[:, np.maximum(hours - DAY - BASELINE, 0)]
    weights = Weights()
    costs = np.array([weights.hard_block, weights.challenge, weights.soft_block])
    bad = score.share_badness(_shares(outcomes[:, hours]), _shares(before))
    found: Scores = (100 - (bad * costs).sum(axis=-1)).astype(np.float32)
    return found


def plain(found: Scores) -> Scores:
    """The scores as they are, without the hours of running in."""
    return found[:, RUN_IN:]


def smoothed(found: Scores) -> Scores:
    """Their EWMA."""
    return ewma(found, WEIGHT, start=100.0)[:, RUN_IN:].astype(np.float32)


def _shares(outcomes: Array) -> Array:
    total = outcomes.sum(axis=-1, keepdims=True)
    shares: Array = outcomes[..., HOSTILE] / np.maximum(total, 1.0)
    return shares
