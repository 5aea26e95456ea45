"""The bands: latched, so that a score that swings about a threshold begins and ends nothing."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.fleet.normal import BAND, SCORE
from crawlhealth.bundle.fleet.scores import CAP, KNOWN, POINTS, SHORTEST
from crawlhealth.bundle.fleet.terms import NUMBERS, SETTINGS, any_of, labelled, recent, seconds
from crawlhealth.bundle.fleet.windows import RESET_AT, RESET_TO
from crawlhealth.bundle.model import Record
from crawlhealth.bundle.yamltext import duration

CHOSEN: Final = "site:crawlhealth_window:chosen"
SHOWN: Final = "site:crawlhealth_window:shown"
RECOVERY: Final = "site:crawlhealth_score:recovery"
BEFORE: Final = "site:crawlhealth_band:previous"
_CAP: Final = labelled(recent(CAP), "signal", "refused_cap")
_MEMORY: Final = "1d"


def _recovery() -> str:
    shown = f"({recent(SHOWN, within=_MEMORY)} or {recent(SHORTEST)} * 0 - 1)"
    upto = f"(({recent(SHORTEST)} > {shown}) or {shown})"
    numbered = f"({recent(KNOWN)} * 0 + on (window) group_left () {NUMBERS})"
    return f"round(min by ($by) ({recent(KNOWN)} and on ($on, window) ({numbered} <= on ($on) group_left () {upto})))"


def _lasted(series: str, comparison: str, over: str, length: str) -> str:
    """Where a series has been on one side of a threshold at every evaluation for so long."""
    if length == "0s":
        return f"({recent(series)} {comparison})"
    return (
        f"({over}_over_time({series}[{length}]) {comparison}"
        f" and on ($on) last_over_time({series}[5m] offset {length}) {comparison}"
        f" and on ($on) {recent(series)})"
    )


def _band() -> str:
    levels, enter, leave = SETTINGS.bands, SETTINGS.enter_after, SETTINGS.leave_after
    before = recent(BAND, within=_MEMORY)
    under50 = _lasted(SCORE, f"< {levels.resisting:g}", "max", duration(enter.resisting))
    under80 = _lasted(SCORE, f"< {levels.degrading:g}", "max", duration(enter.degrading))
    over55 = _lasted(RECOVERY, f">= {levels.leave_resisting:g}", "min", duration(leave.resisting))
    over85 = _lasted(RECOVERY, f">= {levels.leave_degrading:g}", "min", duration(leave.degrading))
    lately = f"time() - {recent(RESET_AT, within='1h')}"
    return any_of(
        f"0 * ({over55} and on ($on) {before} == 2) + 1",
        f"0 * ({under50} unless on ($on) {lately} < {seconds(enter.resisting)}) + 2",
        f"0 * ({over85} and on ($on) {before} == 1)",
        f"0 * ({under80} unless on ($on) {before} >= 1 unless on ($on) {lately} < {seconds(enter.degrading)}) + 1",
        f"{before} >= 1",
        f"0 * ({recent(SCORE)} and on ($on) {before} == 0)",
        f"0 * ({recent(SCORE)} >= {levels.degrading:g})",
    )


def _reset() -> str:
    """Which windows become what: at a change of band for which there is a score."""
    now, before = recent(BAND), recent(BEFORE, within=_MEMORY)
    shown = f"({recent(SHOWN, within=_MEMORY)} or {recent(SHORTEST)} * 0 - 1)"
    better = f"(({recent(SHORTEST)} > {shown}) or {shown})"
    return any_of(
        f"({recent(CHOSEN)} and on ($on) ({now} > ({before} or {now} * 0)))",
        f"({better} and on ($on) ({now} < {before}))",
    )


BANDS: Final = (
    Record(name=SCORE, expr=f"round(min by ($by) ({recent(KNOWN)}))"),
    Record(
        name=CHOSEN,
        expr=(
            f"min by ($by) (({recent(KNOWN)} <= on ($on) group_left () (min by ($by) ({recent(KNOWN)}) + 1e-6)) * 0"
            f" + on (window) group_left () {NUMBERS})"
        ),
    ),
    Record(name=RECOVERY, expr=_recovery()),
    Record(name=BAND, expr=_band()),
    Record(name=RESET_TO, expr=_reset()),
    Record(name=RESET_AT, expr=f"0 * ({_reset()}) + time()"),
    Record(
        name=SHOWN,
        expr=any_of(
            f"({recent(CHOSEN)} and on ($on) "
            f"({recent(BAND)} > ({recent(BEFORE, within=_MEMORY)} or {recent(BAND)} * 0)))",
            f"({recent(SHOWN, within=_MEMORY)} and on ($on) {recent(BAND)} >= 1)",
        ),
    ),
    Record(name=BEFORE, expr=f"{recent(BAND)}"),
    Record(
        name="site_signal:crawlhealth_penalty_points",
        expr=(
            f"sum by ($by, signal) (({recent(POINTS)} or {_CAP}) and on ($on, window) "
            f"({recent(KNOWN)} * 0 + on (window) group_left () {NUMBERS} == on ($on) group_left () {recent(CHOSEN)}))"
        ),
    ),
)
