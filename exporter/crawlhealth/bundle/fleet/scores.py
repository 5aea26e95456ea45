"""The score: shares less what chance and the site's own swings explain, what they cost, the lowest of all windows."""

from __future__ import annotations

import math
from typing import Final

from crawlhealth import score
from crawlhealth.bundle.fleet.normal import (
    LATENCY_ONLY,
    LEVEL,
    LEVELS,
    SHARES_ONLY,
    SWING,
    SWING_ANGLE,
    angle,
    spread_of,
)
from crawlhealth.bundle.fleet.terms import (
    LATENCY_WINDOWS,
    NUMBERS,
    SETTINGS,
    WIDTHS,
    WINDOWS,
    any_of,
    constants,
    greater,
    interpolated,
    labelled,
    recent,
)
from crawlhealth.bundle.fleet.windows import ANSWERED, ENOUGH, SHARE, SIZE, TIMED
from crawlhealth.bundle.model import Record
from crawlhealth.margins import LEAST_SHARE, LEAST_VARIANCE, RARE_PER_DECADE
from crawlhealth.quantiles import P95, Z
from crawlhealth.scoring import SLOWEST

ABOVE: Final = "site_window_signal:crawl_share:above_normal"
DEVIATION: Final = "site_window_signal:crawl_share:deviation"
ANGLE: Final = "site_window_signal:crawl_share:deviation_angle"
ROOM: Final = "site_window_signal:crawl_share:swing_below"
USUAL: Final = "site_window_signal:crawl_share:usual_margin"
REACH: Final = "site_window_signal:crawl_share:rare_reach"
LOWER: Final = "site_window_signal:crawl_share:lower_bound"
QUANTILES: Final = "site_window_quantile:crawl_duration:quantile"
SLOW: Final = "site_window:crawl_duration:badness"
POINTS: Final = "site_window_signal:crawlhealth_penalty_points"
CAP: Final = "site_window:crawlhealth_refused_cap:points"
WINDOW_SCORE: Final = "site_window:crawlhealth_score"
SHORTEST: Final = "site:crawlhealth_window:shortest"
BELOW: Final = 0.9
"""The lower bound of p95 lies between it and this quantile, or a little lower."""
REFUSED_ONLY: Final = '{signal="refused"}'
KNOWN: Final = "site_window:crawlhealth_score:known"

_BY_SIGNAL: Final = "on ($on, signal) group_left ()"
_BY_WINDOW: Final = "on ($on, window) group_left ()"
_ABOVE: Final = recent(ABOVE)
_SIZE: Final = recent(SIZE)
_SWING: Final = recent(SWING, SHARES_ONLY, within="15m")
_BELIEVED: Final = f"clamp({LEVELS}, {LEAST_SHARE:g}, {1 - LEAST_SHARE:g})"


def _room() -> str:
    """How far below its share a swing around the normal reaches: near 1 there is no room for it."""
    times = SETTINGS.margins.swing
    moved = f"asin(sqrt({_ABOVE})) - {times:g} * {recent(SWING_ANGLE, within='15m')}"
    reached = f"({_ABOVE} - sin(clamp_min({moved}, 0)) ^ 2)"
    return f"{times:g} * sqrt({_SWING}) <= {reached}\nor {reached}"


def _usual() -> str:
    """Noise and swing together: the distance to Wilson's lower bound, and a deviation below, in squares."""
    z = SETTINGS.margins.noise
    half = f"{z} * sqrt({spread_of(_ABOVE)} * {_BY_WINDOW} {_SIZE} + {z * z / 4:.6g})"
    noise = f"({half} + {z * z:.6g} * {_ABOVE} - {z * z / 2:.6g}) / {_BY_WINDOW} ({_SIZE} + {z * z:.6g})"
    return f"sqrt(({noise}) ^ 2 + {recent(ROOM)} ^ 2)"


def _deviation() -> str:
    """By how much a share varies, by chance and of itself."""
    chance = f"clamp_min({spread_of(LEVELS)}, {LEAST_VARIANCE:g})"
    return f"sqrt((0 * {_ABOVE} + {_BY_SIGNAL} {chance}) / {_BY_WINDOW} clamp_min({_SIZE}, 1)\n+ {_SWING})"


def _reach() -> str:
    """How far above its level a share goes once in a long while."""
    rare = {
        window: max(0.0, SETTINGS.margins.rare - RARE_PER_DECADE * math.log10(width))
        for window, width in WIDTHS.items()
    }
    moved = f"{recent(ANGLE)} * on (window) group_left () {constants('window', rare)}"
    return f"sin(clamp_max(({moved}) + {_BY_SIGNAL} asin(sqrt({_BELIEVED})), pi() / 2)) ^ 2 - {_BY_SIGNAL} {_BELIEVED}"


def _lower() -> str:
    allowed = 100 - SETTINGS.bands.degrading
    weights = SETTINGS.weights
    each = constants(
        "signal",
        {
            signal: score.FULL_PENALTY_EXCESS * min(1.0, allowed / weight)
            for signal, weight in (
                ("hard_block", weights.hard_block),
                ("challenge", weights.challenge),
                ("soft_block", weights.soft_block),
            )
        },
    )
    reach = recent(REACH)
    shares = f'{recent(REACH, """{signal!="refused"}""")} - on (signal) group_left () {each}'
    refused = (
        f'{recent(REACH, """{signal="refused"}""")} - {_BY_SIGNAL}'
        f" {allowed / 100:g} * clamp_min(1 - {LEVELS}, {score.MIN_SERVED:g})"
    )
    excess = f"({_ABOVE} - {_BY_SIGNAL} {LEVELS})"
    further = f"clamp(2 - {excess} / clamp_min({reach}, {LEAST_SHARE:g}), 0, 1)"
    rare = f"(({any_of(shares, refused)}) * {further})"
    return f"clamp({_ABOVE} - {greater(rare, recent(USUAL))}, 0, 1)"


