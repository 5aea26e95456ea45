"""The normal: what a site's own hours of two weeks were like, one by one and in all.

An hour is looked at six hours after its end, when it is known what came next, and remembered where it was good: so no
incident teaches anything. Levels are medians of what is remembered, without the last day.
"""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.fleet.terms import HOSTILE, SETTINGS, WIDTHS, any_of, interpolated, labelled, recent
from crawlhealth.bundle.fleet.windows import RATE, TIMED_RATE
from crawlhealth.bundle.model import Record
from crawlhealth.dispersion import DAY_HOURS, NORMAL, TOGETHER
from crawlhealth.margins import LEAST_SHARE
from crawlhealth.quantiles import P95

LEAST_HOURS: Final = 24
MATURE_HOURS: Final = 42
"""So many hours are remembered of a site that is three days old: from then on the last day is left out."""
LEAST_SPREAD_SCORE: Final = 80
WITHIN_Z: Final = NORMAL.inv_cdf(0.5 ** (1 / DAY_HOURS))
"""By so many standard deviations the slowest of a day's hours lies above the usual one."""
BETWEEN_Z: Final = NORMAL.inv_cdf(0.75)
HALF_A_DAY: Final = DAY_HOURS // 2

HOURLY: Final = "site_outcome:crawl_requests:rate1h"
HOURLY_P95: Final = "site:crawl_duration:p95"
CANARIES: Final = "site_outcome:crawl_canaries:increase1h"
BLOCK: Final = "site_signal:crawl_hour:ratio"
WIDE_BLOCK: Final = "site_signal:crawl_six_hours:ratio"
WORST: Final = "site:crawl_hour:worst_score"
LEARNT: Final = "site_signal:crawl_hour:learnt"
SWUNG: Final = "site_signal:crawl_hour:swung"
SWUNG_WIDE: Final = "site_signal:crawl_six_hours:swung"
DAY: Final = "site_day:crawl_duration:p95"
"""Of the last day's p95 by the hour, as logarithms: the `middle` one, and how far the `slowest` lies above it."""
LEVEL: Final = "site_signal:crawlhealth_baseline:median14d"
VARIANCE: Final = "site_signal:crawlhealth_baseline:variance14d"
LASTING: Final = "site_signal:crawlhealth_baseline:lasting14d"
SWING: Final = "site_window_signal:crawlhealth_baseline:variance14d"
SWING_ANGLE: Final = "site_window_signal:crawlhealth_baseline:swing_angle"
SCORE: Final = "site:crawlhealth_score"
BAND: Final = "site:crawlhealth_band:level"

SHARES_ONLY: Final = '{signal!~"latency|inverse_size"}'
LATENCY_ONLY: Final = '{signal="latency"}'
LEVELS: Final = recent(LEVEL, SHARES_ONLY, within="15m")
"""The normal shares, by site and signal."""

_COUNTS: Final = {
    "1h": f"last_over_time({HOURLY}{{@match}}[15m] offset 6h) * ${{1h}}",
    "6h": f"avg_over_time({RATE}{{@match}}[5h55m] offset 6h) * ${{6h}}",
    "24h": f"avg_over_time({HOURLY}{{@match}}[23h] offset 6h) * ${{24h}}",
}
"""Requests by outcome in so long a time, which ended six hours ago. (The first of the rates tells of five minutes.)"""
_FIRST_MINUTES: Final = "and on () vector(time() % ${1h}) < ${5m}"
"""One result an hour, of a group that is evaluated every five minutes."""


def _answered(width: str) -> str:
    answered = _COUNTS[width].replace("@match", 'outcome!="error"')
    return f"(sum by ($by) ({answered}) >= {SETTINGS.baseline.min_requests})"


