"""What several dashboards share: the bands and faults as numbers, their names and colours, variables and marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Kind, Mapped, Mark, Panel, Query, Series, Variable
from crawlhealth.scoresettings import Thresholds

_BANDS: Final = Thresholds()
SCORE_STEPS: Final = (
    (None, colours.BANDS["resisting"]),
    (_BANDS.resisting, colours.BANDS["degrading"]),
    (_BANDS.degrading, colours.BANDS["normal"]),
)
"""The score's bands as steps of colour."""
BAND_NUMBERS: Final[Mapping[str, int]] = {"unknown": 0, "normal": 1, "degrading": 2, "resisting": 3}
FAULT_NUMBERS: Final[Mapping[str, int]] = {"none": 0, "site": 1, "route": 2, "parser": 3, "decoy": 4, "self": 5}
BAND_NAMES: Final = tuple(
    Mapped(value=number, text=band, colour=colours.BANDS[band]) for band, number in BAND_NUMBERS.items()
)
FAULT_NAMES: Final = (
    Mapped(value=0, text="none found", colour=colours.MUTED),
    Mapped(value=1, text="the site", colour=colours.BAD),
    Mapped(value=2, text="a route", colour=colours.AMBER),
    Mapped(value=3, text="our parser", colour=colours.VERMILLION),
    Mapped(value=4, text="wrong values on good-looking pages", colour=colours.BAD),
    Mapped(value=5, text="our own connection", colour=colours.VIOLET),
)
UP: Final = (Mapped(value=1, text="up", colour=colours.GOOD), Mapped(value=0, text="DOWN", colour=colours.BAD))
CONCURRENCY: Final = (
    Mapped(value=0, text="paused", colour=colours.BAD),
    Mapped(value=1, text="as usual", colour=colours.GOOD),
)
CONCURRENCY_STEPS: Final = ((None, colours.BAD), (0.01, colours.AMBER), (0.999, colours.GOOD))
ALERTS: Final = 'ALERTS{alertname=~"Crawl[A-Z].+",alertstate="firing"'
"""Begins the selector of what fires."""
TO_SITE: Final = (
    "/d/crawlhealth-site?var-site=${__data.fields.site:percentencode}@groups"
    "&${datasource:queryparam}&${__url_time_range}"
)
"""Leads from a row of a table to the dashboard of its site."""
TO_RUNBOOK: Final = "@runbooks/${__data.fields.alertname}.md"

SITES: Final = Variable(
    name="site",
    label="Site",
    query='label_values(crawlhealth_band{@{group}job="@job"}, site)',
    description="The sites to show.",
)
ROUTES: Final = Variable(
    name="route",
    label="Route",
    query="label_values(crawlhealth_requests_total{@traffic,@site}, route)",
    description="The ways out to show.",
)
SHARES: Final[Mapping[str, str]] = {
    "hard_block": "hard blocks",
    "challenge": "challenges",
    "soft_block": "soft blocks",
}
"""Signals that are shares of the answered requests, as people call them."""
COSTING: Final[Mapping[str, str]] = {**SHARES, "latency": "latency", "refused_cap": "too little served"}
DRIFTING: Final[Mapping[str, str]] = {**SHARES, "latency": "latency", "refused": "all refused"}

BAND_CHANGES: Final = Mark(
    name="Changes of band",
    expr=(
        '1000 * max by (@by) (crawlhealth_band_since_timestamp_seconds{job="@job",@site})\n'
        '* on (@by) group_right () (max by (@by, band) (crawlhealth_band{job="@job",@site}) == 1)'
    ),
    colour=colours.AMBER,
    title="@name is {{band}}",
)
ACCEPTED: Final = Mark(
    name="New normal accepted by a person",
    expr='1000 * max by (@by) (crawlhealth_baseline_accepted_timestamp_seconds{job="@job",@site})',
    colour=colours.GREEN,
    title="@name: a person accepted a new normal",
)
PLANNED: Final = Mark(
    name="Planned stops",
    expr='max by (@by) (crawlhealth_maintenance{job="@job",@site})',
    colour=colours.GREY,
    title="@name: planned stop",
    moments=False,
)


