"""The table of all sites, worst first, each row leading to the site's dashboard."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Column, Kind, Mapped, Panel, Query
from crawlhealth.bundle.dashboards.parts import BAND, CONCURRENCY, CONCURRENCY_STEPS, SCORE_STEPS, TO_SITE, gauge

_SCORE: Final = "min by (@by) (site:crawlhealth_score{@site})"
_FAULTS: Final = (
    Mapped(value="none", text="nothing is wrong"),
    Mapped(value="site", text="the site"),
    Mapped(value="route", text="a route"),
    Mapped(value="parser", text="our parser"),
    Mapped(value="decoy", text="wrong values"),
    Mapped(value="self", text="our own connection"),
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
        Query(expr=f"1000 * {BAND}\n- on (@by) ({_SCORE} or on (@by) 0 * {BAND})"),
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
        Column(name="Value #B", title="In a day", unit="none", decimals=0, width=90),
        Column(
            name="band",
            title="Band",
            mappings=tuple(Mapped(value=band, text=band, colour=colour) for band, colour in colours.BANDS.items()),
            width=110,
        ),
        Column(name="Value #D", title="Since", unit="dateTimeFromNow"),
        Column(name="signal", title="First reason"),
        Column(name="Value #E", title="costs", unit="suffix: points", decimals=0, width=100),
        Column(name="diagnosis", title="Fault", mappings=_FAULTS),
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
