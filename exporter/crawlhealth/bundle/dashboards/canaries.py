"""The dashboard of canaries: are the pages whose right answer is known still right, on every route."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Board, Column, Kind, Mapped, Panel, Query, Row, Series, Variable
from crawlhealth.bundle.dashboards.parts import BAND_CHANGES, ROUTES, SITES
from crawlhealth.bundle.dashboards.sitework import CANARY, CANARY_STATES

_OF: Final = '@site,canary=~"$canary",route=~"$route"'
_NO_CANARY: Final = "No canary has run: a page whose right answer you know shows what a score cannot."


def _canary(metric: str) -> str:
    return f'crawlhealth_canary_{metric}{{job="@job",{_OF}}}'


_EACH: Final = "@by, canary, route"
_VALUE: Final = "@by, canary, route, value"


def _figure(title: str, description: str, expr: str, *, bad: bool = True, width: int = 4, empty: str) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.STAT,
        queries=(Query(expr=expr, legend=title, instant=True),),
        width=width,
        height=4,
        unit="none",
        decimals=0,
        thresholds=((None, colours.GOOD), (1, colours.BAD)) if bad else ((None, colours.GOOD),),
        empty=empty,
    )


_FIGURES: Final = (
    _figure(
        "Right",
        "Canaries, by route, whose last run was served with every value right.",
        f"sum(max by ({_EACH}) ({_canary('success')}))",
        bad=False,
        width=5,
        empty=_NO_CANARY,
    ),
    _figure(
        "Failed",
        "Canaries, by route, that were not served, or lacked a value, in their last run.",
        f"sum(max by ({_EACH}) (1 - {_canary('success')}))",
        width=5,
        empty=_NO_CANARY,
    ),
    _figure(
        "Wrong values",
        "Canaries served as content with a wrong value, the hardest failure to see. Trust no record till you know why.",
        f"sum(max by ({_EACH}) ({_canary('decoy_suspect')}))",
        width=5,
        empty=_NO_CANARY,
    ),
    _figure(
        "Not run for three intervals",
        "Canaries whose last run is three of their intervals old or more.",
        (
            f"count(time() - max by ({_EACH}) ({_canary('last_run_timestamp_seconds')})\n"
            f"  > 3 * max by ({_EACH}) ({_canary('interval_seconds')})) or vector(0)"
        ),
        width=5,
        empty=_NO_CANARY,
    ),
    _figure(
        "Runs skipped in an hour",
        "Runs that were left out because the one before was still waiting or running.",
        'sum(increase(crawlhealth_canary_skipped_total{@{group}job="@job"}[1h])) or vector(0)',
        width=4,
        empty=_NO_CANARY,
    ),
)
_STATES: Final = Panel(
    title="Canaries by route",
    description="Right, failed, or a wrong value on a page that looks right (a decoy suspect), for each route.",
    kind=Kind.STATES,
    queries=(
        Query(
            expr=CANARY.replace("@site}", f"{_OF}}}"),
            legend="@name {{canary}} {{route}}",
        ),
    ),
    width=24,
    height=11,
    unit="none",
    mappings=CANARY_STATES,
    empty=_NO_CANARY,
)
_RIGHT: Final = (
    f"max by ({_VALUE}) ({_canary('value')})\nand on ({_VALUE}) max by ({_VALUE}) ({_canary('value_ok')}) == "
)
_SEEN: Final = Panel(
    title="Numbers seen",
    description=(
        "The numbers found on the pages, as lines. A dot is one that is not what was expected."
        " Choose a canary above to see its own scale."
    ),
    kind=Kind.LINES,
    queries=(
        Query(expr=f"max by ({_VALUE}) ({_canary('value')})", legend="{{canary}} {{value}} {{route}}"),
        Query(expr=f"{_RIGHT}0", legend="WRONG {{canary}} {{value}} {{route}}"),
    ),
    width=12,
    height=9,
    unit="none",
    series=(Series(name="WRONG.*", colour=colours.RED, points=True),),
    legend_right=True,
    empty="No canary expects a number, or none of their pages was served.",
)
_VALUES: Final = Panel(
    title="Values that are not as expected",
    description="Values that were wrong or missing on a page that was served. Gone from here: right again.",
    kind=Kind.STATES,
    queries=(
        Query(
            expr=(
                f"max by ({_VALUE}) ({_canary('value_ok')})\n"
                f"and on ({_VALUE}) max by ({_VALUE}) (min_over_time({_canary('value_ok')}[$__range])) == 0"
            ),
            legend="{{canary}} {{value}} {{route}}",
        ),
    ),
    width=12,
    height=9,
    unit="none",
    mappings=(
        Mapped(value=1, text="right", colour=colours.GOOD),
        Mapped(value=0, text="wrong or missing", colour=colours.BAD),
    ),
    empty="Every value was right in this time: good.",
)
_ACROSS: Final = "@by, canary, value"
_DISAGREE: Final = Panel(
    title="Disagreement between routes",
    description=(
        "How far the number of one route is from another's, in shares of the larger. 0 is agreement. Above it one route"
        " is shown another page than the other."
    ),
    kind=Kind.LINES,
    queries=(
        Query(
            expr=(
                f"(max by ({_ACROSS}) ({_canary('value')}) - min by ({_ACROSS}) ({_canary('value')}))\n"
                f"/ (max by ({_ACROSS}) (abs({_canary('value')})) > 0)\n"
                f"and on ({_ACROSS}) count by ({_ACROSS}) (max by ({_VALUE}) ({_canary('value')})) > 1"
            ),
            legend="@name {{canary}} {{value}}",
        ),
    ),
    width=8,
    height=8,
    unit="percentunit",
    least=0,
    fill=10,
    empty="No number is seen over two routes: with one route there is nothing to compare.",
)
_OUTCOMES: Final = Panel(
    title="Runs by outcome",
    description="Canary runs in a second, by what came of them.",
    kind=Kind.LINES,
    queries=(
        Query(
            expr=f"sum by (outcome) (rate({_canary('runs_total')}[$__rate_interval]))",
            legend="{{outcome}}",
        ),
    ),
    width=8,
    height=8,
    unit="reqps",
    least=0,
    stacked=True,
    colours=colours.OUTCOMES,
    empty=_NO_CANARY,
)
_PHASES: Final = Panel(
    title="Phases of the fetch",
    description="The mean time that each phase of the last runs took. One that was not reached has no time.",
    kind=Kind.LINES,
    queries=(Query(expr=f"avg by (phase) ({_canary('duration_seconds')})", legend="{{phase}}"),),
    width=8,
    height=8,
    unit="s",
    least=0,
    stacked=True,
    colours=colours.PHASES,
    empty=_NO_CANARY,
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
_AGE: Final = Panel(
    title="Longest without success",
    description="The ten canaries, by route, whose last success is the longest ago.",
    kind=Kind.LINES,
    queries=(
        Query(
            expr=f"topk(10, time() - max by ({_EACH}) ({_canary('last_success_timestamp_seconds')}))",
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
        Row(title="Now", lines=(_FIGURES, (_STATES,))),
        Row(title="Values", lines=((_SEEN, _VALUES), (_DISAGREE, _OUTCOMES, _PHASES))),
        Row(title="Timetable and certificates", lines=((_LAG, _AGE, _CERTIFICATES),)),
    ),
    marks=(BAND_CHANGES,),
)
