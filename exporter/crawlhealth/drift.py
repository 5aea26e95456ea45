"""Drift: the early warning, how far a site has moved from its own normal in standard deviations. Pure.

It is an exponentially weighted moving average (Roberts 1959) of the rates, standardised: the deviation of the share in
the wider windows, on average, over what the noise of the sample and the site's own hours explain in a window of that
width, on the scale of the arcsine of the root, on which the spread of a share hardly depends on it. It raises an alert
for information and never changes the score.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.normals import LATENCY

SHORTEST: Final = 3600.0
"""Windows of this half-life and longer are read, in seconds; the longest in any case."""
LEAST_SHARE: Final = 0.02
"""The smallest share whose spread is believed: what lies under it, now or normally, counts as it."""
LEAST_SIZE: Final = 30.0
"""Windows of a smaller effective size say nothing."""
LEAST_SWING: Final = 0.05
"""The least dispersion of the logarithm of latency."""


def standardised(
    values: NDArray[np.float64],
    sizes: NDArray[np.float64],
    *,
    normal: NDArray[np.float64],
    swings: NDArray[np.float64],
    half_lives: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The mean deviation over the wider windows, by site and signal (N, 5); NaN where none can tell.

    `values` and `normal` (N, K, 5) are four shares and the latency in seconds, `swings` the dispersion of the site's
    own rates in windows of these half-lives, `sizes` (N, K) effective sizes.
    """
    wide = half_lives >= min(SHORTEST, half_lives[-1])
    values, sizes, normal, swings = values[:, wide], sizes[:, wide, None], normal[:, wide], swings[:, wide]
    size = np.maximum(sizes, 1.0)
    share, usual = (np.clip(one[..., :LATENCY], LEAST_SHARE, 1 - LEAST_SHARE) for one in (values, normal))
    spread = np.sqrt(usual * (1 - usual) / size + swings[..., :LATENCY] ** 2)
    root = 2 * np.sqrt(usual * (1 - usual))
    moved = (np.arcsin(np.sqrt(share)) - np.arcsin(np.sqrt(usual))) * root / spread
    slower = np.log(values[..., LATENCY:] / normal[..., LATENCY:])
    slower = slower / np.hypot(np.maximum(swings[..., LATENCY:], LEAST_SWING), 1 / np.sqrt(size))
    found = np.concatenate([moved, slower], axis=-1)
    known = (sizes >= LEAST_SIZE) & np.isfinite(found)
    number = known.sum(axis=1)
    total = np.where(known, found, 0.0).sum(axis=1)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)
