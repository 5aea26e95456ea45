"""Dashboards as Grafana's classic JSON, through the types of its foundation SDK: the same bytes for the same board."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final
from zlib import crc32

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as sdk

from crawlhealth.bundle.dashboards.board import WIDTH, Board, Kind, Link, Mark, Panel, Row, Variable, filled
from crawlhealth.bundle.dashboards.drawing import field_config, options_of, targets, transformations
from crawlhealth.bundle.model import Options

TAG: Final = "crawlhealth"
"""The dashboards link to each other by it."""
DATASOURCE: Final = sdk.DataSourceRef(type_val="prometheus", uid="${datasource}")
_LATEST: Final = "11.6.0"
"""The version of panels that is written; later ones bring them forward by themselves."""
_IDS: Final = 1_000_000


def rendered(board: Board, options: Options) -> str:
    """The JSON of a board. Raises ValueError for an unknown placeholder, or two panels of one title."""
    data = json.loads(json.dumps(_dashboard(board, options), cls=JSONEncoder))
    for shown, mark in zip(data["annotations"]["list"], board.marks, strict=True):
        shown.update(_annotation_text(mark, options))
    return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def identity(title: str) -> int:
    """The id of a panel: of its title, so that links to it outlive a panel that is put in before it."""
    return crc32(title.encode()) % _IDS + 1


def _dashboard(board: Board, options: Options) -> sdk.Dashboard:
    return sdk.Dashboard(
        uid=board.uid,
        title=board.title,
        description=filled(board.description, options),
        tags=[TAG],
        timezone="browser",
        editable=False,
        graph_tooltip=sdk.DashboardCursorSync.CROSSHAIR,
        time=sdk.DashboardDashboardTime(from_val=_ago(board.hours / options.time_scale), to="now"),
        refresh=board.refresh,
        panels=_panels(board, options),
        templating=sdk.DashboardDashboardTemplating(
            list_val=[_datasource(), *(_variable(one, options) for one in _variables(board, options))]
        ),
        annotations=sdk.AnnotationContainer(list_val=[_annotation(mark, options) for mark in board.marks]),
        links=[_others(), *(_link(link, options) for link in board.links)],
    )


def _ago(hours: float) -> str:
    """A time range as Grafana writes it."""
    return f"now-{hours:g}h" if hours >= 1 and hours == int(hours) else f"now-{round(hours * 60)}m"


def _panels(board: Board, options: Options) -> list[sdk.Panel | sdk.RowPanel]:
    found: list[sdk.Panel | sdk.RowPanel] = []
    y = 0
    for row in board.rows:
        found.append(_row(row, y))
        y += 1
        for line in row.lines:
            x = 0
            for panel in line:
                found.append(_panel(panel, sdk.GridPos(x=x, y=y, w=panel.width, h=panel.height), options))
                x += panel.width
            y += line[0].height
    twice = [one for one, count in Counter(panel.id_val for panel in found).items() if count > 1]
    if twice:
        titles = [panel.title for panel in found if panel.id_val in twice]
        raise ValueError(f"{board.title}: one id for {', '.join(str(title) for title in titles)}")
    return found


def _row(row: Row, y: int) -> sdk.RowPanel:
    return sdk.RowPanel(
        title=row.title,
        id_val=identity(f"row {row.title}"),
        grid_pos=sdk.GridPos(x=0, y=y, w=WIDTH, h=1),
        panels=[],
        repeat=row.repeat or None,
    )


def _panel(panel: Panel, place: sdk.GridPos, options: Options) -> sdk.Panel:
    return sdk.Panel(
        type_val=panel.kind.value,
        id_val=identity(panel.title),
        plugin_version=_LATEST,
        title=panel.title,
        description=filled(panel.description, options),
        datasource=DATASOURCE,
        grid_pos=place,
        targets=list(targets(panel, options, DATASOURCE)),
        options=options_of(panel),
        field_config=field_config(panel, options),
        transformations=transformations(panel, options) if panel.kind is Kind.TABLE else None,
    )


def _datasource() -> sdk.VariableModel:
    """The one choice of a data source; the first of its kind where nobody chose."""
    return sdk.VariableModel(
        type_val=sdk.VariableType.DATASOURCE,
        name="datasource",
        label="Data source",
        description="The Prometheus that scrapes crawlhealth and evaluates its rules.",
        query="prometheus",
        refresh=sdk.VariableRefresh.ON_DASHBOARD_LOAD,
        allow_custom_value=False,
    )


def _variables(board: Board, options: Options) -> tuple[Variable, ...]:
    """Group labels come first: what is chosen of them narrows the rest."""
    return (
        *(
            Variable(
                name=label,
                label=label,
                query=f'label_values(crawlhealth_build_info{{job="@job"}}, {label})',
                description="Parts sites of the same name.",
            )
            for label in options.group_labels
            if label not in {variable.name for variable in board.variables}
        ),
        *board.variables,
    )


def _variable(variable: Variable, options: Options) -> sdk.VariableModel:
    name = filled(variable.query, options)
    everything = sdk.VariableOption(selected=True, text=["All"], value=["$__all"])
    return sdk.VariableModel(
        type_val=sdk.VariableType.QUERY,
        name=variable.name,
        label=variable.label,
        description=variable.description,
        datasource=DATASOURCE,
        query={"query": name, "refId": f"variable-{variable.name}"},
        refresh=sdk.VariableRefresh.ON_TIME_RANGE_CHANGED,
        sort=sdk.VariableSort.ALPHABETICAL_ASC,
        multi=variable.multi,
        include_all=variable.everything,
        all_value=".+" if variable.everything else None,
        current=everything if variable.everything else None,
    )


def _annotation(mark: Mark, options: Options) -> sdk.AnnotationQuery:
    return sdk.AnnotationQuery(
        name=mark.name,
        datasource=DATASOURCE,
        enable=True,
        icon_color=mark.colour,
        expr=filled(mark.expr, options),
    )


def _annotation_text(mark: Mark, options: Options) -> dict[str, Any]:
    """What the SDK does not know of annotations from Prometheus."""
    return {
        "titleFormat": filled(mark.title, options),
        "textFormat": "",
        "tagKeys": "",
        "step": "",
        "useValueForTime": "on" if mark.moments else "",
    }


def _others() -> sdk.DashboardLink:
    return sdk.DashboardLink(
        title="crawlhealth",
        type_val=sdk.DashboardLinkType.DASHBOARDS,
        icon="external link",
        tooltip="The other dashboards, with what is chosen here",
        url="",
        tags=[TAG],
        include_vars=True,
        keep_time=True,
    )


def _link(link: Link, options: Options) -> sdk.DashboardLink:
    outside = link.url.startswith("@exporter")
    return sdk.DashboardLink(
        title=link.title,
        type_val=sdk.DashboardLinkType.LINK,
        icon="external link" if outside else "dashboard",
        tooltip=link.tooltip,
        url=link.url.replace("@exporter", options.exporter_url.rstrip("/")),
        tags=[],
        target_blank=outside,
        include_vars=not outside,
        keep_time=not outside,
    )
