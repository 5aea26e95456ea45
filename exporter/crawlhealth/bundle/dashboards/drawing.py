"""How panels look, in the types of Grafana's foundation SDK: queries, options of each kind, fields, transformations."""

from __future__ import annotations

import re
from typing import Any, Final

from grafana_foundation_sdk.models import bargauge, common, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.models import dashboard as sdk

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Column, Kind, Mapped, Panel, Series, filled
from crawlhealth.bundle.model import Options

_SMALL: Final = 18
"""The size of a calm figure, in pixels."""


def targets(panel: Panel, options: Options, datasource: sdk.DataSourceRef) -> list[prometheus.Dataquery]:
    """The queries, named A, B, C … in their order."""
    tabular = panel.kind is Kind.TABLE
    return [
        prometheus.Dataquery(
            ref_id=chr(ord("A") + number),
            expr=filled(query.expr, options),
            legend_format=filled(query.legend, options) or "__auto",
            instant=query.instant or tabular,
            range_val=not (query.instant or tabular),
            format_val=prometheus.PromQueryFormat.TABLE if tabular else prometheus.PromQueryFormat.TIME_SERIES,
            editor_mode=prometheus.QueryEditorMode.CODE,
            datasource=datasource,
        )
        for number, query in enumerate(panel.queries)
    ]


def options_of(panel: Panel) -> object:
    """The options of the panel's kind."""
    last = common.ReduceDataOptions(values=False, calcs=["lastNotNull"], fields="")
    tooltip = common.VizTooltipOptions(mode=common.TooltipDisplayMode.MULTI, sort=common.SortOrder.DESCENDING)
    match panel.kind:
        case Kind.LINES:
            return timeseries.Options(legend=_legend(), tooltip=tooltip)
        case Kind.STATES:
            return statetimeline.Options(
                show_value=common.VisibilityMode.AUTO, row_height=0.85, legend=_legend(), tooltip=tooltip
            )
        case Kind.STAT:
            return stat.Options(
                graph_mode=common.BigValueGraphMode.NONE,
                color_mode=common.BigValueColorMode.NONE if panel.calm else common.BigValueColorMode.BACKGROUND_SOLID,
                justify_mode=common.BigValueJustifyMode.CENTER,
                text_mode=common.BigValueTextMode.VALUE_AND_NAME if panel.names else common.BigValueTextMode.VALUE,
                reduce_options=last,
                text=common.VizTextDisplayOptions(value_size=_SMALL) if panel.calm else None,
                orientation=common.VizOrientation.VERTICAL if panel.names else common.VizOrientation.AUTO,
            )
        case Kind.BARS:
            return bargauge.Options(
                display_mode=common.BarGaugeDisplayMode.BASIC,
                value_mode=common.BarGaugeValueMode.TEXT,
                orientation=common.VizOrientation.HORIZONTAL,
                reduce_options=last,
            )
        case Kind.TABLE:
            return table.Options(cell_height=common.TableCellHeight.SM)


def _legend() -> common.VizLegendOptions:
    return common.VizLegendOptions(
        display_mode=common.LegendDisplayMode.LIST, placement=common.LegendPlacement.BOTTOM, show_legend=True
    )


def field_config(panel: Panel, options: Options) -> sdk.FieldConfigSource:
    """What holds for all series of a panel, and what for some."""
    defaults = sdk.FieldConfig(
        unit=panel.unit,
        decimals=panel.decimals,
        min_val=panel.least,
        max_val=panel.most,
        mappings=_mappings(panel.mappings),
        thresholds=_thresholds(panel.thresholds),
        color=_colour_mode(panel),
        no_value=panel.empty or None,
        custom=_custom(panel),
    )
    columns = _columns(panel, options)
    exact = [_coloured(panel, name, colour) for name, colour in panel.colours.items()]
    overrides = [_override(one) for one in (*exact, *panel.series)]
    return sdk.FieldConfigSource(
        defaults=defaults, overrides=[*overrides, *(_column(column, options) for column in columns)]
    )


def _coloured(panel: Panel, name: str, colour: str) -> Series:
    if panel.kind is Kind.STAT:
        return Series(name=re.escape(name), thresholds=((None, colours.MUTED), (1, colour)))
    return Series(name=re.escape(name), colour=colour)


def _colour_mode(panel: Panel) -> sdk.FieldColor:
    by_value = panel.thresholds or panel.mappings or panel.kind is Kind.STAT
    if panel.kind is Kind.LINES or not by_value:
        return sdk.FieldColor(mode=sdk.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)
    return sdk.FieldColor(mode=sdk.FieldColorModeId.THRESHOLDS)


