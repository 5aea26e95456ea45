"""The dashboard of a site: is it the site, a route or our parser; since when; what crawlers do; what a person decides.

Several chosen sites each get rows of their own.
"""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours, decisions
from crawlhealth.bundle.dashboards.board import Board, Column, Kind, Link, Panel, Query, Row, Series, Variable
from crawlhealth.bundle.dashboards.parts import (
    ACCEPTED,
    BAND,
    BAND_CHANGES,
    BAND_NAMES,
    CONCURRENCY,
    CONCURRENCY_STEPS,
    FAULT,
    FAULT_NAMES,
    PLANNED,
    SCORE_STEPS,
    SEVERITY_NAMES,
    SITES,
    TO_RUNBOOK,
    firing,
    gauge,
)
from crawlhealth.bundle.dashboards.sitesignals import SIGNALS
from crawlhealth.bundle.dashboards.sitework import ROUTES_AND_CANARIES, WORK
from crawlhealth.bundle.model import Scope

_FIGURES: Final = (
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
        width=3,
        height=4,
        unit="none",
        mappings=BAND_NAMES,
        empty="not watched",
    ),
    Panel(
        title="Since",
        description="When the present band began.",
        kind=Kind.STAT,
        queries=(
            Query(expr=f"1000 * {gauge('crawlhealth_band_since_timestamp_seconds')}", legend="since@of", instant=True),
        ),
        width=3,
        height=4,
        unit="dateTimeFromNow",
        thresholds=((None, colours.GREY),),
        empty="not known",
    ),
    Panel(
        title="Where the fault lies",
        description="The diagnosis: the site, a route, our parser, decoys, our own connection, or nothing.",
        kind=Kind.STAT,
        queries=(Query(expr=FAULT, legend="fault@of", instant=True),),
        width=4,
        height=4,
        unit="none",
        mappings=FAULT_NAMES,
        empty="no diagnosis",
    ),
    Panel(
        title="Crawlers' concurrency",
        description="The share of the usual concurrency that crawlers are to use. Paused: only canaries go on.",
        kind=Kind.STAT,
        queries=(
            Query(expr=gauge("crawlhealth_advice_concurrency_ratio", of="min"), legend="concurrency@of", instant=True),
        ),
        width=4,
        height=4,
        unit="percentunit",
        decimals=0,
        mappings=CONCURRENCY,
        thresholds=CONCURRENCY_STEPS,
        empty="no advice",
    ),
    Panel(
        title="You decide",
        description="What is left to a person, by band and diagnosis. The runbook of what fires says more.",
        kind=Kind.STAT,
        queries=(Query(expr=decisions.EXPR, legend="decision@of", instant=True),),
        width=7,
        height=4,
        unit="none",
        mappings=decisions.NAMES,
        empty="nothing: the site is not watched",
    ),
)

_SCORE: Final = Panel(
    title="Health score",
    description=(
        "The score over time, over its bands. The plain formula is without cap and margins. A gap has no score: too"
        " few requests, mostly errors, or no normal yet."
    ),
    kind=Kind.LINES,
    queries=(
        Query(expr="min by (@by) (site:crawlhealth_score{@site})", legend="score@of"),
        Query(expr="min by (@by) (site:crawlhealth_score_raw{@site})", legend="plain formula@of"),
    ),
    width=9,
    height=9,
    unit="none",
    least=0,
    most=100,
    thresholds=SCORE_STEPS,
    areas=True,
    series=(
        Series(name="score.*", colour="text", width=3),
        Series(name="plain formula.*", colour=colours.PALE, dashed=True, width=1),
    ),
    empty="No score in this time: too few requests, mostly errors, or no normal yet.",
)
_REASONS: Final = Panel(
    title="What costs points",
    description=(
        "100 less the score: what each signal costs. refused_cap is what is missing to the share that is served at all."
    ),
    kind=Kind.LINES,
    queries=(
        Query(expr="max by (@by, signal) (site_signal:crawlhealth_penalty_points{@site})", legend="{{signal}}@of"),
    ),
    width=8,
    height=9,
    unit="none",
    least=0,
    colours=colours.SIGNALS,
    stacked=True,
    empty="No score in this time, so no points are lost.",
)
_FIRING: Final = Panel(
    title="Alerts of the site",
    description="What fires for this site now. Each leads to its runbook: whether it is true, what you decide.",
    kind=Kind.TABLE,
    queries=(Query(expr=firing(("site",), "@site,")),),
    width=7,
    height=9,
    columns=(
        Column(
            name="alertname",
            title="Alert",
            link=TO_RUNBOOK,
            link_title="What to do: the runbook",
        ),
        Column(name="severity", title="Severity", mappings=SEVERITY_NAMES, width=90),
    ),
    order="Value",
    falling=True,
    empty="No alert fires for this site: good.",
)
_STATES: Final = Panel(
    title="Band, fault and advice",
    description="When the band changed, where the fault lay, and which share of their concurrency crawlers were told.",
    kind=Kind.STATES,
    queries=(
        Query(expr=BAND, legend="band@of"),
        Query(expr=FAULT, legend="fault@of"),
        Query(expr=f"round({gauge('crawlhealth_advice_concurrency_ratio', of='min')}, 0.05)", legend="crawlers at@of"),
    ),
    width=24,
    height=6,
    unit="percentunit",
    decimals=0,
    thresholds=CONCURRENCY_STEPS,
    series=(
        Series(name="band.*", mappings=BAND_NAMES),
        Series(name="fault.*", mappings=FAULT_NAMES),
        Series(name="crawlers at.*", mappings=CONCURRENCY),
    ),
    empty="The site was not watched in this time.",
)

BOARD: Final = Board(
    uid=Scope.SITE,
    title="crawlhealth / Site",
    description="Is it the site, a route or our parser; since when; what are crawlers told; what must a person decide.",
    variables=(
        Variable(
            name=SITES.name,
            label=SITES.label,
            query=SITES.query,
            description="One site, or several below each other.",
            everything=False,
        ),
    ),
    rows=(
        Row(
            title="$site: the verdict",
            lines=(_FIGURES, (_SCORE, _REASONS, _FIRING), (_STATES,)),
            repeat="site",
        ),
        Row(title="$site: signals beside their own normal", lines=SIGNALS, repeat="site"),
        Row(title="$site: routes and canaries", lines=ROUTES_AND_CANARIES, repeat="site"),
        Row(title="$site: parser, cost and volume", lines=WORK, repeat="site"),
    ),
    marks=(BAND_CHANGES, ACCEPTED, PLANNED),
    links=(
        Link(
            title="Evidence",
            url="@exporter/sites/${site:percentencode}",
            tooltip="The exporter's own page of the site: the last refusals with what proves them, canaries, incidents",
        ),
    ),
)
