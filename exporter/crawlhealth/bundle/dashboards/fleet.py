"""The dashboard of all sites: how many are in which band, which one needs a person first, and why."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Board, Column, Kind, Panel, Query, Row, Series
from crawlhealth.bundle.dashboards.fleettable import WORST
from crawlhealth.bundle.dashboards.parts import ALERTS as FIRING
from crawlhealth.bundle.dashboards.parts import (
    BAND,
    BAND_NAMES,
    SEVERITY_NAMES,
    SITES,
    TO_RUNBOOK,
    UP,
    firing,
    gauge,
)
from crawlhealth.scoresettings import ScoreSettings

_IN_BAND: Final = 'sum(max by (@by) (site_band:crawlhealth_band{{band="{band}",@site}}))'
_NO_SITE: Final = "No site is judged: is the exporter scraped, and are its rules loaded?"

_FIGURES: Final = (
    Panel(
        title="Sites by band",
        description="How many sites are in each band now. Resisting and degrading ones stand first in the table.",
        kind=Kind.STAT,
        queries=tuple(
            Query(expr=_IN_BAND.format(band=band), legend=band, instant=True)
            for band in ("resisting", "degrading", "normal", "unknown")
        ),
        width=9,
        height=4,
        unit="none",
        decimals=0,
        colours=colours.BANDS,
        names=True,
        empty=_NO_SITE,
    ),
    Panel(
        title="Alerts firing",
        description="Alerts of crawlhealth that fire now, each once a site, by severity. Critical ones page.",
        kind=Kind.STAT,
        queries=tuple(
            Query(
                expr=f'count(max by (alertname, @by) ({FIRING},@{{group}}severity="{level}"}})) or vector(0)',
                legend=level,
                instant=True,
            )
            for level in colours.SEVERITIES
        ),
        width=7,
        height=4,
        unit="none",
        decimals=0,
        colours=colours.SEVERITIES,
        names=True,
        empty="Alerts are not evaluated here.",
    ),
    Panel(
        title="Paused sites",
        description="Sites on which crawlers are told to stop: only canaries go on. A person decides what comes next.",
        kind=Kind.STAT,
        queries=(Query(expr=f"sum({gauge('crawlhealth_advice_paused')})", legend="paused", instant=True),),
        width=4,
        height=4,
        unit="none",
        decimals=0,
        thresholds=((None, colours.GOOD), (1, colours.BAD)),
        empty=_NO_SITE,
    ),
    Panel(
        title="Our own uplink",
        description="Down: what fails now is our own connection's fault, and no site is blamed for it.",
        kind=Kind.STAT,
        queries=(Query(expr='min(crawlhealth_uplink_up{@{group}job="@job"})', legend="uplink", instant=True),),
        width=4,
        height=4,
        unit="none",
        mappings=UP,
        empty="The exporter is not scraped.",
    ),
)

_BANDS: Final = Panel(
    title="Bands of all sites over time",
    description="How many sites were in each band.",
    kind=Kind.LINES,
    queries=tuple(
        Query(expr=_IN_BAND.format(band=band), legend=band) for band in ("resisting", "degrading", "unknown", "normal")
    ),
    width=12,
    height=8,
    unit="none",
    decimals=0,
    least=0,
    stacked=True,
    steps=True,
    colours=colours.BANDS,
    empty=_NO_SITE,
)
_FIRES: Final = Panel(
    title="What fires",
    description="Every alert of crawlhealth that fires now. Each leads to its runbook.",
    kind=Kind.TABLE,
    queries=(Query(expr=firing(("@by",), "@{group}")),),
    width=12,
    height=8,
    columns=(
        Column(name="severity", title="Severity", mappings=SEVERITY_NAMES, width=90),
        Column(name="alertname", title="Alert", link=TO_RUNBOOK, link_title="What to do: the runbook"),
        Column(name="site", title="Site"),
    ),
    order="Value",
    falling=True,
    empty="No alert fires now.",
)
_HISTORY: Final = Panel(
    title="Bands by site",
    description="The band of each site over time, twenty sites a page. A gap: the site was not watched.",
    kind=Kind.STATES,
    queries=(Query(expr=BAND, legend="@name"),),
    width=24,
    height=10,
    unit="none",
    mappings=BAND_NAMES,
    empty=_NO_SITE,
)


def _ten(title: str, description: str, expr: str, *, unit: str, empty: str, limit: float | None = None) -> Panel:
    """Lines of the ten sites with the most of something; what is beyond a limit lies on a coloured area."""
    return Panel(
        title=title,
        description=description,
        kind=Kind.LINES,
        queries=(Query(expr=f"topk(10, {expr})", legend="@name"),),
        width=8,
        height=8,
        unit=unit,
        least=0,
        reach=limit,
        thresholds=() if limit is None else ((None, "transparent"), (limit, colours.AMBER)),
        areas=limit is not None,
        empty=empty,
    )


_REFUSED: Final = _ten(
    "Most refused",
    "The ten sites that refuse the largest share of the answered requests of the last hour.",
    "max by (@by) (site:crawl_refused:ratio1h{@site})",
    unit="percentunit",
    empty="No requests were answered in this time.",
)
_DRIFTING: Final = _ten(
    "Early warning",
    "The ten sites that moved furthest above their normal, in standard deviations of their own hours."
    f" Over {ScoreSettings().drift_threshold:g} is rare; the score may still be good.",
    gauge("crawlhealth_drift_z"),
    unit="suffix: σ",
    limit=ScoreSettings().drift_threshold,
    empty="No site has a normal to compare with yet.",
)
_SLOWED: Final = Panel(
    title="Crawlers run at: 100% usual, 0% paused",
    description="Sites on which crawlers are told to use less than their usual concurrency, and how much of it.",
    kind=Kind.LINES,
    queries=(
        Query(
            expr=f"bottomk(10, {gauge('crawlhealth_advice_concurrency_ratio', of='min')} < 1)",
            legend="@name",
        ),
    ),
    width=8,
    height=8,
    unit="percentunit",
    least=0,
    most=1,
    steps=True,
    empty="No site was slowed down or paused in this time: good.",
)
_OUTCOMES: Final = Panel(
    title="Requests in an hour, by outcome",
    description="Requests of the last hour to all chosen sites, canaries and traffic, by what came of them.",
    kind=Kind.LINES,
    queries=(
        Query(expr="sum by (outcome) (site_route_outcome:crawl_requests:increase1h{@site})", legend="{{outcome}}"),
    ),
    width=12,
    height=8,
    unit="short",
    least=0,
    stacked=True,
    colours=colours.OUTCOMES,
    empty="No requests were counted in this time.",
)
_ROUTES: Final = Panel(
    title="Errors by route",
    description="Share of the requests of the last hour that ended in errors, by route: a dead proxy shows.",
    kind=Kind.LINES,
    queries=(
        Query(
            expr=(
                'sum by (route) (site_route_outcome:crawl_requests:increase1h{outcome="error",@site})\n'
                "/ (sum by (route) (site_route_outcome:crawl_requests:increase1h{@site}) > 0)"
            ),
            legend="{{route}}",
        ),
    ),
    width=12,
    height=8,
    unit="percentunit",
    least=0,
    reach=0.05,
    series=(Series(name=".*", fill=10),),
    empty="No requests were counted in this time.",
)

BOARD: Final = Board(
    uid="crawlhealth-fleet",
    title="crawlhealth / Fleet",
    description="All sites: how many are in which band, which one needs a person first, and why.",
    variables=(SITES,),
    rows=(
        Row(title="Now", lines=(_FIGURES, (WORST,))),
        Row(title="Over time", lines=((_BANDS, _FIRES), (_HISTORY,))),
        Row(title="Before it shows in the score", lines=((_REFUSED, _DRIFTING, _SLOWED), (_OUTCOMES, _ROUTES))),
    ),
    refresh="30s",
)
