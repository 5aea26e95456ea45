"""Panels of a site: each signal beside what is normal for it."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Kind, Panel, Query, Series
from crawlhealth.bundle.dashboards.parts import DRIFTING, gauge, now_and_normal, signal_colours, signals
from crawlhealth.scoresettings import ScoreSettings

_SHARES: Final = (
    ("hard_block", "Hard blocks", "Refusal statuses, reset connections, block pages with an error status."),
    ("challenge", "Challenges", "CAPTCHAs, and pages of JavaScript or proof of work, with any status."),
    ("soft_block", "Soft blocks", "Pages with status 200 that are not the content: block, login and collapsed pages."),
)


def _share(signal: str, title: str, description: str) -> Panel:
    chosen = f'signal="{signal}"'
    return now_and_normal(
        title,
        (
            f"{description} Share of the answered requests. 'beyond chance' counts for the score: the share less what"
            " chance and the site's own swings explain."
        ),
        gauge("crawlhealth_signal_ratio", chosen),
        gauge("crawlhealth_signal_baseline_ratio", chosen),
        counted=gauge("crawlhealth_signal_lower_bound_ratio", chosen),
        width=6,
        unit="percentunit",
        colour=colours.SIGNALS[signal],
    )


_EXTRACTION: Final = now_and_normal(
    "Extraction failed",
    "Share of the served pages on which our parser failed. It lowers the parser score, never the health score.",
    gauge("crawlhealth_signal_ratio", 'signal="extraction"'),
    gauge("crawlhealth_signal_baseline_ratio", 'signal="extraction"'),
    width=6,
    unit="percentunit",
    colour=colours.SIGNALS["extraction"],
)
_BUCKETS: Final = (
    "sum by (@by, le) (rate(crawlhealth_request_duration_seconds_bucket{@traffic,@site}[$__rate_interval]))"
)
_LATENCY: Final = Panel(
    title="Latency",
    description=(
        "Time to a complete answer, of served pages only. p95 in the present window and normally (dashed); it costs"
        " points above its normal, all 15 at three times it. p50 is of the moment."
    ),
    kind=Kind.LINES,
    queries=(
        Query(expr=gauge("crawlhealth_latency_p95_seconds"), legend="p95@of"),
        Query(expr=gauge("crawlhealth_latency_p95_baseline_seconds"), legend="p95 normal@of"),
        Query(expr=f"histogram_quantile(0.5, {_BUCKETS}) > 0", legend="p50@of"),
    ),
    width=6,
    height=7,
    unit="s",
    least=0,
    series=(
        Series(name="p95 normal.*", colour=colours.PALE, dashed=True),
        Series(name="p95(?! normal).*", colour=colours.SKY, fill=15),
        Series(name="p50.*", colour=colours.GREEN),
    ),
    empty="No served request in this time.",
)
_DRIFT: Final = Panel(
    title="Early warning",
    description=(
        "How far each signal has moved above its normal, in standard deviations (σ) of the site's own hours. The"
        f" coloured area begins at {ScoreSettings().drift_threshold:g} σ, which a simulated site passes once in"
        " ten weeks: look, before the score falls. It never changes the score."
    ),
    kind=Kind.LINES,
    queries=signals('crawlhealth_drift_z{job="@job",', DRIFTING),
    width=10,
    height=7,
    unit="suffix: σ",
    decimals=1,
    least=0,
    reach=ScoreSettings().drift_threshold,
    series=signal_colours(DRIFTING),
    thresholds=((None, "transparent"), (ScoreSettings().drift_threshold, colours.AMBER)),
    areas=True,
    empty="No normal to compare with yet.",
)
_CAUSES: Final = (
    Series(name="cloudflare_challenge.*", colour=colours.YELLOW),
    Series(name="http_403.*", colour=colours.VERMILLION),
    Series(name="login_page.*", colour=colours.PINK),
)
"""The most frequent causes in the colours of their signals; grey is what is normal."""
_WHY: Final = Panel(
    title="Why requests were not served",
    description="Requests by the reason of their outcome, the ten most frequent: what to look for in the evidence.",
    kind=Kind.LINES,
    queries=(
        Query(
            expr=(
                "topk(10, sum by (@by, reason)"
                " (rate(crawlhealth_request_reasons_total{@traffic,@site}[$__rate_interval])) > 0)"
            ),
            legend="{{reason}}@of",
        ),
    ),
    width=8,
    height=7,
    unit="reqps",
    least=0,
    stacked=True,
    series=_CAUSES,
    empty="Everything was served in this time: good.",
)

SIGNALS: Final = (
    (*(_share(*one) for one in _SHARES), _EXTRACTION),
    (_LATENCY, _DRIFT, _WHY),
)