def _custom(panel: Panel) -> object | None:
    match panel.kind:
        case Kind.LINES:
            area = common.GraphThresholdsStyleMode.AREA if panel.areas else common.GraphThresholdsStyleMode.OFF
            return common.GraphFieldConfig(
                draw_style=common.GraphDrawStyle.LINE,
                line_width=0 if panel.stacked else 2,
                line_interpolation=(
                    common.LineInterpolation.STEP_AFTER if panel.steps else common.LineInterpolation.LINEAR
                ),
                fill_opacity=80 if panel.stacked else panel.fill,
                show_points=common.VisibilityMode.NEVER,
                span_nulls=False,
                axis_soft_max=panel.reach,
                stacking=common.StackingConfig(
                    mode=common.StackingMode.NORMAL if panel.stacked else common.StackingMode.NONE, group="A"
                ),
                thresholds_style=common.GraphThresholdsStyleConfig(mode=area),
            )
        case Kind.STATES:
            return statetimeline.FieldConfig(line_width=0, fill_opacity=90)
        case Kind.TABLE:
            return {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": False, "inspect": False}
        case _:
            return None


def _mappings(mapped: tuple[Mapped, ...]) -> list[sdk.ValueMapping]:
    values = {
        f"{one.value:g}" if isinstance(one.value, int | float) else one.value: sdk.ValueMappingResult(
            text=one.text, color=one.colour, index=number
        )
        for number, one in enumerate(mapped)
        if one.value is not None
    }
    found: list[sdk.ValueMapping] = [sdk.ValueMap(options=values)] if values else []
    for one in mapped:
        if one.value is None:
            missing = sdk.DashboardSpecialValueMapOptions(
                match=sdk.SpecialValueMatch.NULL_AND_NAN,
                result=sdk.ValueMappingResult(text=one.text, color=one.colour, index=len(values)),
            )
            found.append(sdk.SpecialValueMap(options=missing))
    return found


def _thresholds(steps: tuple[tuple[float | None, str], ...]) -> sdk.ThresholdsConfig:
    """Steps of colour; one colour that says nothing where there are none."""
    return sdk.ThresholdsConfig(
        mode=sdk.ThresholdsMode.ABSOLUTE,
        steps=[sdk.Threshold(value=value, color=colour) for value, colour in steps or ((None, colours.BLUE),)],
    )


def _override(series: Series) -> sdk.DashboardFieldConfigSourceOverrides:
    properties: dict[str, Any] = {}
    if series.colour:
        properties["color"] = {"mode": "fixed", "fixedColor": series.colour}
    if series.dashed:
        properties["custom.lineStyle"] = {"fill": "dash", "dash": [8, 6]}
    if series.fill is not None:
        properties["custom.fillOpacity"] = series.fill
    if series.width is not None:
        properties["custom.lineWidth"] = series.width
    if series.unit:
        properties["unit"] = series.unit
    if series.right:
        properties["custom.axisPlacement"] = "right"
    if series.points:
        properties |= {"custom.drawStyle": "points", "custom.pointSize": 8, "custom.showPoints": "always"}
    if series.thresholds:
        properties["thresholds"] = _thresholds(series.thresholds)
    if series.mappings:
        properties["mappings"] = _mappings(series.mappings)
    return _for("byRegexp", f"/^(?:{series.name})$/", properties)


def _columns(panel: Panel, options: Options) -> tuple[Column, ...]:
    """The columns, after those of the group labels that part what is listed."""
    if panel.kind is not Kind.TABLE:
        return ()
    known = {column.name for column in panel.columns}
    labels = (label for label in options.group_labels if label not in known)
    return (*(Column(name=label, title=label) for label in labels), *panel.columns)


def _column(column: Column, options: Options) -> sdk.DashboardFieldConfigSourceOverrides:
    properties: dict[str, Any] = {"displayName": column.title}
    if column.unit:
        properties["unit"] = column.unit
    if column.decimals is not None:
        properties["decimals"] = column.decimals
    if column.width is not None:
        properties["custom.width"] = column.width
    if column.mappings:
        properties["mappings"] = _mappings(column.mappings)
    if column.thresholds or any(one.colour for one in column.mappings):
        properties["thresholds"] = _thresholds(column.thresholds or ((None, "transparent"),))
        properties["custom.cellOptions"] = {"type": "color-background", "mode": "basic"}
        properties["color"] = {"mode": "thresholds"}
    if column.link:
        url = column.link.replace("@runbooks", options.runbook_base.rstrip("/")).replace(
            "@groups", "".join(f"&var-{one}=${{__data.fields.{one}:percentencode}}" for one in options.group_labels)
        )
        properties["links"] = [{"title": column.link_title, "url": url, "targetBlank": url.startswith("http")}]
    return _for("byName", column.name, properties)


def _for(matcher: str, name: str, properties: dict[str, Any]) -> sdk.DashboardFieldConfigSourceOverrides:
    return sdk.DashboardFieldConfigSourceOverrides(
        matcher=sdk.MatcherConfig(id_val=matcher, options=name),
        properties=[sdk.DynamicConfigValue(id_val=key, value=value) for key, value in properties.items()],
    )


def transformations(panel: Panel, options: Options) -> list[sdk.DataTransformerConfig]:
    """The answers of all queries as one table, a row for equal labels, sorted, with the columns that are described."""
    steps = [sdk.DataTransformerConfig(id_val="merge", options={})]
    if panel.order:
        by = {"fields": {}, "sort": [{"field": panel.order, "desc": panel.falling}]}
        steps.append(sdk.DataTransformerConfig(id_val="sortBy", options=by))
    names = [column.name for column in _columns(panel, options)]
    kept = {"include": {"names": names}}
    steps.append(sdk.DataTransformerConfig(id_val="filterFieldsByName", options=kept))
    places = {name: number for number, name in enumerate(names)}
    order = {"indexByName": places, "excludeByName": {}, "renameByName": {}}
    steps.append(sdk.DataTransformerConfig(id_val="organize", options=order))
    return steps