def _quantiles() -> str:
    """The quantiles that the lower bound of p95 is read between."""
    return any_of(
        *[
            labelled(f"(histogram_quantile({q}, {recent(TIMED, within='15m')}) > 0)", "quantile", f"{q}")
            for q in (P95, BELOW)
        ]
    )


def _quantile(q: float) -> str:
    found = recent(QUANTILES, f'{{quantile="{q}"}}', within="15m")
    return f"sum by ($by, window) ({interpolated(found)})"


def _slow() -> str:
    """How bad latency is, by the windows that hold histograms."""
    high, below = _quantile(P95), _quantile(BELOW)
    size = f"clamp_min({recent(SIZE, within='15m')}, 1)"
    half = f"{Z:g} * sqrt({size} * {P95 * (1 - P95):.6g} + {Z * Z / 4:.6g})"
    rank = f"({size} * {P95} + {Z * Z / 2:.6g} - {half}) / ({size} + {Z * Z:.6g})"
    noise = f"ln({high} / {below}) * ({P95} - {rank}) / {P95 - BELOW:.6g}"
    times = (SETTINGS.margins.swing * SLOWEST) ** 2
    variance = f"sum without (signal) ({recent(SWING, LATENCY_ONLY, within='15m')}) * {times:g}"
    normal = f"sum by ($by) ({recent(LEVEL, LATENCY_ONLY, within='15m')})"
    slower = f"{high} * exp(-sqrt(({noise}) ^ 2 + {variance})) / on ($on) group_left () clamp_min({normal}, 0.001)"
    return f"clamp(({slower} - 1) / {score.FULL_PENALTY_SLOWDOWN:g}, 0, 1)"


def _points() -> str:
    weights = SETTINGS.weights
    each = constants(
        "signal",
        {"hard_block": weights.hard_block, "challenge": weights.challenge, "soft_block": weights.soft_block},
    )
    excess = f'({recent(LOWER, """{signal!="refused"}""")} - {_BY_SIGNAL} {LEVELS})'
    hostile = f"clamp({excess} / {score.FULL_PENALTY_EXCESS:g}, 0, 1) * on (signal) group_left () {each}"
    slow = []
    for place, window in enumerate(WINDOWS):
        source = LATENCY_WINDOWS[place // 2]
        bad = recent(SLOW, f'{{window="{source}"}}', within="15m")
        one = f"sum by ($by) ({bad}) * {weights.latency:g}"
        slow.append(labelled(labelled(one, "signal", "latency"), "window", window))
    return any_of(hostile, *slow)


def _cap() -> str:
    """What the refused cap takes beyond the other points, by window."""
    excess = f'clamp_min({recent(LOWER, """{signal="refused"}""")} - {_BY_SIGNAL} {LEVELS}, 0)'
    left = f"100 * clamp(1 - {excess} / {_BY_SIGNAL} clamp_min(1 - {LEVELS}, {score.MIN_SERVED:g}), 0, 1)"
    return f"clamp_min(100 - sum by ($by, window) ({recent(POINTS)}) - sum without (signal) ({left}), 0)"


def _known() -> str:
    enough = recent(ENOUGH)
    errors = f"({recent(ANSWERED)} * 2 < {enough})"
    shortest = f"on ($on) group_left () {recent(SHORTEST)}"
    return (
        f"{recent(WINDOW_SCORE)}\nand on ($on, window) {enough}\nunless on ($on, window) {errors}\n"
        f"unless on ($on) ({errors} * 0 + on (window) group_left () {NUMBERS} == {shortest})"
    )


SLOWNESS: Final = (
    Record(name=QUANTILES, expr=_quantiles()),
    Record(name=SLOW, expr=_slow()),
)
SCORED: Final = (
    Record(name=ABOVE, expr=f"{recent(SHARE)} > {_BY_SIGNAL} {LEVELS}"),
    Record(name=ROOM, expr=_room()),
    Record(name=USUAL, expr=_usual()),
    Record(name=DEVIATION, expr=_deviation()),
    Record(name=ANGLE, expr=angle(recent(DEVIATION))),
    Record(name=REACH, expr=_reach()),
    Record(name=LOWER, expr=_lower()),
    Record(name=POINTS, expr=_points()),
    Record(name=CAP, expr=_cap()),
    Record(
        name=WINDOW_SCORE,
        expr=(
            f"(100 - sum by ($by, window) ({recent(POINTS)} or {recent(CAP)})\nor 0 * {_SIZE} + 100)\n"
            f"and on ($on) {recent(LEVEL, REFUSED_ONLY, within='15m')}"
        ),
    ),
    Record(
        name=SHORTEST,
        expr=(f"min by ($by) (0 * {recent(ENOUGH)} + on (window) group_left () {NUMBERS})"),
    ),
    Record(name=KNOWN, expr=_known()),
)
