"""Scoring: what the windows of many sites cost against their normals, by either method, in arrays. Pure.

`plain` reads the shortest window that holds enough requests and takes it at its word. `robust` reads every window that
does, subtracts what chance explains (see margins), expects of each the mix of its routes, and takes the lowest score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth import drift, margins, score
from crawlhealth.normals import HOSTILE, LATENCY, Normals
from crawlhealth.panel import Panel
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.stats import effective_size
from crawlhealth.verdict import Unknown
from crawlhealth.weighted import OUTCOMES, SQUARED
from crawlhealth.windows import EPSILON

Array = NDArray[np.float64]

UNKNOWNS: Final = (None, *Unknown)
"""Why there is no score, by its number in arrays; 0 where there is one."""
_NUMBER: Final = {why: number for number, why in enumerate(UNKNOWNS)}
ANSWERED: Final = OUTCOMES - 1
EQUAL: Final = 1e-6
"""Windows whose scores differ by less hold the same, as after a reset: the shortest of them gives the score."""
SLOWEST: Final = 1.9
"""By so many standard deviations the slowest hour of an ordinary day lies above the usual one: it costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What N sites score; NaN is unknown.

    `chosen` is the window (by number) that gives the score, `shortest` the first with enough requests; -1 for none.
    `score` and `recovery` (that of the windows that a recovery is judged by) are not rounded; `raw` is the plain
    formula in the shortest window with enough requests. `points` are of hard_block, challenge, soft_block, latency and
    refused_cap. `now` and `normal` are the four shares and the latency that are compared, `lower` the shares less their
    margins, `drift` the early warning in standard deviations, in the same order. `requests` and `answered` are (N, K).
    """

    chosen: NDArray[np.intp]
    shortest: NDArray[np.intp]
    score: Array
    recovery: Array
    raw: Array
    points: Array
    now: Array
    normal: Array
    lower: Array
    drift: Array
    requests: Array
    answered: Array
    unknown: NDArray[np.intp]


def scored(panel: Panel, normals: Normals, *, at: Array, shown: Array, quiet: Array, settings: ScoreSettings) -> Scored:
    """The scores of a panel.

    `at` is when each site is looked at, `shown` the half-life that showed its bad band, NaN where there is none;
    `quiet` is how long nothing has come of it, in seconds.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        if settings.method == "plain":
            return _plain(panel, normals, quiet, settings)
        return _robust(panel, normals, settings, at=at, shown=shown, quiet=quiet)


def qualified(requests: Array, half_lives: Array, quiet: Array, settings: ScoreSettings) -> NDArray[np.bool_]:
    """The windows (N, K) that hold enough requests to be read; none once no window does.

    In silence those stay that held enough when the last request came. Every rate in a window is what it was, so that
    the score stands still; else the short windows, which saw what came last, would give way to wider ones.
    """
    least = max(1, settings.min_requests) - EPSILON
    faded = np.exp2(-np.minimum(quiet[:, None] / half_lives, 1000.0))
    found: NDArray[np.bool_] = (requests >= least * faded) & (requests >= least).any(axis=1, keepdims=True)
    return found


def _robust(
    panel: Panel, normals: Normals, settings: ScoreSettings, *, at: Array, shown: Array, quiet: Array
) -> Scored:
    requests, answered = _sum(panel.totals, OUTCOMES), _sum(panel.totals, ANSWERED)
    shares = _shares(panel.totals, answered)
    sizes = effective_size(answered, panel.totals[..., -SQUARED])
    expected = _expected(panel, normals, answered)
    expected = np.clip(expected + normals.seasons(at - quiet, panel.half_lives), 0.0, 1.0)
    swings = normals.swings(panel.half_lives)
    critical = _critical(normals, settings)
    lower = margins.lower_bounds(
        shares, sizes, normal=expected, swings=swings[..., :LATENCY], critical=critical[:, None, :],
        half_lives=panel.half_lives, margins=settings.margins,
    )  # fmt: skip
    slow = _slowness(panel, normals, swings[..., LATENCY] * settings.margins.swing * SLOWEST)
    points = _points(lower, expected, slow, settings)
    by_window = np.clip(100 - _sum(points, points.shape[-1]), 0.0, 100.0)
    enough = qualified(requests, panel.half_lives, quiet, settings)
    mostly_errors = answered * 2 < requests
    open_ = enough & ~mostly_errors
    lowest = np.where(open_, by_window, np.inf)
    shortest = _first(enough)
    judged_by = np.maximum(shortest, _numbers(shown, panel.half_lives))
    recovery = np.where(np.arange(lowest.shape[1]) <= judged_by[:, None], lowest, np.inf).min(axis=1)
    unknown = _unknown(normals, shortest, mostly_errors[np.arange(len(shortest)), np.maximum(shortest, 0)])
    known = unknown == 0
    best = lowest.min(axis=1)
    chosen = np.where(known, (lowest <= best[:, None] + EQUAL).argmax(axis=1), np.where(shortest >= 0, shortest, -1))
    total = np.concatenate([shares, _latency(panel, panel.p95)[..., None]], axis=-1)
    usual = _latency(panel, np.where(np.isnan(panel.p95), np.nan, normals.row_latency[:, None]))
    usual = np.where(np.isnan(usual), normals.latency[:, None], usual)
    normal = np.concatenate([expected, usual[..., None]], axis=-1)
    return Scored(
        chosen=chosen,
        shortest=shortest,
        score=np.where(known, best, np.nan),
        recovery=np.where(known, recovery, np.nan),
        raw=_raw(panel, normals, shortest=shortest, known=known, settings=settings),
        points=_at(points, chosen),
        now=_at(total, chosen),
        normal=_at(normal, chosen),
        lower=_at(lower, chosen),
        drift=drift.standardised(total, sizes, normal=normal, swings=swings, half_lives=panel.half_lives),
        requests=requests,
        answered=answered,
        unknown=unknown,
    )


