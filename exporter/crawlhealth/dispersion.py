"""Dispersion: how much a site's own hourly rates vary beyond chance, and how much of that lasts. Pure."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.blocks import Blocks, merged

Array = NDArray[np.float64]

TOGETHER: Final = 6
"""Hours that are looked at together to see what lasts."""
UPPER: Final = 0.95
UPPER_Z: Final = 1.6449
"""The quantile that tells how far latency rises of itself, and how many standard deviations that is."""


def spread_and_lasting(counts: Array, p95: Array, usable: NDArray[np.bool_], *, least: float) -> tuple[Array, Array]:
    """The dispersion of M series beyond chance, and the part of it that lasts: standard deviations (M, 5).

    The columns are the four shares and the logarithm of p95. The variance between blocks, about a straight line (a slow
    drift is no dispersion), is less the binomial part (for latency nothing is subtracted, and it is that of rises). Six
    hours together vary by what lasts and a sixth of the rest: two equations. With too few of them all is taken to last.
    """
    single = _variances(merged(counts, p95, usable, least=least))
    groups = counts.shape[1] // TOGETHER
    first = counts.shape[1] - groups * TOGETHER
    shape = (len(counts), groups, TOGETHER)
    used = np.where(usable[..., None], counts, 0.0)[:, first:].reshape(*shape, counts.shape[-1]).sum(axis=2)
    served = np.where(usable & ~np.isnan(p95), counts[..., 0], 0.0)[:, first:].reshape(shape)
    logs = np.log(np.where(np.isnan(p95) | (p95 <= 0), 1.0, p95))[:, first:].reshape(shape)
    total = served.sum(axis=2)
    mean = np.where(total > 0, np.exp((logs * served).sum(axis=2) / np.where(total > 0, total, 1.0)), np.nan)
    wide = _variances(merged(used, mean, np.ones(used.shape[:2], dtype=np.bool_), least=least))
    wide = np.where(np.isnan(wide), single, np.clip(wide, single / TOGETHER, single))
    rest = (single - wide) * TOGETHER / (TOGETHER - 1)
    return np.sqrt(np.nan_to_num(single)), np.sqrt(np.maximum(np.nan_to_num(single - rest), 0.0))


def _variances(blocks: Blocks) -> Array:
    """The variances of shares and logs between blocks beyond chance; NaN with fewer than three of them.

    That of logs is read from their upper quantile: latency never ends the band, so that its rises stay among these
    hours, and by the sum of squares a single one would hide the next for two weeks.
    """
    values = np.concatenate([blocks.shares, blocks.logs[:, None]], axis=1)
    known = ~np.isnan(values)
    number = known.sum(axis=-1)
    left = _about_a_line(values, known)
    variance = (left * left).sum(axis=-1) / np.maximum(number - 1, 1)
    mean = np.where(known, values, 0.0).sum(axis=-1) / np.maximum(number, 1)
    share = np.clip(mean[:, :-1], 0.0, 1.0)
    inverse = np.where(np.isnan(blocks.sizes), 0.0, 1 / np.maximum(np.nan_to_num(blocks.sizes), 1.0))
    chance = share * (1 - share) * (inverse.sum(axis=1) / np.maximum(blocks.number, 1))[:, None]
    variance[:, :-1] -= chance
    variance[:, -1] = _upward(left[:, -1], known[:, -1]) ** 2
    return np.where(number >= 3, np.maximum(variance, 0.0), np.nan)


def _upward(values: Array, known: NDArray[np.bool_]) -> Array:
    """How far values reach above their median, as a standard deviation: from the quantiles of a normal distribution."""
    if not values.shape[-1]:
        return np.zeros(len(values))
    ordered = np.sort(np.where(known, values, np.inf), axis=-1)
    ordered[np.isinf(ordered)] = 0.0
    last = np.maximum(known.sum(axis=-1) - 1, 0)
    rows = np.arange(len(values))

    def level(q: float) -> Array:
        low = np.floor(last * q).astype(np.intp)
        share = last * q - low
        found: Array = ordered[rows, low] * (1 - share) + ordered[rows, np.minimum(low + 1, last)] * share
        return found

    found: Array = (level(UPPER) - level(0.5)) / UPPER_Z
    return found


def _about_a_line(values: Array, known: NDArray[np.bool_]) -> Array:
    """What is left of values along the last axis beside the line of least squares; 0 where nothing is known."""
    place = np.arange(values.shape[-1], dtype=np.float64)
    number = np.maximum(known.sum(axis=-1, keepdims=True), 1)
    held = np.where(known, values, 0.0)
    time = np.where(known, place - (known @ place)[..., None] / number, 0.0)
    height = np.where(known, held - held.sum(axis=-1, keepdims=True) / number, 0.0)
    square = (time * time).sum(axis=-1, keepdims=True)
    slope = (time * height).sum(axis=-1, keepdims=True) / np.where(square > 0, square, 1.0)
    found: Array = height - slope * time
    return found
