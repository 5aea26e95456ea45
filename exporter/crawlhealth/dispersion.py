"""Dispersion: how much a site's own hourly rates vary beyond chance, and how much of that lasts. Pure."""

from __future__ import annotations

from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.blocks import ANSWERED, Blocks, merged

Array = NDArray[np.float64]

TOGETHER: Final = 6
"""Hours that are looked at together to see what lasts."""
DAY_HOURS: Final = 24
FORESEEN: Final = 0.25
"""Such a part of a season is no dispersion: two weeks tell a season badly, and at its height all swings more."""
NORMAL: Final = NormalDist()


def spread_and_lasting(
    counts: Array, p95: Array, usable: NDArray[np.bool_], *, least: float, season: Array | None = None
) -> tuple[Array, Array]:
    """The dispersion of M series beyond chance, and the part of it that lasts: standard deviations (M, 5).

    The columns are the four shares and the logarithm of p95. Of shares it is the variance between blocks, about a
    straight line (a slow drift is no dispersion), less the binomial part. Six hours together vary by what lasts and a
    sixth of the rest: two equations. With too few of them all is taken to last. Of latency it is what rises of itself,
    and all of it lasts: no p95 averages the hours that it spans, but follows the slow ones among them.

    `season` (M, 4, H) is by how much the shares of each hour are expected to differ from their level: a part of it is
    no dispersion.
    """
    blocks = merged(counts, p95, usable, least=least)
    expected = np.zeros(blocks.shares.shape) if season is None else season * FORESEEN
    single = _variances(blocks, expected)
    groups = counts.shape[1] // TOGETHER
    first = counts.shape[1] - groups * TOGETHER
    used = np.where(usable[:, first:, None], counts[:, first:, :ANSWERED], 0.0)
    used = used.reshape(len(counts), groups, TOGETHER, ANSWERED).sum(axis=2)
    timeless, every = np.full(used.shape[:2], np.nan), np.ones(used.shape[:2], dtype=np.bool_)
    together = expected[..., first:].reshape(*expected.shape[:2], groups, TOGETHER).mean(axis=-1)
    wide = _variances(merged(used, timeless, every, least=least), together)
    wide = np.where(np.isnan(wide), single, np.clip(wide, single / TOGETHER, single))
    rest = (single - wide) * TOGETHER / (TOGETHER - 1)
    rises = _rises(blocks.logs)[:, None]
    lasting = np.sqrt(np.maximum(np.nan_to_num(single - rest), 0.0))
    return np.concatenate([np.sqrt(np.nan_to_num(single)), rises], 1), np.concatenate([lasting, rises], 1)


def _variances(blocks: Blocks, expected: Array) -> Array:
    """The variances of shares between blocks beyond chance and season; NaN with fewer than three of them."""
    known = ~np.isnan(blocks.shares)
    number = known.sum(axis=-1)
    left = _about_a_line(blocks.shares - expected, known)
    variance = (left * left).sum(axis=-1) / np.maximum(number - 1, 1)
    mean = np.where(known, blocks.shares, 0.0).sum(axis=-1) / np.maximum(number, 1)
    share = np.clip(mean, 0.0, 1.0)
    inverse = np.where(np.isnan(blocks.sizes), 0.0, 1 / np.maximum(np.nan_to_num(blocks.sizes), 1.0))
    chance = share * (1 - share) * (inverse.sum(axis=1) / np.maximum(blocks.number, 1))[:, None]
    return np.where(number >= 3, np.maximum(variance - chance, 0.0), np.nan)


def _rises(logs: Array) -> Array:
    """How far the logs of p95 rise of themselves, as a standard deviation: (M); 0 with fewer than three of them.

    Within a day it is how far the slowest hour lies above the day's median, over what that is of normal values; between
    days the upper quartile of their medians. Of both the usual day counts: one terrible hour or day widens nothing
    (latency never ends the band, so that its rises stay among the hours), what comes back every day does, falls do not.
    """
    known = ~np.isnan(logs)
    beside = np.where(known, _about_a_line(logs, known), np.nan)
    days = np.concatenate([np.full((len(logs), -logs.shape[1] % DAY_HOURS), np.nan), beside], axis=1)
    days = days.reshape(len(logs), -1, DAY_HOURS)
    number = (~np.isnan(days)).sum(axis=-1)
    whole = (number > 0) & (2 * number >= number.max(axis=-1, initial=0)[:, None])
    middle = np.where(whole, _quantile(days, 0.5), np.nan)
    within = _quantile(_quantile(days, 1.0) - middle, 0.5) / NORMAL.inv_cdf(0.5 ** (1 / DAY_HOURS))
    between = (_quantile(middle, 0.75) - _quantile(middle, 0.5)) / NORMAL.inv_cdf(0.75)
    return np.where(known.sum(axis=-1) >= 3, np.hypot(within, between), 0.0)


def _quantile(values: Array, q: float) -> Array:
    """The q-quantile along the last axis, NaN left out; NaN of nothing."""
    if not values.shape[-1]:
        return np.full(values.shape[:-1], np.nan)
    ordered = np.sort(values, axis=-1)
    place = np.maximum((~np.isnan(values)).sum(axis=-1, keepdims=True) - 1, 0) * q
    low, high = np.floor(place).astype(np.intp), np.ceil(place).astype(np.intp)
    below, above = np.take_along_axis(ordered, low, axis=-1), np.take_along_axis(ordered, high, axis=-1)
    found: Array = (below + (above - below) * (place - low))[..., 0]
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
