"""The story of the demo as every engine sees it that can be had: all at once scrape its exporter, twice each.

Each has the bundle's rules on the demo's clock. The exporter is scraped under two names, as a pair would be: what
matches two series where one was meant is an error then.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress

import pytest

from compat.engines import ENGINES, Engine
from compat.servers import Server, ask, available, watched
from crawlhealth import bundle
from crawlhealth.bundle.model import Scope
from crawlhealth.bundle.rules import expression
from crawlhealth.demo.setting import TIME_SCALE
from crawlhealth.demo.story import MAYBE, TOLD
from dashboards.test_boards import dashboards, queries, substituted
from waiting import until

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]
OPTIONS = bundle.Options(time_scale=TIME_SCALE)
OF_THE_MACHINE = {alert.name for alert in bundle.alerts(OPTIONS) if alert.scope is Scope.EXPORTER}
"""Alerts on how late or busy the exporter is: two seconds too late on the clock of the demo, where all of this runs."""
NOT_IN_THE_STORY = {
    *(f"Cost of a valid record {query}" for query in "ABCD"),
    *(f"{volume} in an hour {query}" for volume in ("Requests", "Valid records") for query in "AB"),
    "Alerts of the site A",
    "New normal accepted by a person",
    "Planned stops",
}
"""What the dashboard of the shop is without: only canaries crawl it, and at the end all is well and nobody decided."""
every_engine = pytest.mark.parametrize("engine", ENGINES, ids=str)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Server | str]]:
    """Every engine after it has seen the story, by name."""
    folder = tmp_path_factory.mktemp("story")
    bundle.write(folder, OPTIONS)
    with ExitStack() as stack, (folder / "demo.log").open("w+") as log:
        demo = subprocess.Popen(
            [sys.executable, "-m", "crawlhealth.cli", "demo", "--once"],
            stdout=log, stderr=log, env={**os.environ, "TERM": "dumb", "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        stack.callback(demo.wait, 60)
        stack.callback(demo.terminate)

        def printed() -> str:
            return (folder / "demo.log").read_text()

        until(lambda: bool(re.search(r"^exporter: .*\n", printed(), re.M)) or demo.poll() is not None, 90, "it begins")
        address = re.search(r"^exporter: +http://127\.0\.0\.1:(\d+)", printed(), re.MULTILINE)
        assert address, printed()
        targets = [f"{name}:{address[1]}" for name in ("127.0.0.1", "localhost")]
        found = {str(engine): available(engine, stack, folder, targets) for engine in ENGINES}
        running = [server for server in found.values() if isinstance(server, Server)]
        while demo.poll() is None:
            watched(running)
            with suppress(subprocess.TimeoutExpired):
                demo.wait(1)
        print(printed())
        yield found


@pytest.fixture
def server(engine: Engine, servers: Mapping[str, Server | str], record_property: object) -> Server:
    assert callable(record_property)
    record_property("engine", str(engine))
    record_property("tried", "live, with the demo")
    found = servers[str(engine)]
    if isinstance(found, str):
        pytest.skip(found)
    return found


@every_engine
def test_every_rule_was_evaluated_and_none_had_a_problem(engine: Engine, server: Server) -> None:
    assert server.problems == {}
    wanted = {f"{group.name}/{rule.name}" for group in bundle.groups(OPTIONS) for rule in group.rules}
    assert {name for name, times in server.evaluated.items() if times >= 3} == wanted


@every_engine
def test_every_expression_is_answered_without_a_warning(engine: Engine, server: Server) -> None:
    for group in bundle.groups(OPTIONS):
        for rule in group.rules:
            series = server.query(expression(rule, OPTIONS))
            labels = [tuple(sorted((k, v) for k, v in one["metric"].items() if k != "__name__")) for one in series]
            assert len(labels) == len(set(labels)), rule.name


@every_engine
def test_every_query_of_the_dashboards_is_answered_without_a_warning(engine: Engine, server: Server) -> None:
    for dashboard in dashboards(OPTIONS).values():
        for of, expr in queries(dashboard):
            labels = [tuple(sorted(one["metric"].items())) for one in server.query(substituted(dashboard, expr))]
            assert len(labels) == len(set(labels)), of


@every_engine
def test_the_site_dashboard_shows_the_story(engine: Engine, server: Server) -> None:
    site = dashboards(OPTIONS)["grafana/dashboards/crawlhealth-site.json"]
    [last] = server.query('max(max_over_time(timestamp(up{job="crawlhealth"} == 1)[10m:1s]))')
    moment = str(float(last["value"][1]) - 2)  # before the demo ended its exporter
    empty = set()
    for of, expr in queries(site):
        answer = ask(server.query_url + "/api/v1/query", query=substituted(site, expr), time=moment)
        if not answer["data"]["result"]:
            empty.add(of.partition(": ")[2])
    assert empty <= NOT_IN_THE_STORY


@every_engine
def test_the_alerts_of_the_story_were_raised_and_the_same_everywhere(
    engine: Engine, server: Server, servers: Mapping[str, Server | str]
) -> None:
    fired = server.fired()
    print(sorted(fired))
    assert fired >= TOLD
    assert fired <= TOLD | MAYBE | OF_THE_MACHINE
    for other in servers.values():
        if isinstance(other, Server):
            assert other.fired() ^ fired <= OF_THE_MACHINE, other.engine
