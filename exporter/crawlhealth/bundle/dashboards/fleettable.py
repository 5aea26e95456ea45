"""The table of all sites, worst first, each row leading to the site's dashboard."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Column, Kind, Mapped, Panel, Query
from crawlhealth.bundle.dashboards.parts import (
    BAND,
    CONCURRENCY,
    CONCURRENCY_STEPS,
    COSTING,
    SCORE_STEPS,
    TO_SITE,
    gauge,
)

_SCORE: Final = "min by (@by) (site:crawlhealth_score{@site})"
_HIDDEN: Final = "1500 * " + gauge("crawlhealth_diagnosis", 'diagnosis=~"decoy|parser"')
"""Faults that no score shows stand above sites that degrade, and under those that resist."""
_FAULTS: Final = (
    Mapped(value="none", text="none found"),
    Mapped(value="site", text="the site", colour=colours.BAD),
    Mapped(value="route", text="a route", colour=colours.AMBER),
    Mapped(value="parser", text="our parser", colour=colours.VERMILLION),
    Mapped(value="decoy", text="wrong values", colour=colours.BAD),
    Mapped(value="self", text="our connection", colour=colours.VIOLET),
)

WORST: Final = Panel(
    title="Sites, worst first",
    description=(
        "Every site: its score, how it changed within a day, its band and since when, what costs most, where the fault"
        " lies, what crawlers are told, and the requests of the last hour. A row leads to its site. 'no score' is"
        " unknown: never 0, never 100."
    ),
    kind=Kind.TABLE,
    queries=(
        Query(expr=_SCORE),
        Query(expr=f"round({_SCORE}\n- min by (@by) (site:crawlhealth_score{{@site}} offset 1d)) + 0"),
        Query(expr="max by (@by, band) (site_band:crawlhealth_band{@site}) == 1"),
        Query(expr=f"1000 * {gauge('crawlhealth_band_since_timestamp_seconds')}"),
        Query(
            expr=(
                "max by (@by, signal) (topk by (@by) (1,"
                ' site_signal:crawlhealth_penalty_points{signal!="refused_cap",@site} >= 0.5))'
            )
        ),
        Query(expr=f"{gauge('crawlhealth_diagnosis', by='diagnosis')} == 1"),
        Query(expr=gauge("crawlhealth_advice_concurrency_ratio", of="min")),
        Query(expr="sum by (@by) (site_route:crawl_requests:increase1h{@site})"),
        Query(
            expr=(
                f"1000 * {BAND}\n+ on (@by) ({_HIDDEN} or on (@by) 0 * {BAND})\n"
                f"- on (@by) ({_SCORE} or on (@by) 0 * {BAND})"
            )
        ),
    ),
    width=24,
    height=10,
    columns=(
        Column(name="site", title="Site", link=TO_SITE, link_title="All about this site"),
        Column(
            name="Value #A",
            title="Score",
            unit="none",
            decimals=0,
            thresholds=SCORE_STEPS,
            mappings=(Mapped(value=None, text="no score"),),
            width=90,
        ),
        Column(name="Value #B", title="Change in 24 h", unit="none", decimals=0, width=120),
        Column(
            name="band",
            title="Band",
            mappings=tuple(Mapped(value=band, text=band, colour=colour) for band, colour in colours.BANDS.items()),
            width=110,
        ),
        Column(name="Value #D", title="Band since", unit="dateTimeFromNow"),
        Column(
            name="signal",
            title="Costs most",
            mappings=tuple(Mapped(value=signal, text=name) for signal, name in COSTING.items()),
        ),
        Column(name="Value #E", title="Points", unit="none", decimals=0, width=80),
        Column(name="diagnosis", title="Fault", mappings=_FAULTS, width=120),
        Column(
            name="Value #G",
            title="Crawlers at",
            unit="percentunit",
            decimals=0,
            mappings=CONCURRENCY,
            thresholds=CONCURRENCY_STEPS,
            width=110,
        ),
        Column(name="Value #H", title="Requests in the hour", unit="short", decimals=0),
    ),
    order="Value #I",
    falling=True,
    empty="No site is judged: is the exporter scraped, and are its rules loaded?",
)
