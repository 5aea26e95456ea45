"""Episodes: how often something was on without cause, and how soon and for how many it was when there was one. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]

RATE: Final = 0.1
"""False alarms a site-week that thresholds are set to."""
WEEK: Final = 168.0
STEP: Final = 0.25
"""Thresholds on a score are multiples of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How many of some sites were found, as a share, and after how many hours the median one was.

    `median` is over all sites, so it is None where less than half were found.
    """

    median: float | None
    share: float

    @classmethod
    def of(cls, on: Flags, *, step: float = 1.0) -> Found:
        """From what was on of N sites at the end of each step, `step` hours wide."""
        first = np.where(on.any(axis=1), (on.argmax(axis=1) + 1) * step, np.inf)
        median = float(np.median(first))
        return cls(median=median if np.isfinite(median) else None, share=float(on.any(axis=1).mean()))


def a_week(on: Flags, *, step: float = 1.0, gap: int = 0) -> float:
    """How many episodes a site has in a week. Those with at most `gap` steps between them are one."""
    merged = on.copy()
    for back in range(1, gap + 1):
        merged[:, back:] |= on[:, :-back]
    begun = merged[:, 0].sum() + (merged[:, 1:] & ~merged[:, :-1]).sum()
    return float(begun) / (on.size * step / WEEK)


def threshold(calm: NDArray[np.float32], *, gap: int, rate: float = RATE) -> float:
    """The highest threshold under which calm scores have no more than so many episodes a site-week."""
    for value in np.arange(100.0, 0.0, -STEP):
        if a_week(calm < value, gap=gap) <= rate:
            return float(value)
    return 0.0
