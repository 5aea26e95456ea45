"""The bands: latched, so that a score that swings about a threshold begins and ends nothing.

`site:crawlhealth_band:level` is 0 for normal, 1 for degrading and 2 for resisting. It goes on from its own last result:
without a score a bad one is held, however long, and what is normal is unknown, which is no series.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from crawlhealth.bundle.alerts.score import DEGRADING, RESISTING
from crawlhealth.bundle.fleet.normal import BAND, CANARIES, LEVEL, SCORE
from crawlhealth.bundle.fleet.scores import CAP, KNOWN, POINTS, REFUSED_ONLY, SHORTEST
from crawlhealth.bundle.fleet.terms import HOSTILE, NUMBERS, SETTINGS, any_of, labelled, recent, seconds
from crawlhealth.bundle.fleet.windows import RESET_AT, RESET_TO, SEEN
from crawlhealth.bundle.model import Alert, Record
from crawlhealth.bundle.yamltext import duration
from crawlhealth.verdict import Band

CHOSEN: Final = "site:crawlhealth_window:chosen"
SHOWN: Final = "site:crawlhealth_window:shown"
RECOVERY: Final = "site:crawlhealth_score:recovery"
BEFORE: Final = "site:crawlhealth_band:previous"
SITE_POINTS: Final = "site_signal:crawlhealth_penalty_points"
NORMALLY_REFUSED: Final = 0.2
"""Six refused canaries in a row tell nothing of a site that refuses more of itself: 0.2 to the sixth is 6e-5."""
_PLACES: Final = {Band.NORMAL: 0, Band.DEGRADING: 1, Band.RESISTING: 2}
_CAP: Final = labelled(recent(CAP), "signal", "refused_cap")
_BEFORE: Final = recent(BEFORE)
_SHOWN: Final = f"({recent(SHOWN, within='1h')} or 0 * {recent(SHORTEST)} - 1)"
_CAME: Final = f"time() - {recent(SEEN)} <= ${{2m}}"
"""Requests just now: in silence a score stands still, and proves nothing more."""
_JUDGED_BY: Final = f"({recent(SHORTEST)} > {_SHOWN} or {_SHOWN})"
"""The widest window that tells of a recovery: the shortest with enough in it, or that which showed the bad band."""


def _recovery() -> str:
    numbered = f"0 * {recent(KNOWN)} + on (window) group_left () {NUMBERS}"
    within = f"({numbered}) <= on ($on) group_left () {_JUDGED_BY}"
    return f"round(min by ($by) ({recent(KNOWN)} and on ($on, window) ({within})))"


def _lasted(series: str, comparison: str, over: str, length: str) -> str:
    """Where a series has been on one side of a threshold at every evaluation for so long, if requests came just now."""
    if length == "0s":
        return f"({recent(series)} {comparison} and on ($on) {_CAME})"
    return (
        f"({over}_over_time({series}[{length}]) {comparison}"
        f" and on ($on) last_over_time({series}[10m] offset {length}) {comparison}"
        f" and on ($on) {recent(series)} and on ($on) {_CAME})"
    )


def _led(kind: str, runs: int, other: str) -> str:
    """Sites without a score of which an hour's canaries all came to the same."""
    same, others = (f"sum by ($by) ({recent(CANARIES, f'{{{one}}}', within='15m')})" for one in (kind, other))
    return f"({same} >= {runs} unless on ($on) {others} >= 1 unless on ($on) {recent(SCORE)})"


def _band() -> str:
    levels, enter, leave, led = SETTINGS.bands, SETTINGS.enter_after, SETTINGS.leave_after, SETTINGS.canaries
    under50 = _lasted(SCORE, f"< {levels.resisting:g}", "max", duration(enter.resisting))
    under80 = _lasted(SCORE, f"< {levels.degrading:g}", "max", duration(enter.degrading))
    over55 = _lasted(RECOVERY, f">= {levels.leave_resisting:g}", "min", duration(leave.resisting))
    over85 = _lasted(RECOVERY, f">= {levels.leave_degrading:g}", "min", duration(leave.degrading))
    served = _led('outcome="ok"', led.served, f'outcome=~"{HOSTILE}"')
    refused = _led(f'outcome=~"{HOSTILE}"', led.refused, 'outcome="ok"')
    used_to_it = f"{recent(LEVEL, REFUSED_ONLY, within='15m')} > {NORMALLY_REFUSED}"
    lately = f"time() - {recent(RESET_AT, within='1h')}"
    return any_of(
        f"0 * (({over55} or {served}) and on ($on) {_BEFORE} == 2) + 1",
        f"0 * ({under50} unless on ($on) {lately} < {seconds(enter.resisting)}) + 2",
        f"0 * ({refused} unless on ($on) {used_to_it}) + 2",
        f"0 * ({over85} and on ($on) {_BEFORE} == 1)",
        f"0 * ({under80} unless on ($on) {_BEFORE} >= 1 unless on ($on) {lately} < {seconds(enter.degrading)}) + 1",
        f"({_BEFORE} >= 1)",
        f"0 * ({recent(SCORE)} and on ($on) {_BEFORE} == 0)",
        f"0 * ({recent(SCORE)} >= {levels.degrading:g})",
    )


def _became(comparison: str) -> str:
    return f"{recent(BAND)} {comparison} ({_BEFORE} or 0 * {recent(BAND)})"


def _reset() -> str:
    """Which window the longer ones are to become, at a change of band: that which showed it."""
    return any_of(
        f"({recent(CHOSEN)} and on ($on) {_became('>')})",
        f"({_JUDGED_BY} and on ($on) {_became('<')})",
    )


def _shown() -> str:
    return any_of(
        f"({recent(CHOSEN)} and on ($on) {_became('>')})",
        f"({recent(SHOWN, within='1h')} and on ($on) {recent(BAND)} >= 1)",
    )


def _chosen() -> str:
    lowest = f"{recent(KNOWN)} <= on ($on) group_left () (min by ($by) ({recent(KNOWN)}) + 1e-6)"
    return f"min by ($by) (0 * ({lowest}) + on (window) group_left () {NUMBERS})"


def _points() -> str:
    numbered = f"0 * {recent(KNOWN)} + on (window) group_left () {NUMBERS}"
    chosen = f"({numbered}) == on ($on) group_left () {recent(CHOSEN)}"
    return f"sum by ($by, signal) (({recent(POINTS)} or {_CAP}) and on ($on, window) ({chosen}))"


def _named() -> str:
    return any_of(*[labelled(f"({recent(BAND)} == bool {place})", "band", band) for band, place in _PLACES.items()])


BANDS: Final = (
    Record(name=BEFORE, expr=recent(BAND, within="6h")),
    Record(name=SCORE, expr=f"round(min by ($by) ({recent(KNOWN)}))"),
    Record(name=CHOSEN, expr=_chosen()),
    Record(name=RECOVERY, expr=_recovery()),
    Record(name=BAND, expr=_band()),
    Record(name=RESET_TO, expr=_reset()),
    Record(name=RESET_AT, expr=f"0 * ({_reset()}) + time()"),
    Record(name=SHOWN, expr=_shown()),
    Record(name=SITE_POINTS, expr=_points()),
    Record(name="site_band:crawlhealth_band", expr=_named()),
)

ALERTS: Final[tuple[Alert, ...]] = (
    replace(RESISTING, expr=f"last_over_time({BAND}[$window]) == 2"),
    replace(DEGRADING, expr=f"last_over_time({BAND}[$window]) >= 1"),
)
"""The same alerts, by the latched bands."""