def numbered(metric: str, label: str, numbers: Mapping[str, int]) -> str:
    """The one value of a label that holds for each site, as its number. `metric` is open: `x{job="@job"` or `x{`."""
    comma = "" if metric.endswith("{") else ","
    parts = (f'{number} * {metric}{comma}{label}="{value}",@site}}' for value, number in numbers.items())
    return "max by (@by) (\n  " + "\n  or ".join(parts) + "\n)"


BAND: Final = numbered("site_band:crawlhealth_band{", "band", BAND_NUMBERS)
FAULT: Final = numbered('crawlhealth_diagnosis{job="@job"', "diagnosis", FAULT_NUMBERS)


def gauge(metric: str, labels: str = "", *, by: str = "", of: str = "max") -> str:
    """A gauge of the exporter for the chosen sites, one series for each site (and `by`), whoever scraped it."""
    more = f",{labels}" if labels else ""
    return f'{of} by (@by{by and ", " + by}) ({metric}{{job="@job"{more},@site}})'


def now_and_normal(
    title: str, description: str, now: str, normal: str, *, width: int, unit: str, counted: str = "", colour: str
) -> Panel:
    """Lines of something beside the site's own normal, which is dashed. The axis reaches 0.05: noise stays small."""
    lines = [Query(expr=now, legend="now@of"), Query(expr=normal, legend="normal@of")]
    if counted:
        lines.append(Query(expr=counted, legend="beyond chance@of"))
    return Panel(
        title=title,
        description=description,
        kind=Kind.LINES,
        queries=tuple(lines),
        width=width,
        height=7,
        unit=unit,
        least=0,
        reach=0.05,
        empty="No answered requests in the window: nothing to compare.",
        series=(
            Series(name="now.*", colour=colour, fill=15),
            Series(name="normal.*", colour=colours.PALE, dashed=True),
            Series(name="beyond chance.*", colour=colours.RED, width=1),
        ),
    )


def firing(by: Iterable[str], labels: str) -> str:
    """What fires, by these labels; `labels` are matchers with a comma after each. Higher is more severe."""
    ranked = "\n  or ".join(
        f'{rank} * {ALERTS},{labels}severity="{severity}"}}'
        for rank, severity in enumerate(reversed(list(colours.SEVERITIES)), 1)
    )
    return f"max by ({', '.join(('alertname', 'severity', *by))}) (\n  {ranked}\n)"


def signals(metric: str, names: Mapping[str, str]) -> tuple[Query, ...]:
    """A query for each signal, called as its panel is. `metric` is open, `x{`, and its selector of sites is added."""
    return tuple(
        Query(expr=f'max by (@by) ({metric}signal="{signal}",@site}})', legend=f"{name}@of")
        for signal, name in names.items()
    )


def signal_colours(names: Mapping[str, str]) -> tuple[Series, ...]:
    """The colours of signals by what they are called."""
    return tuple(Series(name=f"{name}.*", colour=colours.SIGNALS[signal]) for signal, name in names.items())


SEVERITY_NAMES: Final = tuple(
    Mapped(value=severity, text=severity, colour=colour) for severity, colour in colours.SEVERITIES.items()
)


def figure(
    title: str,
    description: str,
    expr: str,
    *,
    unit: str,
    steps: tuple[tuple[float | None, str], ...],
    empty: str,
    width: int = 4,
    height: int = 4,
) -> Panel:
    """A number of this moment, coloured by `steps`."""
    return Panel(
        title=title,
        description=description,
        kind=Kind.STAT,
        queries=(Query(expr=expr, legend=title, instant=True),),
        width=width,
        height=height,
        unit=unit,
        decimals=0,
        thresholds=steps,
        empty=empty,
    )
