"""Panels of a site: its routes and canaries; parser, cost and volume."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Kind, Mapped, Panel, Query, Series
from crawlhealth.bundle.dashboards.parts import gauge

CANARY_STATES: Final = (
    Mapped(value=1, text="right", colour=colours.GOOD),
    Mapped(value=0, text="failed", colour=colours.AMBER),
    Mapped(value=2, text="WRONG VALUE", colour=colours.BAD),
)
CANARY: Final = (
    'max by (@by, canary, route) (crawlhealth_canary_success{job="@job",@site}\n'
    '  + 2 * crawlhealth_canary_decoy_suspect{job="@job",@site})'
)
"""0: not served or a value missing; 1: all right; 2: served as content, with a wrong value."""


def _by_route(title: str, description: str, metric: str, empty: str) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.LINES,
        queries=(Query(expr=gauge(metric, by="route"), legend="{{route}}@of"),),
        width=8,
        height=7,
        unit="percentunit",
        least=0,
        most=1,
        fill=10,
        empty=empty,
    )


ROUTES_AND_CANARIES: Final = (
    (
        _by_route(
            "Refused by route",
            "Share of the answered requests that were refused, by route. One line above the others: it is the route.",
            "crawlhealth_route_refused_ratio",
            "No answered requests on any route in the window.",
        ),
        _by_route(
            "Errors by route",
            "Share of requests that ended in a 5xx, a timeout, DNS, TLS or a dead proxy. Errors never lower the score.",
            "crawlhealth_error_ratio",
            "No requests on any route in the window.",
        ),
        Panel(
            title="Requests in an hour, by route",
            description="Requests of the last hour, canaries and traffic together, by route.",
            kind=Kind.LINES,
            queries=(
                Query(expr="sum by (@by, route) (site_route:crawl_requests:increase1h{@site})", legend="{{route}}@of"),
            ),
            width=8,
            height=7,
            unit="short",
            least=0,
            stacked=True,
            empty="No requests were counted in this time.",
        ),
    ),
    (
        Panel(
            title="Canaries of the site",
            description="Pages whose right answer is known. A wrong value on a good-looking page is a decoy suspect.",
            kind=Kind.STATES,
            queries=(Query(expr=CANARY, legend="{{canary}} {{route}}@of"),),
            width=24,
            height=9,
            unit="none",
            mappings=CANARY_STATES,
            empty="This site has no canaries: a page whose right answer you know shows what a score cannot.",
        ),
    ),
)

_PARSER: Final = Panel(
    title="Parser score",
    description="Extraction against its own normal. Falls alone: mend the parser. An alert fires under 80.",
    kind=Kind.LINES,
    queries=(Query(expr="min by (@by) (site:crawlhealth_parser_score{@site})", legend="parser score@of"),),
    width=6,
    height=7,
    unit="none",
    least=0,
    most=100,
    thresholds=((None, colours.AMBER), (80, colours.GOOD)),
    areas=True,
    series=(Series(name="parser score.*", colour="text", width=2),),
    empty="Nothing was extracted in this time: crawlers report no extraction, or no page was served.",
)
_COST: Final = Panel(
    title="Cost of a valid record",
    description="What a valid record costs in requests, retries, bytes and credits, as a multiple of its normal (1).",
    kind=Kind.LINES,
    queries=tuple(
        Query(
            expr=(
                f"{gauge(f'crawlhealth_{cost}_per_record')}\n/ ({gauge(f'crawlhealth_{cost}_per_record_baseline')} > 0)"
            ),
            legend=f"{cost}@of",
        )
        for cost in ("requests", "retries", "bytes", "credits")
    ),
    width=6,
    height=7,
    unit="suffix: ×",
    least=0,
    thresholds=((None, "transparent"), (2, colours.AMBER)),
    areas=True,
    series=(
        Series(name="requests.*", colour=colours.SKY),
        Series(name="retries.*", colour=colours.PINK),
        Series(name="bytes.*", colour=colours.GREEN),
        Series(name="credits.*", colour=colours.VERMILLION),
    ),
    empty="Crawlers report no records of this site, or it has no normal cost yet.",
)


def _volume(title: str, description: str, record: str, empty: str) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.LINES,
        queries=(
            Query(expr=f"sum by (@by) ({record}:increase1h{{@site}})", legend="last hour@of"),
            Query(expr=f"sum by (@by) ({record}:increase1h_reference{{@site}})", legend="expected@of"),
        ),
        width=6,
        height=7,
        unit="short",
        least=0,
        series=(
            Series(name="last hour.*", colour=colours.BLUE, fill=15),
            Series(name="expected.*", colour=colours.PALE, dashed=True),
        ),
        empty=empty,
    )


WORK: Final = (
    (
        _PARSER,
        _COST,
        _volume(
            "Requests in an hour",
            "Production requests of the last hour. Expected: yesterday's same hour, or the median of the week.",
            "site:crawl_requests",
            "Crawlers report no traffic of this site: only its canaries are seen.",
        ),
        _volume(
            "Valid records in an hour",
            "Valid records of the last hour. Expected: yesterday's same hour, or the median of the week.",
            "site:crawl_records",
            "Crawlers report no records of this site.",
        ),
    ),
)
