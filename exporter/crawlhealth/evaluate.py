"""Evaluate: the windows and normals of many sites and the bands before, to what holds of them now. Pure.

`serve` and `backtest` call the same function.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crawlhealth import bands, score
from crawlhealth.bands import Scores, States, next_states
from crawlhealth.normals import Normals
from crawlhealth.panel import Panel
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.scoring import Scored, qualified, scored
from crawlhealth.windows import EPSILON, NOTHING

_OK, _FAILED = 5, 6
"""The columns of extractions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What the evaluation before left of N sites: their bands, the score before rounding, and when that was."""

    states: States
    smoothed: NDArray[np.float64]
    at: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What holds of the N sites of a panel at `at`.

    `score` is a whole number, NaN while unknown; `smoothed` the same before rounding. `resets` says which windows must
    become what: for the sites of `reset_sites` (by number) every window longer than that of the number in `resets`.
    """

    at: float
    scored: Scored
    score: NDArray[np.float64]
    smoothed: NDArray[np.float64]
    parser_score: NDArray[np.float64]
    extraction_window: NDArray[np.intp]
    states: States
    reset_sites: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    resets: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What N sites score, before any band: all that follows from windows and normals alone."""

    scored: Scored
    parser_score: NDArray[np.float64]
    extraction_window: NDArray[np.intp]


def evaluate(
    panel: Panel,
    normals: Normals,
    before: Before,
    *,
    new_evidence: NDArray[np.bool_],
    now: float,
    settings: ScoreSettings,
    step: float = 0.0,
) -> Judged:
    """What holds of a panel's sites at `now` (unix seconds).

    `new_evidence` says of which sites something was seen since the evaluation before; `step` is the width of what is
    counted at once in seconds, for which one observation vouches.
    """
    quiet = silence(before.states.seen_at, new_evidence, now)
    at = np.full(len(panel.sites), now)
    seen = look(panel, normals, at=at, shown=before.states.shown, quiet=quiet, settings=settings)
    return follow(
        seen, before, half_lives=panel.half_lives, new_evidence=new_evidence, now=now, settings=settings, step=step
    )


def silence(seen_at: NDArray[np.float64], new: NDArray[np.bool_], now: float) -> NDArray[np.float64]:
    """For how many seconds nothing has come of each site; 0 of one that was never seen."""
    gone: NDArray[np.float64] = np.where(new | np.isnan(seen_at), 0.0, np.maximum(now - seen_at, 0.0))
    return gone


def look(
    panel: Panel,
    normals: Normals,
    *,
    at: NDArray[np.float64],
    shown: NDArray[np.float64],
    quiet: NDArray[np.float64],
    settings: ScoreSettings,
) -> Seen:
    """The first half of `evaluate`: the sites of a panel may as well be some sites at several moments.

    `at` is when each is looked at, `shown` the half-life that showed its bad band, NaN where there is none; `quiet` is
    how long nothing has come of it, in seconds.
    """
    pages, window = _extractions(panel, quiet, settings)
    return Seen(
        scored=scored(panel, normals, at=at, shown=shown, quiet=quiet, settings=settings),
        parser_score=score.parser_score(pages, normals.extraction),
        extraction_window=window,
    )


def follow(
    seen: Seen,
    before: Before,
    *,
    half_lives: NDArray[np.float64],
    new_evidence: NDArray[np.bool_],
    now: float,
    settings: ScoreSettings,
    step: float = 0.0,
) -> Judged:
    """The second half of `evaluate`: the bands that follow from what is seen at `now` and what was before."""
    found = seen.scored
    value, recovery = found.score, found.recovery
    if settings.method == "plain":
        value = recovery = _smoothed(value, before, now, settings)
    scores = Scores(
        at=now,
        score=np.rint(value),
        recovery=np.rint(recovery),
        window=half_lives[np.maximum(found.chosen, 0)],
        new_evidence=new_evidence,
        vouched=max(bands.vouched(settings), step),
    )
    states = next_states(before.states, scores, settings)
    sites, windows = _resets(before.states, states, found, half_lives)
    return Judged(
        at=now,
        scored=found,
        score=scores.score,
        smoothed=value,
        parser_score=seen.parser_score,
        extraction_window=seen.extraction_window,
        states=states,
        reset_sites=sites,
        resets=windows,
    )


def _smoothed(value: NDArray[np.float64], before: Before, now: float, settings: ScoreSettings) -> NDArray[np.float64]:
    """Exponential smoothing of the plain score over uneven steps; the first one is taken as it is."""
    half_life = settings.smoothing.total_seconds()
    if half_life <= 0:
        return value
    keep = np.exp2(-np.maximum(0.0, now - before.at) / half_life)
    return np.where(np.isnan(before.smoothed), value, keep * before.smoothed + (1 - keep) * value)


def _resets(
    before: States, after: States, found: Scored, half_lives: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which windows have to forget what is past: when a band worsens, those longer than the one that showed it.

    Else old good traffic would lift a site that has stopped answering. When a band ends, those longer than the one that
    showed the recovery, else what is over would begin the band again.
    """
    sites = np.flatnonzero((before.band != after.band) & ~np.isnan(found.score))
    sites = sites[_bad(before.band[sites]) | _bad(after.band[sites])]
    if not len(sites):
        return sites, sites
    rank = np.array([0, 1, 2, 0])
    worse = rank[after.band[sites]] > rank[before.band[sites]]
    shown = np.searchsorted(half_lives, np.nan_to_num(before.shown[sites])).clip(0, len(half_lives) - 1)
    better = np.maximum(found.shortest[sites], shown)
    windows = np.where(worse, found.chosen[sites], better)
    longer = (windows != NOTHING) & (windows < len(half_lives) - 1)
    return sites[longer], windows[longer]


def _bad(band: NDArray[np.int8]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (band == bands.DEGRADING) | (band == bands.RESISTING)
    return found


def _extractions(
    panel: Panel, quiet: NDArray[np.float64], settings: ScoreSettings
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The failed share of extractions in the shortest window with enough of them, and its number; NaN and -1."""
    failed = panel.totals[..., _FAILED]
    tried = panel.totals[..., _OK] + failed
    enough = qualified(tried, panel.half_lives, quiet, settings)
    window = np.where(enough.any(axis=1), enough.argmax(axis=1), -1)
    sites = np.arange(len(window))
    at = np.maximum(window, 0)
    some = np.maximum(tried[sites, at], EPSILON)
    return np.where(window >= 0, failed[sites, at] / some, np.nan), window
