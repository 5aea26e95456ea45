"""The windows: what each half-life holds of every site, from the counters alone.

`site_window_outcome:crawl_requests:weighted` are exponentially weighted sums that go on from their own last result:
what was there fades by the time since then, whatever that is, and what came since is added. A late or missed evaluation
loses nothing, a result that is not visible yet is no harm, and after an hour without any they begin anew.

In silence those windows go on being read that held enough when the last request came: so the score stands still.
"""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.fleet.terms import (
    HOSTILE,
    LATENCY_WINDOWS,
    SETTINGS,
    WINDOWS,
    add_up,
    any_of,
    labelled,
    recent,
    windowed,
)  # fmt: skip
from crawlhealth.bundle.model import Record

MIN_REQUESTS: Final = SETTINGS.min_requests - 1e-6
MEMORY: Final = "1h"
"""So long ago the last result may be."""
LATEST: Final = "15m"
"""And so much time at most does a rate stand for."""
NO_RESET: Final = 9
VANISHED: Final = 1e-200
"""Sums of weights that are less are nothing. Shares of tiny sums are as good: a score stands still in long silence."""

RATE: Final = "site_outcome:crawl_requests:rate5m"
ELAPSED: Final = "site:crawl_requests:elapsed"
CAME: Final = "site_outcome:crawl_requests:came"
FADE: Final = "site_window:crawl_requests:fade"
FRESH: Final = "site:crawlhealth_reset:fresh"
CONTENT: Final = "site_outcome:crawl_requests:reset_to"
WEIGHTED: Final = "site_window_outcome:crawl_requests:weighted"
SQUARES: Final = "site_window:crawl_answered:squares"
CLOCK: Final = "site:crawl_requests:weighted_timestamp"
SEEN: Final = "site:crawl_requests:seen_timestamp"
LEAST: Final = "site_window:crawl_requests:least"
ENOUGH: Final = "site_window:crawl_requests:enough"
REQUESTS: Final = "site_window:crawl_requests:weighted"
ANSWERED: Final = "site_window:crawl_answered:weighted"
SIZE: Final = "site_window:crawl_answered:size"
SHARE: Final = "site_window_signal:crawl_share:ratio"

TIMED_RATE: Final = "site_le:crawl_duration:rate5m"
TIMED_ELAPSED: Final = "site:crawl_duration:elapsed"
TIMED: Final = "site_window_le:crawl_duration:weighted"
TIMED_CLOCK: Final = "site:crawl_duration:weighted_timestamp"

RESET_AT: Final = "site:crawlhealth_reset:timestamp"
RESET_TO: Final = "site:crawlhealth_reset:window"

_BY_WINDOW: Final = "on ($on, window) group_left ()"
_BY_SITE: Final = "on ($on) group_left ()"


def _elapsed(clock: str, new: str, interval: str) -> str:
    """Seconds since the windows were brought up to date; one interval for what is new."""
    return f"time() - {recent(clock, within=MEMORY)}\nor 0 * max by ($by) ({recent(new)}) + {interval}"


def _fresh(elapsed: str) -> str:
    """The place of the window that longer ones are to become; for two evaluations, should a result come late."""
    reset = f"{recent(RESET_TO, within='15m')} and time() - {recent(RESET_AT, within='15m')} <= 2.5 * {recent(elapsed)}"
    return f"({reset})\nor 0 * {recent(elapsed)} + {NO_RESET}"


def _held(record: str, content: str) -> str:
    """What was in every window, resets carried out."""
    became = [
        labelled(f"({content} and on ($on) {recent(FRESH)} < {place})", "window", window)
        for place, window in enumerate(WINDOWS)
        if place
    ]
    return any_of(*became, recent(record, within=MEMORY))


def _content(record: str, by: str) -> str:
    chosen = [labelled(f"({recent(FRESH)} == {place})", "window", window) for place, window in enumerate(WINDOWS[:-1])]
    return f"sum by ({by}) ({recent(record, within=MEMORY)} and on ($on, window) ({any_of(*chosen)}))"


def _weighted(record: str, by: str, *, power: str, content: str, new: str) -> str:
    """The sums of weights to a power: `new` is what came, by site and whatever else."""
    fade = f"{recent(FADE)}{power}"
    held = f"({_held(record, content)}) * {_BY_WINDOW} {fade} > {VANISHED}"
    return add_up(f"{by}, window", held, f"({windowed(new)}) * {_BY_WINDOW} sqrt({fade})")


