"""What stands side by side is told apart by everybody: colours as the three kinds of colour blindness see them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, pairwise

import numpy as np
import pytest

from crawlhealth.bundle.dashboards import colours

KINDS = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
}
"""Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision deficiency" (2009)."""
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
JUST_SEEN = 2.3
"""The difference of CIE 1976 that is just noticed; what carries meaning needs several times that."""


def lab(colour: str, kind: str) -> np.ndarray:
    coded = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(KINDS[kind]) @ linear, 0, 1)
    x, y, z = np.cbrt(np.maximum(XYZ @ seen / np.array([0.9505, 1.0, 1.089]), 1e-6))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shades", "least"),
    [
        pytest.param(colours.BANDS, 20, id="bands"),
        pytest.param(colours.SEVERITIES, 20, id="severities"),
        pytest.param(colours.SIGNALS, 10, id="signals"),
        pytest.param(colours.OUTCOMES, 10, id="outcomes"),
        pytest.param(colours.IDENTITIES, 10, id="identities"),
        pytest.param(colours.DECISIONS, 10, id="decisions"),
        pytest.param(colours.PHASES, 10, id="phases"),
    ],
)
def test_any_two_are_told_apart(kind: str, shades: Mapping[str, str], least: float) -> None:
    assert least > 4 * JUST_SEEN
    apart = {
        (one, other): float(np.linalg.norm(lab(shades[one], kind) - lab(shades[other], kind)))
        for one, other in combinations(shades, 2)
        if shades[one] != shades[other]  # refused and its cap, which never meet
    }
    assert {pair: far for pair, far in apart.items() if far < least} == {}


def test_bands_stand_apart_in_grey_too() -> None:
    light = sorted(lab(colours.BANDS[band], "all colours")[0] for band in ("normal", "degrading", "resisting"))
    assert min(b - a for a, b in pairwise(light)) > 12
