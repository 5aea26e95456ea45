"""A Prometheus, or a VictoriaMetrics with its vmalert, that scrapes exporters and evaluates the rules of the bundle."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from compat.engines import Engine
from crawlhealth.demo.processes import Process, free_port
from running import plain_session
from waiting import until

START_SECONDS = 60.0


@dataclass(slots=True)
class Server:
    """A running engine: where rules are asked for, where series are, and what it has said of its rules so far."""

    engine: Engine
    rules_url: str
    query_url: str
    problems: dict[str, str] = field(default_factory=dict)
    evaluated: Counter[str] = field(default_factory=Counter)

    def look(self) -> None:
        """Note which rules were evaluated, and what went wrong with any."""
        for group in ask(self.rules_url + "/api/v1/rules")["data"]["groups"]:
            for rule in group["rules"]:
                name = f"{group['name']}/{rule['name']}"
                if rule.get("lastError"):
                    self.problems[name] = rule["lastError"]
                if rule["health"] == "ok":
                    self.evaluated[name] += 1
                elif rule["health"] != "unknown":
                    self.problems.setdefault(name, f"health {rule['health']}")

    def query(self, expr: str) -> list[dict[str, Any]]:
        """The series of an expression now. Raises AssertionError where the engine says anything against it."""
        answer = ask(self.query_url + "/api/v1/query", query=expr)
        assert answer["status"] == "success", (expr, answer)
        assert not answer.get("warnings"), (expr, answer["warnings"])
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def fired(self) -> set[str]:
        """The alerts that have fired at any time."""
        series = self.query('count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1h]))')
        return {one["metric"]["alertname"] for one in series}


def ask(url: str, **parameters: str) -> dict[str, Any]:
    """The JSON of an answer, whatever its status."""
    with plain_session() as session:
        answer: dict[str, Any] = session.get(url, params=parameters, timeout=30).json()
        return answer


@contextmanager
def running(engine: Engine, folder: Path, targets: Sequence[str]) -> Iterator[Server]:
    """An engine that scrapes these targets every second, with the rules in folder/alerting/rules."""
    scraping = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [{"job_name": "crawlhealth", "static_configs": [{"targets": list(targets)}]}],
    }
    start = _prometheus if engine.kind == "Prometheus" else _victoria
    with ExitStack() as stack:
        yield start(stack, engine, folder, scraping)


def _prometheus(stack: ExitStack, engine: Engine, folder: Path, scraping: Mapping[str, Any]) -> Server:
    program, port = engine.program("prometheus"), free_port()
    config = folder / f"{engine.version}.yml"
    rules = [str(folder / "alerting" / "rules" / "*.yml")]
    config.write_text(json.dumps({**scraping, "rule_files": rules}))
    process = stack.enter_context(
        Process(
            f"prometheus-{engine.version}",
            [program, f"--config.file={config}", f"--storage.tsdb.path={folder / f'data-{engine.version}'}",
             f"--web.listen-address=127.0.0.1:{port}"],
            folder,
        )
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    until(lambda: process.answers(url + "/-/ready"), START_SECONDS, f"{engine} is ready")
    return Server(engine, url, url)


def _victoria(stack: ExitStack, engine: Engine, folder: Path, scraping: Mapping[str, Any]) -> Server:
    config = folder / f"{engine.version}.yml"
    config.write_text(json.dumps(scraping))
    url, alert_url = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    storing = stack.enter_context(
        Process(
            f"victoria-metrics-{engine.version}",
            [engine.program("victoria-metrics"), f"-storageDataPath={folder / f'data-{engine.version}'}",
             f"-httpListenAddr={url.removeprefix('http://')}", f"-promscrape.config={config}",
             "-search.latencyOffset=0s", "-memory.allowedPercent=10"],
            folder,
        )
    )  # fmt: skip
    until(lambda: storing.answers(url + "/health"), START_SECONDS, f"{engine} is ready")
    alerting = stack.enter_context(
        Process(
            f"vmalert-{engine.version}",
            [engine.program("vmalert"), f"-rule={folder / 'alerting' / 'rules'}/*.yml", f"-datasource.url={url}",
             f"-remoteWrite.url={url}", "-remoteWrite.flushInterval=200ms", "-rule.evalDelay=0s",
             f"-httpListenAddr={alert_url.removeprefix('http://')}", "-notifier.blackhole"],
            folder,
        )
    )  # fmt: skip
    until(lambda: alerting.answers(alert_url + "/health"), START_SECONDS, f"the vmalert of {engine} is ready")
    return Server(engine, alert_url, url)


def available(engine: Engine, stack: ExitStack, folder: Path, targets: Sequence[str]) -> Server | str:
    """A running engine, or why it is not to be had."""
    try:
        return stack.enter_context(running(engine, folder, targets))
    except pytest.skip.Exception as missing:
        return str(missing)


def watched(servers: Sequence[Server]) -> None:
    """Look at all of them once; one that is too busy to answer is asked again the next time."""
    for server in servers:
        try:
            server.look()
        except requests.RequestException:
            continue