def _plain(panel: Panel, normals: Normals, quiet: Array, settings: ScoreSettings) -> Scored:
    requests = _sum(panel.totals, OUTCOMES)
    shortest = _first(qualified(requests, panel.half_lives, quiet, settings))
    unknown = _unknown(normals, shortest, np.zeros(len(shortest), dtype=np.bool_))
    known = unknown == 0
    shares = _shares(panel.totals, requests)
    now = np.concatenate([shares, _latency(panel, panel.p95)[..., None]], axis=-1)
    now = _at(now, shortest)
    normal = np.concatenate([normals.rates, normals.latency[:, None]], axis=-1)
    slow = np.nan_to_num(score.latency_badness(now[:, LATENCY], normals.latency))
    points = _points(now[:, :LATENCY], normals.rates, slow, settings)
    raw = np.where(known, np.maximum(0.0, 100 - _sum(points, 4)), np.nan)
    value = np.where(known, raw - points[:, 4], np.nan)
    return Scored(
        chosen=shortest,
        shortest=shortest,
        score=value,
        recovery=value,
        raw=raw,
        points=points,
        now=now,
        normal=normal,
        lower=now[:, :LATENCY],
        drift=np.full(now.shape, np.nan),
        requests=requests,
        answered=_sum(panel.totals, ANSWERED),
        unknown=unknown,
    )


def _raw(
    panel: Panel, normals: Normals, *, shortest: NDArray[np.intp], known: NDArray[np.bool_], settings: ScoreSettings
) -> Array:
    """The plain formula in the shortest window that holds enough, of answered requests as the normals are."""
    shares = _at(_shares(panel.totals, _sum(panel.totals, ANSWERED)), shortest)
    now = _latency(panel, panel.p95)
    slow = np.nan_to_num(score.latency_badness(_at(now, shortest), normals.latency))
    points = _points(shares, normals.rates, slow, settings)
    return np.where(known, np.maximum(0.0, 100 - _sum(points, 4)), np.nan)


def _points(shares: Array, normal: Array, slow: Array, settings: ScoreSettings) -> Array:
    """What four shares and the badness of latency cost, and what the cap takes beyond that."""
    weights = settings.weights
    hostile = np.array([weights.hard_block, weights.challenge, weights.soft_block])
    bad = score.share_badness(shares[..., : len(HOSTILE)], normal[..., : len(HOSTILE)])
    points = np.concatenate([hostile * bad, (weights.latency * slow)[..., None]], axis=-1)
    cap = score.refused_cap(shares[..., 3], normal[..., 3]) if settings.cap else np.full(slow.shape, 100.0)
    left = np.maximum(0.0, 100 - _sum(points, 4))
    return np.concatenate([points, np.maximum(0.0, left - cap)[..., None]], axis=-1)


def _latency(panel: Panel, seconds: Array) -> Array:
    """Latencies of rows by site: the geometric mean by what each served, as a baseline has it; NaN for none."""
    served = np.where(np.isnan(seconds), 0.0, panel.rows[..., 0])
    total = _by_site(served, panel)
    logs = _by_site(np.where(served > 0, np.log(seconds) * served, 0.0), panel)
    return np.where(total > 0, np.exp(logs / np.where(total > 0, total, 1.0)), np.nan)


