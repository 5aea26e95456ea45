"""Panels on what canaries see: numbers, values that are not as expected, routes that disagree, outcomes, phases."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Column, Kind, Panel, Query, Series

OF: Final = '@site,canary=~"$canary",route=~"$route"'
NO_CANARY: Final = "No canary has run: a page whose right answer you know shows what a score cannot."


def canary(metric: str) -> str:
    """A metric of the chosen canaries."""
    return f'crawlhealth_canary_{metric}{{job="@job",{OF}}}'


EACH: Final = "@by, canary, route"
VALUE: Final = "@by, canary, route, value"
_ACROSS: Final = "@by, canary, value"


_NAME: Final = "@name {{canary}} {{value}} {{route}}"
_RIGHT: Final = f"max by ({VALUE}) ({canary('value')})\nand on ({VALUE}) max by ({VALUE}) ({canary('value_ok')}) == "
_NUMBERS: Final = f"max by ({VALUE}) ({canary('value')})"
_AT_THE_END: Final = f"max by ({VALUE}) ({canary('value')} @@ end())"
_WERE_WRONG: Final = f"max by ({VALUE}) (min_over_time({canary('value_ok')}[$__range] @@ end())) == 0"
_OTHERS: Final = (
    f"(\n  1e300 + ({_AT_THE_END} and on ({_ACROSS}) {_WERE_WRONG})\n  or {_AT_THE_END}\n)"
    f" unless on ({VALUE}) {_WERE_WRONG}"
)
"""The numbers that were right, of each its rank: those that other routes see of one that was wrong come first."""
_SEEN: Final = Panel(
    title="Numbers seen",
    description=(
        "The numbers found on the pages: those that were wrong at some time in the range, then four others, which are"
        " what other routes see of the same, and the largest. A red dot is a number that is not what was expected."
        " Choose a canary above to see its own scale."
    ),
    kind=Kind.LINES,
    queries=(
        Query(expr=f"{_RIGHT}0", legend=f"WRONG {_NAME}"),
        Query(expr=f"{_NUMBERS}\nand on ({VALUE}) {_WERE_WRONG}", legend=_NAME),
        Query(expr=f"{_NUMBERS}\nand on ({VALUE}) topk(4, {_OTHERS})", legend=_NAME),
    ),
    width=12,
    height=9,
    unit="none",
    series=(Series(name="WRONG.*", colour=colours.RED, points=True),),
    empty="No canary expects a number, or none of their pages was served.",
)
_OK: Final = f"max by ({VALUE}) ({canary('value_ok')})"
_VALUES: Final = Panel(
    title="Values that are not as expected",
    description=(
        "Values that are wrong or missing now on a page that is served: the number seen, the last one that was right,"
        " and when, within a day. A value that is text has no number."
    ),
    kind=Kind.TABLE,
    queries=(
        Query(expr=f"{_OK} == 0"),
        Query(expr=f"{_RIGHT}0"),
        Query(expr=f"last_over_time(({_RIGHT}1)[1d:2m])\nand on ({VALUE}) {_OK} == 0"),
        Query(expr=f"1000 * max_over_time(timestamp({_OK} == 1)[1d:2m])\nand on ({VALUE}) {_OK} == 0"),
    ),
    width=12,
    height=9,
    columns=(
        Column(name="site", title="Site"),
        Column(name="canary", title="Canary"),
        Column(name="value", title="Value"),
        Column(name="route", title="Route"),
        Column(name="Value #B", title="Seen", unit="none", thresholds=((None, colours.BAD),)),
        Column(name="Value #C", title="Last right", unit="none"),
        Column(name="Value #D", title="Right until", unit="dateTimeFromNow"),
    ),
    order="Value #D",
    falling=True,
    empty="Every value is right now.",
)
_DISAGREE: Final = Panel(
    title="Routes that disagree",
    description=(
        "How far the number of one route is from another's, in shares of the larger. 0 is agreement. Above it one route"
        " is shown another page than the other."
    ),
    kind=Kind.LINES,
    queries=(
        Query(
            expr=(
                f"(max by ({_ACROSS}) ({canary('value')}) - min by ({_ACROSS}) ({canary('value')}))\n"
                f"/ (max by ({_ACROSS}) (abs({canary('value')})) > 0) > 0\n"
                f"and on ({_ACROSS}) count by ({_ACROSS}) (max by ({VALUE}) ({canary('value')})) > 1"
            ),
            legend="@name {{canary}} {{value}}",
        ),
    ),
    width=8,
    height=8,
    unit="percentunit",
    least=0,
    fill=10,
    empty="No number differed between routes in this time, or there is one route only.",
)
_OUTCOMES: Final = Panel(
    title="Runs by outcome",
    description="Canary runs in a minute, by what came of them.",
    kind=Kind.LINES,
    queries=(
        Query(
            expr=f"60 * sum by (outcome) (rate({canary('runs_total')}[$__rate_interval]))",
            legend="{{outcome}}",
        ),
    ),
    width=8,
    height=8,
    unit="suffix: a minute",
    least=0,
    stacked=True,
    colours=colours.OUTCOMES,
    empty=NO_CANARY,
)
_PHASES: Final = Panel(
    title="Phases of the fetch",
    description="The mean time that each phase of the last runs took. One that was not reached has no time.",
    kind=Kind.LINES,
    queries=(Query(expr=f"avg by (phase) ({canary('duration_seconds')})", legend="{{phase}}"),),
    width=8,
    height=8,
    unit="s",
    least=0,
    stacked=True,
    colours=colours.PHASES,
    empty=NO_CANARY,
)

VALUES: Final = ((_SEEN, _VALUES), (_DISAGREE, _OUTCOMES, _PHASES))
