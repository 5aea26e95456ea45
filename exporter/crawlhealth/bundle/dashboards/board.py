"""What a dashboard is described with: queries, panels, lines of panels, rows, variables. No Grafana in here.

**Expressions** are PromQL with Grafana's own variables (`$site`, `$__rate_interval`) and these placeholders, which
`filled` replaces (`@@` stands for one `@`):

| written | becomes |
|---|---|
| `@job` | the exporter's job, as in `crawlhealth_score{job="@job",@site}` |
| `@traffic` | `job="crawlhealth"`, or the exporter's and the crawlers' jobs |
| `@site` | `site=~"$site"`, with a matcher for each group label before it |
| `@group` | a matcher for each group label, each with a comma after it: `tenant=~"$tenant",`; nothing without |
| `@by` | the group labels and `site` |
| `@prefix` | the group labels with a comma after each |
| `@name` | in legends: what a site is called, `{{site}}` or `{{tenant}} {{site}}` |
| `@of` | in legends of one site: the group labels, each after a space |

Lengths in the text (`[1h]`, `offset 1d`) are divided by the time scale of the rendering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from string import Template
from typing import Final

from crawlhealth.bundle.model import Options
from crawlhealth.bundle.rules import escaped, scaled, traffic, without_repeats

WIDTH: Final = 24
"""Columns of Grafana's grid."""


class Kind(StrEnum):
    """How a panel shows what it found; the value is Grafana's plugin."""

    LINES = "timeseries"
    STAT = "stat"
    TABLE = "table"
    STATES = "state-timeline"
    BARS = "bargauge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query. `legend` is what its series are called; tables and figures ask for the present moment only."""

    expr: str
    legend: str = ""
    instant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """What a value is called and coloured. `value` None stands for one that is missing."""

    value: float | str | None
    text: str
    colour: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: the field, its title, and how it is shown. `link` is where a click leads."""

    name: str
    title: str
    unit: str = ""
    decimals: int | None = None
    mappings: tuple[Mapped, ...] = ()
    thresholds: tuple[tuple[float | None, str], ...] = ()
    link: str = ""
    link_title: str = ""
    width: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """How series are drawn whose name matches `name`, a regular expression of all of it."""

    name: str
    colour: str = ""
    dashed: bool = False
    fill: int | None = None
    width: int | None = None
    unit: str = ""
    right: bool = False
    points: bool = False
    mappings: tuple[Mapped, ...] = ()
    thresholds: tuple[tuple[float | None, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel. `description` says what it shows and what to make of it, `empty` why nothing is there if so.

    `colours` are those of series by their whole name; figures have them from 1 on. `thresholds` are (from, colour), the
    first from None; `areas` draws them behind lines. `columns` of a table stand in this order, fields without one are
    left out; `order` is the field to sort by, `falling` the other way round. `names` shows the names of figures too,
    `calm` shows them small and without a tile. `reach` is what the axis of lines shows at least.
    """

    title: str
    description: str
    kind: Kind
    queries: tuple[Query, ...]
    width: int
    height: int = 8
    unit: str = "short"
    empty: str = ""
    decimals: int | None = None
    least: float | None = None
    most: float | None = None
    reach: float | None = None
    colours: Mapping[str, str] = field(default_factory=dict)
    series: tuple[Series, ...] = ()
    mappings: tuple[Mapped, ...] = ()
    thresholds: tuple[tuple[float | None, str], ...] = ()
    areas: bool = False
    stacked: bool = False
    fill: int = 0
    steps: bool = False
    columns: tuple[Column, ...] = ()
    order: str = ""
    falling: bool = False
    names: bool = False
    calm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Lines of panels under a title. `repeat` is the variable whose chosen values each get a row of their own."""

    title: str
    lines: tuple[tuple[Panel, ...], ...]
    repeat: str = ""

    def __post_init__(self) -> None:
        for line in self.lines:
            width, heights = sum(panel.width for panel in line), {panel.height for panel in line}
            if width != WIDTH or len(heights) != 1:
                raise ValueError(f"row {self.title}: {line[0].title}: {width} of {WIDTH} columns, heights {heights}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A choice above the panels, from the values of a label. `everything` offers all of them at once, at first too."""

    name: str
    label: str
    query: str
    description: str
    multi: bool = True
    everything: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Moments that are marked on all panels. `expr` gives them, in milliseconds where `moments`, else while it is 1."""

    name: str
    expr: str
    colour: str
    title: str
    moments: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link above the panels, with what is chosen and the time range kept."""

    title: str
    url: str
    tooltip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A dashboard. `hours` is how far it looks back at first, `refresh` how often it asks again."""

    uid: str
    title: str
    description: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...]
    marks: tuple[Mark, ...] = ()
    links: tuple[Link, ...] = ()
    hours: float = 24
    refresh: str = "1m"


class _Placeholders(Template):
    delimiter = "@"
    idpattern = r"(?-i:[a-z]+)"


def filled(text: str, options: Options) -> str:
    """`text` with its placeholders replaced. Raises ValueError for an unknown one."""
    group = "".join(f'{label}=~"${label}",' for label in options.group_labels)
    sites = ", ".join((*options.group_labels, "site"))
    values = {
        "job": escaped(options.job),
        "traffic": traffic(options),
        "site": f'{group}site=~"$site"',
        "group": group,
        "by": sites,
        "prefix": "".join(f"{label}, " for label in options.group_labels),
        "of": "".join(f" {{{{{label}}}}}" for label in options.group_labels),
        "name": " ".join(f"{{{{{label}}}}}" for label in (*options.group_labels, "site")),
    }
    try:
        return without_repeats(_Placeholders(scaled(text, options.time_scale)).substitute(values))
    except (KeyError, ValueError) as error:
        raise ValueError(f"no placeholder {error} in {text}") from error
