"""The verdict on a site in figures: its band, where the fault lies, what is lost or wrong meanwhile, what to decide."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours, decisions
from crawlhealth.bundle.dashboards.board import Kind, Mapped, Panel, Query
from crawlhealth.bundle.dashboards.parts import (
    BAND,
    BAND_NAMES,
    CONCURRENCY,
    CONCURRENCY_STEPS,
    FAULT,
    FAULT_NAMES,
    SCORE_STEPS,
    gauge,
)

_ERRORS: Final = "max by (@by) (site:crawl_errors:ratio1h{@site})"
_NOT_SERVED: Final = (
    f"{_ERRORS} + (1 - {_ERRORS}) * max by (@by) (site:crawl_refused:ratio1h{{@site}})\nor on (@by) {_ERRORS}"
)
"""Errors are a share of all requests, refusals one of those that were answered."""
_BY_ROUTE: Final = _NOT_SERVED.replace("(@by)", "(@by, route)").replace("site:", "site_route:")
_LOST: Final = ((None, colours.GOOD), (0.05, colours.WARN), (0.2, colours.BAD))
_EXPECTED: Final = "(max by (@by) (site:crawl_records:increase1h_reference{@site}) > 0)"
_RECORDS: Final = f"max by (@by) (site:crawl_records:increase1h{{@site}})\n/ {_EXPECTED}"
_NO_FAULT: Final = gauge("crawlhealth_diagnosis", 'diagnosis="none"')
_FAULT_SINCE: Final = (
    f"(1000 * max_over_time(timestamp({_NO_FAULT} == 1)[2d:2m]) unless on (@by) {FAULT} == 0)\n"
    f"or on (@by) {FAULT} > bool 0"
)
"""The last moment without one; 0 while there is none, 1 where it began before what is looked at."""
_VALUES: Final = 'min by (@by, canary, value) (crawlhealth_canary_value_ok{job="@job",@site})'
_WRONG: Final = f"count by (@by) ({_VALUES} == 0)\nor on (@by) 0 * count by (@by) ({_VALUES})"

_VERDICT: Final = (
    Panel(
        title="Score",
        description="100 is the site's own normal. Under 80 it is degrading, under 50 it resists. No score: unknown.",
        kind=Kind.STAT,
        queries=(Query(expr="min by (@by) (site:crawlhealth_score{@site})", legend="score@of", instant=True),),
        width=3,
        height=4,
        unit="none",
        decimals=0,
        thresholds=SCORE_STEPS,
        empty="no score",
    ),
    Panel(
        title="Band",
        description="Bands begin and end with a delay, so that they do not flap; without a score they are held.",
        kind=Kind.STAT,
        queries=(Query(expr=BAND, legend="band@of", instant=True),),
        width=4,
        height=4,
        unit="none",
        mappings=BAND_NAMES,
        empty="not watched",
    ),
    Panel(
        title="Band since",
        description="When the present band began.",
        kind=Kind.STAT,
        queries=(
            Query(expr=f"1000 * {gauge('crawlhealth_band_since_timestamp_seconds')}", legend="since@of", instant=True),
        ),
        width=4,
        height=4,
        unit="dateTimeFromNow",
        calm=True,
        empty="not known",
    ),
    Panel(
        title="Where the fault lies",
        description="The diagnosis: the site, a route, our parser, decoys, our own connection, or nothing.",
        kind=Kind.STAT,
        queries=(Query(expr=FAULT, legend="fault@of", instant=True),),
        width=5,
        height=4,
        unit="none",
        mappings=FAULT_NAMES,
        empty="no diagnosis",
    ),
    Panel(
        title="You decide",
        description="What is left to a person, by band and diagnosis. The runbook of what fires says more.",
        kind=Kind.STAT,
        queries=(Query(expr=decisions.EXPR, legend="decision@of", instant=True),),
        width=8,
        height=4,
        unit="none",
        mappings=decisions.NAMES,
        empty="nothing: the site is not watched",
    ),
)
_MEANWHILE: Final = (
    Panel(
        title="Fault since",
        description="When the diagnosis last was that no fault is found, within two days.",
        kind=Kind.STAT,
        queries=(Query(expr=_FAULT_SINCE, legend="fault since@of", instant=True),),
        width=4,
        height=3,
        unit="dateTimeFromNow",
        mappings=(Mapped(value=0, text="no fault"), Mapped(value=1, text="over two days ago")),
        calm=True,
        empty="no diagnosis",
    ),
    Panel(
        title="Worst route: not served",
        description="The route that brings the fewest pages: the share of its requests of the last hour that failed.",
        kind=Kind.STAT,
        queries=(Query(expr=f"topk by (@by) (1, {_BY_ROUTE})", legend="{{route}}", instant=True),),
        width=4,
        height=3,
        unit="percentunit",
        decimals=0,
        thresholds=_LOST,
        names=True,
        empty="no requests",
    ),
    Panel(
        title="Not served, last hour",
        description="Is data lost: the share of requests, canaries too, that were refused or ended in an error.",
        kind=Kind.STAT,
        queries=(Query(expr=_NOT_SERVED, legend="not served@of", instant=True),),
        width=4,
        height=3,
        unit="percentunit",
        decimals=0,
        thresholds=_LOST,
        empty="no requests",
    ),
    Panel(
        title="Records, of expected",
        description="Is data lost: valid records of the last hour, as a share of what is usual at this time of day.",
        kind=Kind.STAT,
        queries=(Query(expr=_RECORDS, legend="records@of", instant=True),),
        width=4,
        height=3,
        unit="percentunit",
        decimals=0,
        thresholds=((None, colours.BAD), (0.5, colours.WARN), (0.8, colours.GOOD)),
        empty="no records, or no usual number yet",
    ),
    Panel(
        title="Canary values",
        description="Is data wrong: how many known values are wrong or missing on pages that are served.",
        kind=Kind.STAT,
        queries=(Query(expr=_WRONG, legend="wrong@of", instant=True),),
        width=4,
        height=3,
        unit="suffix: wrong",
        decimals=0,
        mappings=(Mapped(value=0, text="none is wrong", colour=colours.GOOD),),
        thresholds=((None, colours.BAD),),
        empty="not known: no canary's page is served",
    ),
    Panel(
        title="Crawlers told to run at",
        description="Advice to crawlers: the share of their usual concurrency to use. Paused: only canaries go on.",
        kind=Kind.STAT,
        queries=(
            Query(expr=gauge("crawlhealth_advice_concurrency_ratio", of="min"), legend="concurrency@of", instant=True),
        ),
        width=4,
        height=3,
        unit="percentunit",
        decimals=0,
        mappings=CONCURRENCY,
        thresholds=CONCURRENCY_STEPS,
        empty="no advice",
    ),
)

FIGURES: Final = (_VERDICT, _MEANWHILE)
