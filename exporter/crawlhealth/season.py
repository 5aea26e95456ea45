"""Season: how a site's shares follow the hour of the day and the day of the week, where its own past proves it. Pure.

The log-odds of a share are a level, an effect of the hour of the day and one of the day of the week, each fitted to the
hours of two weeks and shrunk towards 0. What is believed is decided share by share by cross-validation (Stone 1974):
the effects of each week must foretell the other week better than its level alone does, and days of the week better than
hours of the day. Time is UTC.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.phases import DAY_HOURS, EFFECTS, HOUR, WEEK_DAYS, Phases, PhaseSums, day_of_week

Array = NDArray[np.float64]

LEAST_GAIN: Final = 0.1
"""By this share the squared error of what is foretold must be less for more effects to be believed."""
ROUNDING: Final = 1e-9
"""Squared errors no larger than that prove nothing: hours that are all alike differ by rounding."""
LEAST_HOURS: Final = 84
"""So many usable hours of each week are needed, half of them."""
HALF_TRUSTED: Final = 100.0
"""An hour of so many requests counts half as much as one of very many."""
SAMPLES: Final = 8
"""A window is read at so many ages, between which it holds equal parts."""
LEAST_ODDS: Final = 1e-4
"""The smallest share that effects are added to."""


def fitted(
    answered: Array, hostile: Array, usable: NDArray[np.bool_], starts: Array, *, known: Array, longest: str
) -> Array:
    """The effects on S shares and on the volume of M series: (M, S + 1, EFFECTS), 0 where nothing is proved.

    `answered` (M, H) are requests and `hostile` (M, S, H) those of them that the shares are of, in usable hours, which
    begin at `starts` (H; unix seconds). `known` are effects that were proved before: they stay where the hours neither
    prove others nor disprove them. `longest` is `week` or `day`, how long a season may be.

    Those of shares are added to log-odds, those of the volume to its logarithm.
    """
    weights = np.where(usable, answered / (answered + HALF_TRUSTED), 0.0)
    last = starts[np.flatnonzero(usable.any(axis=0))[-1:]].sum()
    second = int(np.searchsorted(starts, last - WEEK_DAYS * DAY_HOURS * HOUR, side="right"))
    halves = [weights[:, :second], weights[:, second:]]
    enough = np.all([((half > 0).sum(axis=1) >= LEAST_HOURS) for half in halves], axis=0)
    found = known.copy()
    some = np.flatnonzero(enough)
    if len(some):
        of, weights = answered[some], weights[some]
        values = np.concatenate([_log_odds(hostile[some], of[:, None]), np.log(np.maximum(of, 1.0))[:, None]], axis=1)
        found[some] = _proved(_about_a_line(values, weights), weights, Phases.at(starts), second, known[some])
    if longest == "day":
        found[..., DAY_HOURS:] = 0.0
    return found


def without(shares: Array, effects: Array, starts: Array) -> Array:
    """What shares (M, S, H) of hours that begin at `starts` (H) would be without effects (M, S + 1, EFFECTS)."""
    found = shares.copy()
    some = _seasonal(effects)
    of_hour, of_day = Phases.at(starts).of(effects[some, :-1])
    left = shares[some] * np.exp(-of_hour - of_day)
    found[some] = left / (1 - shares[some] + left)
    return found


def at_hours(effects: Array, level: Array, starts: Array) -> Array:
    """By how much shares differ from their level (M, S) in hours that begin at `starts` (H): (M, S, H)."""
    found = np.zeros((*level.shape, len(starts)))
    some = _seasonal(effects)
    of_hour, of_day = Phases.at(starts).of(effects[some, :-1])
    found[some] = _moved(level[some, :, None], of_hour + of_day)
    return found


def in_windows(effects: Array, level: Array, at: Array, half_lives: Array) -> Array:
    """By how much shares differ from their level in windows of K half-lives that are read at `at` (M): (M, K, S).

    A window holds more of the hours that have more requests.
    """
    parts = (np.arange(SAMPLES) + 0.5) / SAMPLES
    times = at[:, None, None] + half_lives[:, None] * np.log2(1 - parts)
    within = (times / HOUR - 0.5) % DAY_HOURS
    first = np.floor(within).astype(np.intp) % DAY_HOURS
    share = within - np.floor(within)
    day = day_of_week(times)
    each = np.arange(len(at))[:, None, None]
    by_series = effects.transpose(0, 2, 1)  # series, effect, share
    moved = (
        by_series[each, first] * (1 - share)[..., None]
        + by_series[each, (first + 1) % DAY_HOURS] * share[..., None]
        + by_series[each, DAY_HOURS + day]
    )
    volume = np.exp(moved[..., -1])
    summed = (_moved(level[:, None, None], moved[..., :-1]) * volume[..., None]).sum(axis=2)
    found: Array = summed / volume.sum(axis=2)[..., None]
    return found


def packed(effects: Array) -> bytes:
    """The effects of one series (S + 1, EFFECTS) in few bytes."""
    return bytes(effects.astype("<f4").tobytes())


def unpacked(effects: bytes) -> Array:
    """The same again."""
    return np.frombuffer(effects, dtype="<f4").astype(np.float64).reshape(-1, EFFECTS)


def _seasonal(effects: Array) -> NDArray[np.intp]:
    """The series whose shares have a season."""
    return np.flatnonzero(effects[:, :-1].any(axis=(1, 2)))


def _moved(level: Array, effects: Array) -> Array:
    believed = np.clip(level, LEAST_ODDS, 1 - LEAST_ODDS)
    odds = believed / (1 - believed) * np.exp(effects)
    return np.where(effects == 0, 0.0, odds / (1 + odds) - believed)


def _log_odds(some: Array, of: Array) -> Array:
    return np.log((some + 0.5) / (of - some + 0.5))


def _proved(values: Array, weights: Array, hours: Phases, second: int, known: Array) -> Array:
    """The effects that each half of the hours foretells of the other, else those that are known and not disproved.

    The later half begins with the hour of this number.
    """
    early, late = (
        PhaseSums.of(values[..., some], weights[:, some], hours.some(some))
        for some in (slice(None, second), slice(second, None))
    )
    errors = _foretold(early, late) + _foretold(late, early)
    errors = errors + ROUNDING
    by_day = errors[..., 1] < (1 - LEAST_GAIN) * errors[..., 0]
    by_week = errors[..., 2] < (1 - LEAST_GAIN) * np.minimum(errors[..., 0], errors[..., 1])
    whole = early.plus(late)
    beside = whole.less(known)
    kept = (beside.error() <= whole.error()) & np.any(known != 0, axis=-1)
    found = known + beside.effects()
    by_hour, of_week = found[..., :DAY_HOURS], found[..., DAY_HOURS:]
    of_day = np.where((by_week | by_day)[..., None], by_hour, known[..., :DAY_HOURS] * kept[..., None])
    of_week = np.where(by_week[..., None], of_week, known[..., DAY_HOURS:] * kept[..., None])
    return np.concatenate([of_day, of_week], axis=-1)


def _about_a_line(values: Array, weights: Array) -> Array:
    """What is left of values beside the line of least squares: two weeks of a drift are no week."""
    total = weights.sum(axis=-1)
    place = np.arange(values.shape[-1], dtype=np.float64)
    time = place - (weights @ place / total)[:, None]
    slope = (values @ (weights * time)[..., None])[..., 0] / (weights * time**2).sum(axis=-1)[:, None]
    level = (values @ weights[..., None]) / total[:, None, None]
    left: Array = values - level - slope[..., None] * time[:, None]
    return left


def _foretold(learnt: PhaseSums, asked: PhaseSums) -> Array:
    """The squared errors of what one half foretells of the other by its level, by hours of the day, and by both."""
    both = learnt.effects()
    hours = both.copy()
    hours[..., DAY_HOURS:] = 0.0
    return np.stack([asked.error(), asked.less(hours).error(), asked.less(both).error()], axis=-1)
