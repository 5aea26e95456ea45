"""Margins: what of a share above its normal chance explains, so that only the rest costs points. Pure.

Two things move a share without meaning anything: the noise of a finite window, and the site's own swings. The margin is
the larger of

- both of them together, as standard deviations added in squares: the distance to Wilson's lower bound, and `swing`
  times the dispersion of the site's own hours in a window of this width;
- what both may reach once in a long while (`rare` standard deviations), less the excess that costs the band `normal`.
  Calm sites never get there and are judged fast; restless ones are not blamed for what they do of themselves. Of a
  share that lies further above its normal than that, less is explained, and nothing at twice as far.

The rare reach is taken on the scale of the arcsine of the root, on which the spread of a share hardly depends on it
(Bartlett 1947), and a wide window, which is seldom a new one, may reach a little less far.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.normals import WIDTH
from crawlhealth.scoresettings import Margins
from crawlhealth.stats import wilson_lower

Array = NDArray[np.float64]

RARE_PER_DECADE: Final = 0.25
"""By how many standard deviations `rare` is less for a window ten times as wide."""
LEAST_SHARE: Final = 1e-3
"""The smallest normal share whose spread is believed."""
LEAST_VARIANCE: Final = 1e-4
"""The smallest p (1 - p) that noise is reckoned by."""


def lower_bounds(
    shares: Array,
    sizes: Array,
    *,
    normal: Array,
    swings: Array,
    critical: Array,
    half_lives: Array,
    margins: Margins,
) -> Array:
    """The shares less their margins, 0 to 1: (N, K, S) for N sites, K windows and S signals.

    `sizes` (N, K) are effective sizes, `normal` the expected shares, `swings` the dispersion of the site's own rates in
    windows of these half-lives, and `critical` the excess of each signal that ends the band `normal`.
    """
    noise = shares - wilson_lower(shares, sizes[..., None], margins.noise)
    usual = np.hypot(noise, _below(shares, normal, swings, margins.swing))
    sampling = np.sqrt(np.maximum(normal * (1 - normal), LEAST_VARIANCE) / np.maximum(sizes, 1.0)[..., None])
    rare = margins.rare - RARE_PER_DECADE * np.log10(np.maximum(half_lives * WIDTH, 1.0))
    reach = _above(normal, np.hypot(sampling, swings), np.maximum(rare, 0.0)[None, :, None])
    further = np.clip(2 - (shares - normal) / np.maximum(reach, LEAST_SHARE), 0.0, 1.0)
    return np.clip(shares - np.maximum(usual, (reach - critical) * further), 0.0, 1.0)


def _below(share: Array, normal: Array, deviation: Array, times: float) -> Array:
    """How far below a share a deviation reaches that was seen around its normal: near 1 there is no room for it."""
    moved = np.arcsin(np.sqrt(share)) - times * _angle(normal, deviation)
    found: Array = np.minimum(times * deviation, share - np.sin(np.maximum(moved, 0.0)) ** 2)
    return found


def _above(share: Array, deviation: Array, times: Array) -> Array:
    """How far above a share so many deviations reach."""
    believed = np.clip(share, LEAST_SHARE, 1 - LEAST_SHARE)
    angle = np.arcsin(np.sqrt(believed)) + times * _angle(share, deviation)
    return np.sin(np.minimum(angle, np.pi / 2)) ** 2 - believed


def _angle(share: Array, deviation: Array) -> Array:
    """A standard deviation around a share on the scale of the arcsine of the root.

    A share that moves by more than itself is not taken at its word: the scale is steepest at its ends, and from there
    a small deviation would reach to anywhere.
    """
    least = np.clip(deviation, LEAST_SHARE, 0.5)
    believed = np.clip(share, least, 1 - least)
    found: Array = deviation / (2 * np.sqrt(believed * (1 - believed)))
    return found
