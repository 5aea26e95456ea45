"""Every query of every panel and variable, asked of a real Prometheus that evaluates the real rules.

The exporter is made up, and shows every metric of the contract; its past is short, on a clock 400 times as fast.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from crawlhealth import bundle
from crawlhealth.bundle.dashboards import BOARDS, files
from crawlhealth.bundle.preview import Prometheus
from crawlhealth.bundle.preview.choosing import label_values
from crawlhealth.bundle.preview.drawing import View, view
from crawlhealth.cli import main
from dashboards.courses import Past
from dashboards.madeup import SITES, made
from dashboards.playing import bring, exposed, prometheus
from waiting import until

SCALE = 400.0
OPTIONS = bundle.Options(time_scale=SCALE)
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class World:
    """The Prometheus, and where its address and data are."""

    prometheus: Prometheus
    past: Past


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("live")
    past = made(time.time(), SCALE)
    near = [-52 + 0.4 * number for number in range(130)]
    far = [-194 + 0.4 * number for number in range(60)]
    counted = "requests_total|searchbot_visits_total|site:crawlhealth_score|:increase1h|canary_value|diagnosis"
    with exposed(past) as target:
        bring(folder, past, {counted: [*far, *near]}, {"job": "crawlhealth", "instance": target})
        with prometheus(folder, target, options=OPTIONS) as server:

            def judged() -> bool:
                now = time.time()
                fires = server.now('count(ALERTS{alertstate="firing",site!=""}) >= 3', now)
                return bool(fires and server.now("count_over_time(site:crawlhealth_parser_score[1m]) > 6", now))

            until(judged, SECONDS, "rules are evaluated and alerts fire")
            yield World(server, past)


def shown(board: str, world: World, **wanted: str) -> tuple[dict[str, Any], View]:
    dashboard = json.loads(files(OPTIONS)[f"grafana/dashboards/{board}.json"])
    return dashboard, view(dashboard, world.prometheus, time.time(), wanted)


@pytest.mark.parametrize("board", [board.uid for board in BOARDS])
def test_every_query_is_answered_and_every_panel_has_something_to_show(board: str, world: World) -> None:
    dashboard, seen = shown(board, world, site="shop")
    empty = []
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            if not seen.query(target):
                empty.append(f"{panel['title']} {target['refId']}")
    assert empty == []


@pytest.mark.parametrize("board", [board.uid for board in BOARDS])
def test_every_variable_offers_what_there_is(board: str, world: World) -> None:
    dashboard, seen = shown(board, world)
    for variable in dashboard["templating"]["list"][1:]:
        found = label_values(variable, world.prometheus, seen.chosen, time.time(), seen.seconds)
        assert found, variable["name"]
        if variable["name"] == "site":
            assert found == sorted(site.name for site in SITES)


def told(world: World, site: str) -> dict[str, float | str]:
    """What the figures of a site say, in words where a value has some."""
    dashboard, seen = shown("crawlhealth-site", world, site=site)
    said: dict[str, float | str] = {}
    for panel in dashboard["panels"]:
        if panel["type"] == "stat":
            [series] = seen.query(panel["targets"][0])
            value = series.points[-1][1]
            names = [one["options"] for one in panel["fieldConfig"]["defaults"]["mappings"] if one["type"] == "value"]
            said[panel["title"]] = names[0].get(f"{value:g}", {}).get("text", value) if names else value
    return said


def test_the_site_dashboard_answers_the_questions_of_whoever_is_called(world: World) -> None:
    said = told(world, "wiki")
    assert said["Where the fault lies"] == "our parser"
    assert 0 <= time.time() - float(said["Fault since"]) / 1000 < 5 * 3600
    assert told(world, "books")["Fault since"] == "no fault"
    assert said["You decide"] == "Mend the selectors, then crawl again what was missed"
    assert said["Crawlers told to run at"] == "as usual"
    assert said["Band"] == "normal"
    assert float(said["Score"]) > 90


def test_the_site_dashboard_says_whether_data_is_lost_or_wrong(world: World) -> None:
    fine, wrong, degrading = (told(world, site) for site in ("books", "forum", "shop"))
    assert [one["Canary values"] for one in (fine, wrong, degrading)] == ["none is wrong", 1, "none is wrong"]
    # the made-up shares are 3.2 % of every site, and 30 % of the one that degrades
    assert fine["Not served, last hour"] == pytest.approx(0.032, abs=0.01)
    assert degrading["Not served, last hour"] == pytest.approx(0.332, abs=0.05)


def test_the_worst_sites_stand_first_also_those_whose_fault_no_score_shows(world: World) -> None:
    dashboard, seen = shown("crawlhealth-fleet", world)
    [table] = [panel for panel in dashboard["panels"] if panel["title"] == "Sites, worst first"]
    [target] = [target for target in table["targets"] if target["refId"] == "I"]
    ranks = {series.labels["site"]: series.points[-1][1] for series in seen.query(target)}
    order = sorted(ranks, key=lambda site: -ranks[site])
    assert order[0] == "news"
    assert set(order[1:3]) == {"forum", "wiki"}
    assert order[3:5] == ["shop", "maps"]
    assert order[-1] == "archive"


def test_a_preview_is_a_picture_of_the_width_that_was_asked_for(world: World, tmp_path: Path) -> None:
    arguments = ["bundle", "--time-scale", str(SCALE), "--preview", str(tmp_path), "--width", "700"]
    result = CliRunner().invoke(main, [*arguments, "--prometheus", world.prometheus.url, "--choose", "site=news"])
    assert result.exit_code == 0, result.output
    pictures = sorted(tmp_path.glob("*.png"))
    assert [str(path) for path in pictures] == sorted(result.output.split())
    assert len(pictures) == len(BOARDS)
    for path in pictures:
        head = path.read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", head[16:])
        assert width == 700
        assert height > 700