_HOSTILE: Final = recent(WEIGHTED, f'{{outcome=~"{HOSTILE}"}}')
_SOME: Final = f"{_BY_WINDOW} ({recent(ANSWERED)} > 0)"

COUNTED: Final = (
    Record(name=RATE, expr="sum by ($by, outcome) (rate(crawlhealth_requests_total{$traffic}[5m]))"),
    Record(name=ELAPSED, expr=_elapsed(CLOCK, RATE, "${1m}")),
    Record(name=CAME, expr=f"{recent(RATE)} * {_BY_SITE} clamp_max({recent(ELAPSED)}, ${{{LATEST}}})"),
    Record(name=FADE, expr=windowed(f"0.5 ^ ({recent(ELAPSED)} / @window)")),
    Record(name=FRESH, expr=_fresh(ELAPSED)),
    Record(name=CONTENT, expr=_content(WEIGHTED, "$by, outcome")),
    Record(
        name=SQUARES,
        expr=_weighted(
            SQUARES, "$by", power=" ^ 2", content=_content(SQUARES, "$by"),
            new=f'sum by ($by) ({recent(CAME, """{outcome!="error"}""")})',
        ),
    ),
    Record(
        name=WEIGHTED,
        expr=_weighted(WEIGHTED, "$by, outcome", power="", content=recent(CONTENT), new=recent(CAME)),
    ),
    Record(name=CLOCK, expr=f"0 * {recent(ELAPSED)} + time()"),
    Record(name=REQUESTS, expr=f"sum by ($by, window) ({recent(WEIGHTED)})"),
    Record(name=SEEN, expr=f"time() * (sum by ($by) ({recent(RATE)}) > bool 0) > 0\nor {recent(SEEN, within=MEMORY)}"),
    Record(name=LEAST, expr=windowed(f"{MIN_REQUESTS:.10g} * 0.5 ^ ((time() - {recent(SEEN)}) / @window)")),
    Record(
        name=ENOUGH,
        expr=(
            f"({recent(REQUESTS)} >= {recent(LEAST)})\n"
            f"and on ($on) max by ($by) ({recent(REQUESTS)}) >= {MIN_REQUESTS:.10g}"
        ),
    ),
    Record(name=ANSWERED, expr=f'sum by ($by, window) ({recent(WEIGHTED, """{outcome!="error"}""")})'),
    Record(name=SIZE, expr=f"{recent(ANSWERED)} ^ 2 / ({recent(SQUARES)} > 0)"),
    Record(
        name=SHARE,
        expr=any_of(
            f'sum by ($by, window, signal) (label_replace({_HOSTILE}, "signal", "$$1", "outcome", "(.*)")) / {_SOME}',
            labelled(f"sum by ($by, window) ({_HOSTILE}) / {_SOME}", "signal", "refused"),
        ),
    ),
)  # fmt: skip


def _timed() -> str:
    short, wide = LATENCY_WINDOWS
    since = recent(TIMED_ELAPSED, within="15m")
    became = labelled(
        f'(sum by ($by, le) ({recent(TIMED, f"""{{window="{short}"}}""", within=MEMORY)}) and on ($on)'
        f" ({_fresh(TIMED_ELAPSED).replace('[5m]', '[15m]')}) <= {WINDOWS.index(short)})",
        "window",
        wide,
    )
    fade = windowed(f"0.5 ^ ({since} / @window)", LATENCY_WINDOWS)
    came = f"({recent(TIMED_RATE, within='15m')} * {_BY_SITE} clamp_max({since}, ${{{LATEST}}}))"
    return add_up(
        "$by, le, window",
        f"({any_of(became, recent(TIMED, within=MEMORY))}) * {_BY_WINDOW} ({fade}) > {VANISHED}",
        f"({windowed(came, LATENCY_WINDOWS)}) * {_BY_WINDOW} sqrt({fade})",
    )


TIMES: Final = (
    Record(name=TIMED_RATE, expr="sum by ($by, le) (rate(crawlhealth_request_duration_seconds_bucket{$traffic}[5m]))"),
    Record(name=TIMED_ELAPSED, expr=_elapsed(TIMED_CLOCK, TIMED_RATE, "${5m}")),
    Record(name=TIMED, expr=_timed()),
    Record(name=TIMED_CLOCK, expr=f"0 * {recent(TIMED_ELAPSED, within='15m')} + time()"),
)