def _slowness(panel: Panel, normals: Normals, swings: Array) -> Array:
    """How bad latency is, 0 to 1, by window: the mean over the routes, each against its own, by what they answer.

    So traffic that moves to a slower route moves nothing, and a slow one that begins to refuse hides nothing. Each p95
    counts as its lower bound, widened by how far the site's own hours rise on an ordinary day, both as logarithms.
    """
    noise = np.log(panel.p95 / panel.p95_low)
    low = panel.p95 * np.exp(-np.hypot(noise, swings[panel.owner]))
    bad = score.latency_badness(low, normals.row_latency[:, None])
    timed = ~np.isnan(bad)
    answered = np.where(timed, _sum(panel.rows, ANSWERED), 0.0)
    weighed = _by_site(np.where(timed, bad, 0.0) * answered, panel)
    total = _by_site(answered, panel)
    return np.clip(np.where(total > 0, weighed / np.where(total > 0, total, 1.0), 0.0), 0.0, 1.0)


def _expected(panel: Panel, normals: Normals, answered: Array) -> Array:
    """The shares that are normal for the mix of routes and sources in each window: (N, K, 4)."""
    part = _sum(panel.rows, ANSWERED)
    mixed = _by_site(part[..., None] * normals.row_rates[:, None, :], panel)
    some = (answered > 0)[..., None]
    mean = mixed / np.where(some, answered[..., None], 1.0)
    one = np.bincount(panel.owner, minlength=len(panel.sites))[:, None, None] <= 1
    single = np.full((len(panel.sites), 1, normals.rates.shape[1]), np.nan)
    single[panel.owner, 0] = normals.row_rates
    return np.where(some, np.where(one, single, mean), normals.rates[:, None, :])


def _critical(normals: Normals, settings: ScoreSettings) -> Array:
    """The excess of each share at which it alone ends the band `normal`: (N, 4)."""
    allowed = 100 - settings.bands.degrading
    weights = settings.weights
    each = [
        score.FULL_PENALTY_EXCESS * min(1.0, allowed / weight) if weight > 0 else 1.0
        for weight in (weights.hard_block, weights.challenge, weights.soft_block)
    ]
    cap = allowed / 100 * np.maximum(1 - normals.rates[:, 3], score.MIN_SERVED)
    return np.column_stack([*[np.full(len(cap), one) for one in each], cap])


def _unknown(normals: Normals, shortest: NDArray[np.intp], mostly_errors: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Why each site has no score, by number; the first reason that applies."""
    found = np.where(normals.refused, _NUMBER[Unknown.BASELINE_REFUSED], 0)
    found = np.where(normals.known, found, _NUMBER[Unknown.NO_BASELINE])
    found = np.where(mostly_errors, _NUMBER[Unknown.MOSTLY_ERRORS], found)
    return np.where(shortest < 0, _NUMBER[Unknown.NOT_ENOUGH_REQUESTS], found)


def _shares(totals: Array, of: Array) -> Array:
    """Three hostile shares and the refused one, of these totals; 0 of nothing."""
    hostile = totals[..., 1:ANSWERED]
    refused = _sum(hostile, hostile.shape[-1])[..., None]
    some = (of > 0)[..., None]
    return np.where(some, np.concatenate([hostile, refused], axis=-1) / np.where(some, of[..., None], 1.0), 0.0)


def _sum(values: Array, columns: int) -> Array:
    """The sum of the first columns, one after another: numpy's own may add in another order for other shapes."""
    total = values[..., 0]
    for column in range(1, columns):
        total = total + values[..., column]
    return total


def _by_site(values: Array, panel: Panel) -> Array:
    """The sums of rows by site; 0 for a site without rows."""
    found = np.zeros((len(panel.sites), *values.shape[1:]))
    starts = np.flatnonzero(np.diff(panel.owner, prepend=-1))
    if len(starts) == len(values):
        found[panel.owner] = values
    elif len(starts):
        found[panel.owner[starts]] = np.add.reduceat(values, starts, axis=0)
    return found


def _first(holds: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The first window of each site that holds; -1 for none."""
    return np.where(holds.any(axis=1), holds.argmax(axis=1), -1)


def _numbers(half_lives: Array, windows: Array) -> NDArray[np.intp]:
    """The number of the window with each half-life; -1 for NaN."""
    return np.where(np.isnan(half_lives), -1, np.minimum(np.searchsorted(windows, half_lives), len(windows) - 1))


def _at(values: Array, chosen: NDArray[np.intp]) -> Array:
    """What stands at the chosen window of each site (the first where none is)."""
    found: Array = values[np.arange(len(chosen)), np.maximum(chosen, 0)]
    return found
