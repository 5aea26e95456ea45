"""The dashboard of a site: is it the site, a route or our parser; since when; what is lost; what a person decides.

Several chosen sites each get rows of their own.
"""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Board, Column, Kind, Link, Panel, Query, Row, Series, Variable
from crawlhealth.bundle.dashboards.parts import (
    ACCEPTED,
    BAND,
    BAND_CHANGES,
    BAND_NAMES,
    CONCURRENCY,
    CONCURRENCY_STEPS,
    COSTING,
    FAULT,
    FAULT_NAMES,
    PLANNED,
    SCORE_STEPS,
    SEVERITY_NAMES,
    SITES,
    TO_RUNBOOK,
    firing,
    gauge,
    signal_colours,
    signals,
)
from crawlhealth.bundle.dashboards.sitesignals import SIGNALS
from crawlhealth.bundle.dashboards.siteverdict import FIGURES
from crawlhealth.bundle.dashboards.sitework import ROUTES_AND_CANARIES, WORK
from crawlhealth.bundle.model import Scope

_SCORE: Final = Panel(
    title="Health score",
    description=(
        "The score over time, over its bands. 'unadjusted' (dashed) is before chance is taken off and before the"
        " served share caps it: it decides nothing. A gap has no score: too few requests, mostly errors, or no normal"
        " yet."
    ),
    kind=Kind.LINES,
    queries=(
        Query(expr="min by (@by) (site:crawlhealth_score{@site})", legend="score@of"),
        Query(expr="min by (@by) (site:crawlhealth_score_raw{@site})", legend="unadjusted@of"),
    ),
    width=8,
    height=9,
    unit="none",
    least=0,
    most=100,
    thresholds=SCORE_STEPS,
    areas=True,
    series=(
        Series(name="score.*", colour="text", width=3),
        Series(name="unadjusted.*", colour=colours.PALE, dashed=True, width=1),
    ),
    empty="No score in this time: too few requests, mostly errors, or no normal yet.",
)
_REASONS: Final = Panel(
    title="What costs points",
    description=(
        "100 less the score: what each signal costs. 'too little served' (the refused cap) is what it loses beyond"
        " that, as the score cannot exceed what is left of the served share."
    ),
    kind=Kind.LINES,
    queries=signals("site_signal:crawlhealth_penalty_points{", COSTING),
    width=10,
    height=9,
    unit="none",
    least=0,
    reach=20,
    series=signal_colours(COSTING),
    stacked=True,
    empty="No score in this time, so no points are lost.",
)
_FIRING: Final = Panel(
    title="Alerts of the site",
    description="What fires for this site now. Each leads to its runbook: whether it is true, what you decide.",
    kind=Kind.TABLE,
    queries=(Query(expr=firing(("site",), "@site,")),),
    width=6,
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
    empty="No alert fires now.",
)
_STATES: Final = Panel(
    title="Band, fault and advice",
    description="When the band changed, where the fault lay, and which share of their concurrency crawlers were left.",
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
            lines=(*FIGURES, (_SCORE, _REASONS, _FIRING), (_STATES,)),
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