def _shares(width: str) -> str:
    hostile, answered = _COUNTS[width].replace("@match", f'outcome=~"{HOSTILE}"'), _answered(width)
    return any_of(
        f'sum by ($by, signal) (label_replace({hostile}, "signal", "$$1", "outcome", "(.*)"))'
        f" / on ($on) group_left () {answered}",
        labelled(f"sum by ($by) ({hostile}) / {answered}", "signal", "refused"),
        labelled(f"1 / {answered}", "signal", "inverse_size"),
    )


def _latency() -> str:
    return labelled(f"ln(sum by ($by) ({interpolated(recent(HOURLY_P95, within='15m'))}))", "signal", "latency")


def _hourly_p95() -> str:
    return f"histogram_quantile({P95}, avg_over_time({TIMED_RATE}[55m] offset 6h)) > 0"


_GONE_BY: Final = "offset 19h"
"""An hour's dispersion is remembered a day after its end: the hours before a bad band are no good."""


def _swung(record: str) -> str:
    return (
        f"last_over_time({record}[15m] {_GONE_BY})\n{_FIRST_MINUTES}\n"
        f"unless on ($on) last_over_time({WORST}[15m] {_GONE_BY}) < {LEAST_SPREAD_SCORE}\n"
        f"unless on ($on) {recent(WORST, within='15m')} == 0"
    )


def _days() -> str:
    """What the hours of the last day were like together; once an hour."""
    hours = f"{SWUNG}{LATENCY_ONLY}[1d]"
    middle, enough = f"quantile_over_time(0.5, {hours})", f"count_over_time({hours}) >= {HALF_A_DAY}"
    either = any_of(
        labelled(f"({middle} and {enough})", "day", "middle"),
        labelled(f"(max_over_time({hours}) - {middle} and {enough})", "day", "slowest"),
    )
    return f"({either})\n{_FIRST_MINUTES}"


LEARNING: Final = (
    Record(name=HOURLY, expr=f"avg_over_time({RATE}[55m])"),
    Record(
        name=CANARIES,
        expr='sum by ($by, outcome) (round(increase(crawlhealth_requests_total{$traffic,source="canary"}[1h])))',
    ),
    Record(
        name=WORST,
        expr=any_of(
            f"0 * (max_over_time({BAND}[27h] offset 4h) >= 1)",
            '0 * (max by ($by) (max_over_time(crawlhealth_maintenance{job="$job"}[1h] offset 6h)) == 1)',
            f"min_over_time({SCORE}[1h] offset 6h)",
        ),
    ),
    Record(name=HOURLY_P95, expr=_hourly_p95()),
    Record(name=BLOCK, expr=any_of(_shares("1h"), _shares("6h"), _shares("24h"), _latency())),
    Record(name=WIDE_BLOCK, expr=any_of(_shares("6h"), _shares("24h"))),
    Record(
        name=LEARNT,
        expr=(
            f"{recent(BLOCK, within='15m')}\n{_FIRST_MINUTES}\n"
            f"unless on ($on) {recent(WORST, within='15m')} < {SETTINGS.baseline.least_score}"
        ),
    ),
    Record(name=SWUNG, expr=_swung(BLOCK)),
    Record(name=SWUNG_WIDE, expr=_swung(WIDE_BLOCK)),
    Record(name=DAY, expr=_days()),
)


def _level(matcher: str) -> str:
    mature, young = f"{LEARNT}{matcher}[14d] offset 18h", f"{LEARNT}{matcher}[3d]"
    level = SETTINGS.baseline.level
    return any_of(
        f"(quantile_over_time({level}, {mature}) and count_over_time({mature}) >= {MATURE_HOURS})",
        f"(quantile_over_time({level}, {young}) and count_over_time({young}) >= {LEAST_HOURS})",
    )


