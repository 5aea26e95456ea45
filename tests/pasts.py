"""The hours of some sites' past, for tests of what is learnt from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawlhealth import marks
from crawlhealth.baseline import Hours, learn
from crawlhealth.columns import FIELDS
from crawlhealth.outcome import Source
from crawlhealth.scoresettings import BaselineSettings
from crawlhealth.verdict import Accepted, Baseline
from samples import NOW

Counts = NDArray[np.float64]

SETTINGS = BaselineSettings()
BOOKS = ("books", "direct", Source.TRAFFIC)
REACH = 16 * 24
"""Hours that are handed over: those that may count, and the quiet day before them."""


def counts(count: int, **sums: ArrayLike) -> Counts:
    """The sums of one stratum in so many hours, by name: one number for all of them or one for each."""
    found = np.zeros((count, len(FIELDS)))
    for name, values in sums.items():
        found[:, FIELDS.index(name)] = values
    return found


def hours(
    strata: Mapping[tuple[str, str, Source], Counts] | Counts,
    *,
    p95: Mapping[tuple[str, str, Source], ArrayLike] | None = None,
    judged: Mapping[str, ArrayLike] | None = None,
    end: float = NOW,
) -> Hours:
    """Hours that end at `end`, of some strata or of `books` alone; not judged unless marks are given by site."""
    known = strata if isinstance(strata, Mapping) else {("books", "direct", Source.TRAFFIC): strata}
    sites: Sequence[str] = tuple(dict.fromkeys(key[0] for key in known))
    count = len(next(iter(known.values())))
    slow = np.full((len(known), count), np.nan)
    for place, key in enumerate(known):
        slow[place] = (p95 or {}).get(key, np.nan)
    seen = np.full((len(sites), count), marks.NONE, dtype=np.uint8)
    for place, site in enumerate(sites):
        seen[place] = (judged or {}).get(site, marks.NONE)
    return Hours(
        sites=sites,
        keys=[key[1:] for key in known],
        owner=np.array([sites.index(key[0]) for key in known], dtype=np.intp),
        counts=np.array(list(known.values())),
        p95=slow,
        marks=seen,
        end=end,
    )


def learnt(
    past: Hours, *, robust: bool = True, known: Baseline | None = None, accepted: Accepted | None = None
) -> Baseline | None:
    """The normal of the one site of a past."""
    by_site: dict[str, Accepted] = {} if accepted is None else {accepted.site: accepted}
    (found,) = learn(past, SETTINGS, now=NOW, robust=robust, accepted=by_site, known=[known])
    return found


def certain(found: Baseline | None) -> Baseline:
    """A normal that there must be."""
    assert found is not None
    return found


def steady(count: int = REACH, *, at: slice | None = None, requests: float = 100, **others: ArrayLike) -> Counts:
    """A site with 2 % challenges, in some of the hours."""
    found = counts(count, ok=requests * 0.98, challenge=requests * 0.02)
    for name, values in others.items():
        found[:, FIELDS.index(name)] = values
    return found if at is None else np.where(np.isin(np.arange(count), np.arange(count)[at])[:, None], found, 0.0)
