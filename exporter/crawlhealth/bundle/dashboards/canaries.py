"""The dashboard of canaries: are the pages whose right answer is known still right, on every route."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Board, Column, Kind, Panel, Query, Row, Variable
from crawlhealth.bundle.dashboards.canaryvalues import EACH, NO_CANARY, OF, VALUES, canary
from crawlhealth.bundle.dashboards.parts import ROUTES, SITES, figure
from crawlhealth.bundle.dashboards.sitework import CANARY, CANARY_STATES


def _figure(title: str, description: str, expr: str, *, bad: str | None = colours.BAD, width: int = 5) -> Panel:
    """A count of canaries; from one on in the colour `bad`, if any is."""
    steps = ((None, colours.GOOD), (1, bad)) if bad else ((None, colours.GOOD),)
    return figure(title, description, expr, unit="none", steps=steps, empty=NO_CANARY, width=width)


_FIGURES: Final = (
    _figure(
        "Right",
        "Canaries, by route, whose last run was served with every value right.",
        f"sum(max by ({EACH}) ({canary('success')}))",
        bad=None,
    ),
    _figure(
        "Failed",
        "Canaries, by route, that were not served, or lacked a value, in their last run.",
        f"sum(max by ({EACH}) (1 - {canary('success')} - {canary('decoy_suspect')}))",
        bad=colours.AMBER,
    ),
    _figure(
        "Wrong values",
        "Canaries served as content with a wrong value, the hardest failure to see. Trust no record till you know why.",
        f"sum(max by ({EACH}) ({canary('decoy_suspect')}))",
    ),
    _figure(
        "Not run for 3 intervals",
        "Canaries whose last run is three of their intervals old or more.",
        (
            f"count(time() - max by ({EACH}) ({canary('last_run_timestamp_seconds')})\n"
            f"  > 3 * max by ({EACH}) ({canary('interval_seconds')})) or vector(0)"
        ),
    ),
    _figure(
        "Skipped runs, 1 h",
        "Runs within an hour that were left out because the one before was still waiting or running.",
        'sum(increase(crawlhealth_canary_skipped_total{@{group}job="@job"}[1h])) or vector(0)',
        width=4,
    ),
)
CHOSEN: Final = CANARY.replace("@site}", f"{OF}}}")
_STATES: Final = Panel(
    title="All canaries by route",
    description="Right, failed, or a wrong value on a page that looks right (a decoy suspect), for each route.",
    kind=Kind.STATES,
    queries=(
        Query(
            expr=CHOSEN,
            legend="@name {{canary}} {{route}}",
        ),
    ),
    width=24,
    height=11,
    unit="none",
    mappings=CANARY_STATES,
    empty=NO_CANARY,
)
_NOT_RIGHT: Final = Panel(
    title="Canaries that were not right",
    description="Canaries, by route, that failed or saw a wrong value at some time in the range: when, and until when.",
    kind=Kind.STATES,
    queries=(
        Query(
            expr=(
                f"{CHOSEN}\n"
                f"and on ({EACH}) max by ({EACH}) (min_over_time({canary('success')}[$__range] @@ end())) == 0"
            ),
            legend="@name {{canary}} {{route}}",
        ),
    ),
    width=24,
    height=8,
    unit="none",
    mappings=CANARY_STATES,
    empty="Every canary was right in this time.",
)
_LAG_BUCKETS: Final = (
    'sum by (le) (rate(crawlhealth_canary_schedule_lag_seconds_bucket{@{group}job="@job"}[$__rate_interval]))'
)
_LAG: Final = Panel(
    title="Schedule lag",
    description="How late runs start, waits out of politeness aside. High: too many canaries for one exporter.",
    kind=Kind.LINES,
    queries=tuple(
        Query(expr=f"histogram_quantile({quantile}, {_LAG_BUCKETS})", legend=f"p{round(quantile * 100)}")
        for quantile in (0.5, 0.95)
    ),
    width=8,
    height=8,
    unit="s",
    least=0,
    colours={"p50": colours.BLUE, "p95": colours.VERMILLION},
    empty="No canary was due in this time.",
)
_SUCCESS: Final = canary("last_success_timestamp_seconds")
_AGE: Final = Panel(
    title="Longest without success",
    description="The five canaries, by route, whose last success is the longest ago now.",
    kind=Kind.LINES,
    queries=(
        Query(
            expr=(
                f"time() - max by ({EACH}) ({_SUCCESS})\n"
                f"and on ({EACH}) bottomk(5, max by ({EACH}) ({_SUCCESS} @@ end()))"
            ),
            legend="@name {{canary}} {{route}}",
        ),
    ),
    width=8,
    height=8,
    unit="s",
    least=0,
    empty="No canary has ever succeeded, or none has run.",
)
_CERTIFICATES: Final = Panel(
    title="Certificates",
    description="How long the certificates of the crawled hosts are valid yet, those that end first at the top.",
    kind=Kind.TABLE,
    queries=(
        Query(expr='min by (@by, host) (crawlhealth_tls_not_after_timestamp_seconds{job="@job",@site}) - time()'),
    ),
    width=8,
    height=8,
    columns=(
        Column(name="site", title="Site"),
        Column(name="host", title="Host"),
        Column(
            name="Value",
            title="Valid for",
            unit="s",
            decimals=0,
            thresholds=((None, colours.BAD), (0, colours.AMBER), (14 * 86400, colours.GOOD)),
        ),
    ),
    order="Value",
    empty="No canary is fetched over https.",
)

BOARD: Final = Board(
    uid="crawlhealth-canaries",
    title="crawlhealth / Canaries",
    description="Pages whose right answer is known: are they still right, on every route.",
    hours=6,
    variables=(
        SITES,
        ROUTES,
        Variable(
            name="canary",
            label="Canary",
            query='label_values(crawlhealth_canary_success{job="@job",@site}, canary)',
            description="The canaries to show.",
        ),
    ),
    rows=(
        Row(title="Now", lines=(_FIGURES, (_NOT_RIGHT,), (_STATES,))),
        Row(title="Values", lines=VALUES),
        Row(title="Timetable and certificates", lines=((_LAG, _AGE, _CERTIFICATES),)),
    ),
)