def _variance(hours: str, window: str) -> str:
    """The variance of shares beyond chance, about a straight line."""
    inverse = f'{hours}{{signal="inverse_size"}}[{window}]'
    shares = f"{hours}{SHARES_ONLY}[{window}]"
    line = f"deriv({shares}) ^ 2 * (count_over_time({shares}) * ${{1h}}) ^ 2 / 12"
    chance = f"(0.25 - (avg_over_time({shares}) - 0.5) ^ 2) * on ($on) group_left () avg_over_time({inverse})"
    return (
        f"(clamp_min(stdvar_over_time({shares}) - {line} - {chance}, 0) and count_over_time({shares}) >= {LEAST_HOURS})"
    )


def _rises(window: str) -> str:
    """The variance of what latency rises of itself: within the usual day, and between days."""
    slowest, middle = (f'{DAY}{{day="{name}"}}[{window}]' for name in ("slowest", "middle"))
    within = f"sum by ($by) (quantile_over_time(0.5, {slowest})) / {WITHIN_Z:.5g}"
    between = f"(quantile_over_time(0.75, {middle}) - quantile_over_time(0.5, {middle}))"
    apart = f"sum by ($by) ({between}) / {BETWEEN_Z:.5g}"
    days = f"sum by ($by) (count_over_time({middle}) >= {DAY_HOURS})"
    return labelled(f"(({within}) ^ 2 + ({apart}) ^ 2 and {days})", "signal", "latency")


def _young_rises() -> str:
    """The same of a site that has no such days yet: of its last day alone."""
    hours = f"{LEARNT}{LATENCY_ONLY}[1d]"
    rise = f"(max_over_time({hours}) - quantile_over_time(0.5, {hours})) / {WITHIN_Z:.5g}"
    return f"(({rise}) ^ 2 and count_over_time({hours}) >= {HALF_A_DAY})"


def _lasting() -> str:
    """What of the variance lasts: six hours together vary by it and a sixth of the rest."""
    all_of_it = recent(VARIANCE, within="15m")
    wide = f"({_variance(SWUNG_WIDE, '14d')})"
    share = f"clamp(({TOGETHER} * {wide} / ({all_of_it} > 0) - 1) / {TOGETHER - 1}, 0, 1)"
    return any_of(f"{share} * {all_of_it}", all_of_it)


def _swing() -> str:
    """The variance of what each window holds: all that lasts, and less of the rest the wider it is."""
    lasting, all_of_it = recent(LASTING, within="15m"), recent(VARIANCE, within="15m")
    return any_of(
        *[
            labelled(f"{lasting} * {1 - 1 / width:.6g} + {all_of_it} * {1 / width:.6g}", "window", window)
            for window, width in WIDTHS.items()
        ]
    )


def spread_of(share: str) -> str:
    """P (1 - p), with p in it once."""
    return f"(0.25 - ({share} - 0.5) ^ 2)"


def angle(deviation: str) -> str:
    """A standard deviation around the normal on the scale of the arcsine of the root.

    A share that moves by more than itself is not believed. Shares are folded: what matters is P (1 - p).
    """
    folded = f"on ($on, signal) group_left () (0.5 - abs({LEVELS} - 0.5))"
    scale = f"({deviation} >= {folded} or 0 * {deviation} + {folded})"
    return f"{deviation} / 2\n/ sqrt({spread_of(f'clamp({scale}, {LEAST_SHARE:g}, 0.5)')})"


LEARNT_FROM: Final = (
    Record(
        name=LEVEL,
        expr=any_of(
            f"({_level(SHARES_ONLY)})",
            f"exp({_level(LATENCY_ONLY)})",
            recent(LEVEL, within="1h"),
        ),
    ),
    Record(
        name=VARIANCE,
        expr=any_of(
            f"({_variance(SWUNG, '14d')})",
            _rises("14d"),
            f"({_variance(LEARNT, '3d')})",
            _young_rises(),
            f"0 * {recent(LEVEL, within='15m')}",
        ),
    ),
    Record(name=LASTING, expr=_lasting()),
    Record(name=SWING, expr=_swing()),
    Record(name=SWING_ANGLE, expr=angle(f"sqrt({recent(SWING, SHARES_ONLY, within='15m')})")),
)
