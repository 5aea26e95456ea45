"""Dashboards as files: the same each time, valid for the SDK, without overlap, and by the rules of Grafana's linter."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from alerting.test_expressions import known_with_records, labels_of
from crawlhealth import bundle
from crawlhealth.bundle.dashboards import BOARDS, FOLDER, files
from crawlhealth.bundle.dashboards.board import Board, Kind, Panel, Query, Row, filled
from crawlhealth.bundle.dashboards.building import rendered
from crawlhealth.bundle.model import Scope
from crawlhealth.bundle.preview.choosing import put_in

OPTIONS = (bundle.Options(), bundle.Options(group_labels=("tenant", "cluster"), crawler_jobs=("spiders",)))
LINT_EXTRAS = {"titleFormat", "textFormat", "tagKeys", "step", "useValueForTime"}
"""Fields of annotations from Prometheus that Grafana knows and the SDK does not."""


def dashboards(options: bundle.Options) -> dict[str, dict[str, Any]]:
    return {name: json.loads(text) for name, text in files(options).items() if name.endswith(".json")}


EVERY = [
    pytest.param(options, board, id=f"{name.rpartition('/')[2]} {', '.join(options.group_labels)}")
    for options in OPTIONS
    for name, board in dashboards(options).items()
]
every_board = pytest.mark.parametrize(("options", "board"), EVERY)


def panels(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def queries(board: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What each query is of, and its expression as Grafana writes it."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield f"{board['uid']}: {panel['title']} {target['refId']}", target["expr"]
    for mark in board["annotations"]["list"]:
        yield f"{board['uid']}: {mark['name']}", mark["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            asked = variable["query"]["query"]
            yield f"{board['uid']}: ${variable['name']}", asked.removeprefix("label_values(").rpartition(",")[0]


def substituted(board: Mapping[str, Any], expr: str) -> str:
    """An expression with everything chosen."""
    chosen = {variable["name"]: () for variable in board["templating"]["list"]}
    return put_in(expr, chosen, 60, 3600)


def test_all_five_are_there_and_those_that_alerts_link_to() -> None:
    uids = [board.uid for board in BOARDS]
    assert sorted(uids) == [f"crawlhealth-{name}" for name in ("canaries", "exporter", "fleet", "searchbots", "site")]
    assert set(uids) >= {str(scope) for scope in Scope}


@pytest.mark.parametrize("options", OPTIONS, ids=("plain", "grouped"))
def test_equal_options_give_equal_bytes(options: bundle.Options) -> None:
    assert files(options) == files(options)


def test_a_dashboard_that_is_not_rendered_any_more_is_a_difference(tmp_path: Path) -> None:
    bundle.write(tmp_path)
    (tmp_path / FOLDER / "old.json").write_text("{}")
    assert bundle.check(tmp_path) == [f"{FOLDER}/old.json: is not rendered any more: remove it\n"]


@every_board
def test_the_sdk_reads_it_back_and_writes_the_same(options: bundle.Options, board: dict[str, Any]) -> None:
    register_default_plugins()
    again = json.loads(json.dumps(Dashboard.from_json(json.loads(json.dumps(board))), cls=JSONEncoder))
    for mark in board["annotations"]["list"]:
        assert set(mark) >= LINT_EXTRAS
    without = [{k: v for k, v in mark.items() if k not in LINT_EXTRAS} for mark in board["annotations"]["list"]]
    assert again == {**board, "annotations": {"list": without}}


@every_board
def test_identities_are_unique_and_nothing_is_bound_to_one_grafana(
    options: bundle.Options, board: dict[str, Any]
) -> None:
    assert not board.keys() & {"id", "__inputs", "__requires", "version"}
    assert board["editable"] is False
    assert board["schemaVersion"] >= 39
    identities = Counter(panel["id"] for panel in board["panels"])
    assert max(identities.values()) == 1
    assert all(identity > 0 for identity in identities)
    for panel in panels(board):
        assert [target["refId"] for target in panel["targets"]] == list("ABCDEFGHIJ")[: len(panel["targets"])]


def test_a_panel_keeps_its_identity_when_another_comes_before_it() -> None:
    def panel(title: str) -> Panel:
        return Panel(title=title, description="d", kind=Kind.STAT, queries=(Query(expr="up"),), width=24, empty="e")

    def shown(*titles: str) -> dict[str, int]:
        rows = (Row(title="r", lines=tuple((panel(title),) for title in titles)),)
        board = Board(uid="u", title="t", description="d", rows=rows, variables=())
        return {one["title"]: one["id"] for one in json.loads(rendered(board, bundle.Options()))["panels"]}

    assert shown("new", "old")["old"] == shown("old")["old"]
    with pytest.raises(ValueError, match="one id for old, old"):
        shown("old", "old")


@every_board
def test_the_grid_is_full_without_overlap_or_gap(options: bundle.Options, board: dict[str, Any]) -> None:
    cells: Counter[tuple[int, int]] = Counter()
    for panel in board["panels"]:
        grid = panel["gridPos"]
        for x in range(grid["x"], grid["x"] + grid["w"]):
            cells.update((x, y) for y in range(grid["y"], grid["y"] + grid["h"]))
    height = max(y for _, y in cells) + 1
    assert cells == Counter({(x, y): 1 for x in range(24) for y in range(height)})


def test_a_line_that_does_not_fill_the_grid_is_refused() -> None:
    panel = Panel(title="a", description="d", kind=Kind.STAT, queries=(), width=20)
    with pytest.raises(ValueError, match="20 of 24 columns"):
        Row(title="r", lines=((panel,),))


def test_an_unknown_placeholder_is_told() -> None:
    with pytest.raises(ValueError, match=r"no placeholder .*'jobb'"):
        filled('up{job="@jobb"}', bundle.Options())


@every_board
def test_the_data_source_is_chosen_in_one_place(options: bundle.Options, board: dict[str, Any]) -> None:
    sources = [variable for variable in board["templating"]["list"] if variable["type"] == "datasource"]
    assert [(one["name"], one["label"], one["query"]) for one in sources] == [
        ("datasource", "Data source", "prometheus")
    ]
    places = panels(board) + [target for panel in panels(board) for target in panel["targets"]]
    places += [*board["annotations"]["list"], *(v for v in board["templating"]["list"] if v["type"] == "query")]
    assert {json.dumps(place["datasource"]) for place in places} == {'{"type": "prometheus", "uid": "${datasource}"}'}


@every_board
def test_every_variable_is_used_asked_anew_and_offers_what_it_should(
    options: bundle.Options, board: dict[str, Any]
) -> None:
    text = " ".join(expr for _, expr in queries(board))
    for variable in board["templating"]["list"][1:]:
        assert re.search(rf"=~\"\${variable['name']}\"", text), variable["name"]
        assert variable["refresh"] == 2
        assert variable["multi"]
        assert variable["description"]
        assert variable["includeAll"] is (variable["name"] != "site" or board["uid"] != "crawlhealth-site")
        assert variable.get("allValue") == (".+" if variable["includeAll"] else None)
    names = [variable["name"] for variable in board["templating"]["list"]]
    assert len(names) == len(set(names))
    assert names[1 : 1 + len(options.group_labels)] == list(options.group_labels) or "tenant" in names


@every_board
def test_every_panel_says_what_it_is_in_which_unit_and_why_it_may_be_empty(
    options: bundle.Options, board: dict[str, Any]
) -> None:
    titles = Counter(panel["title"] for panel in panels(board))
    assert max(titles.values()) == 1
    for panel in panels(board):
        defaults = panel["fieldConfig"]["defaults"]
        assert len(panel["description"]) > 20, panel["title"]
        assert defaults["unit"], panel["title"]
        assert defaults["noValue"], panel["title"]
        assert panel["targets"], panel["title"]
        if panel["type"] in ("timeseries", "state-timeline"):
            assert all(target["legendFormat"] != "__auto" and target["range"] for target in panel["targets"])
            assert panel["options"]["legend"]["showLegend"]
        else:
            assert all(target["instant"] and not target["range"] for target in panel["targets"]), panel["title"]
        if panel["type"] == "table":
            assert {target["format"] for target in panel["targets"]} == {"table"}


@every_board
def test_rates_are_over_the_interval_that_grafana_reckons(options: bundle.Options, board: dict[str, Any]) -> None:
    for of, expr in queries(board):
        assert "irate(" not in expr
        assert not re.search(r"\brate\([^()]*\[(?!\$__rate_interval\])", expr), of


@every_board
def test_links_lead_to_the_others_and_keep_what_is_chosen(options: bundle.Options, board: dict[str, Any]) -> None:
    others = board["links"][0]
    assert (others["type"], others["tags"], others["includeVars"], others["keepTime"]) == (
        "dashboards", board["tags"], True, True,
    )  # fmt: skip
    for link in board["links"][1:]:
        assert link["tooltip"]
        assert "@" not in link["url"]


def test_a_row_of_the_fleet_leads_to_its_site_with_its_group_and_the_time_range() -> None:
    fleet = dashboards(OPTIONS[1])[f"{FOLDER}/crawlhealth-fleet.json"]
    [table] = [panel for panel in panels(fleet) if panel["title"] == "Sites, worst first"]
    [link] = [
        one["value"][0]["url"] for over in table["fieldConfig"]["overrides"] for one in over["properties"]
        if one["id"] == "links"
    ]  # fmt: skip
    assert link == (
        "/d/crawlhealth-site?var-site=${__data.fields.site:percentencode}"
        "&var-tenant=${__data.fields.tenant:percentencode}&var-cluster=${__data.fields.cluster:percentencode}"
        "&${datasource:queryparam}&${__url_time_range}"
    )


def known(options: bundle.Options) -> dict[str, frozenset[str]]:
    """What the exporter, Prometheus and the rules bring, with the labels of each."""
    series = known_with_records(options)
    target = frozenset({"job", "instance", *options.group_labels})
    processes = ("resident_memory_bytes", "cpu_seconds_total", "start_time_seconds")
    series |= {f"process_{name}": target for name in processes}
    series["ALERTS"] = target | {"alertname", "alertstate", "severity", "site"}
    return series


@every_board
def test_every_query_reads_what_is_there_by_labels_that_it_has(options: bundle.Options, board: dict[str, Any]) -> None:
    series = known(options)
    for of, expr in queries(board):
        try:
            labels_of(promql.parse(substituted(board, expr)), series)
        except (AssertionError, ValueError) as error:
            pytest.fail(f"{of}: {error}")


@pytest.mark.parametrize("options", OPTIONS, ids=("plain", "grouped"))
def test_promtool_reads_every_query(options: bundle.Options, tmp_path: Path) -> None:
    found = [(of, substituted(board, expr)) for board in dashboards(options).values() for of, expr in queries(board)]
    rules = [{"record": f"query:{number}", "expr": expr} for number, (_, expr) in enumerate(found)]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    result = subprocess.run(["promtool", "check", "rules", path], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert f"{len(found)} rules found" in result.stdout
    assert len(found) > 150
