"""From targets, Redis and logs that go wrong to what a person is told: real probes, Prometheus and Alertmanager.

All of it is on a clock that is a hundred times as fast.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from prometheus_client import Gauge, start_http_server
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from alerting.alertmanagers import TOLD_SECONDS, Sink, alertmanager, options_for, post
from alerting.test_endtoend import TIME_SCALE, prometheus
from crawlhealth import bundle
from crawlhealth.config import Fetching
from crawlhealth.looking import Looker
from crawlhealth.metrics import MetricSpec
from crawlhealth.searchbots.looks import Looked
from crawlhealth.searchbots.service import LogService
from crawlhealth.searchbots.targets import Result
from crawlhealth.searchbots.watching import Watching
from crawlhealth.searchbotsettings import Dependency, DomainSettings, LogSettings, SearchbotSettings, Target
from searchbots.logwriting import GOOGLE
from searchbots.test_dependencies import redis
from searchbots.webserver import Answer, web
from waiting import until

TIMEOUT_SCALE = 20.0
"""What is waited for an answer is cut less than the rest, that a busy machine is no reason to be down."""
START = 1_796_040_000.0
FAULTS = ("CrawlBotTargetDown", "CrawlDependencyDown", "CrawlRedirectLoop")


class Shown(Collector):
    """What /metrics shows of logs and dispatches."""

    def __init__(self, logs: LogService) -> None:
        self._logs = logs

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}

        def put(spec: MetricSpec, labels: tuple[str, ...], value: float | None) -> None:
            if value is not None:
                family = families.setdefault(spec.name, Metric(spec.name.removesuffix("_total"), spec.help, spec.kind))
                family.add_sample(spec.name, dict(zip(spec.labels, labels, strict=True)), value)

        self._logs.show(put)
        yield from families.values()


@contextmanager
def stepping(*steps: Callable[[], object]) -> Iterator[None]:
    """Take these steps again and again."""
    ending = threading.Event()

    def run() -> None:
        while not ending.wait(0.02):
            for step in steps:
                step()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


@contextmanager
def exporting(folder: Path, settings: SearchbotSettings, sink: Sink) -> Iterator[tuple[Watching, str]]:
    """The search-bot part on a fast clock, a Prometheus that scrapes it, and an Alertmanager."""
    began = time.monotonic()

    def clock() -> float:
        return START + (time.monotonic() - began) * TIME_SCALE

    looker = Looker(Fetching, clock=clock)

    def look(
        url: str, *, method: str = "GET", timeout: float = 10.0, redirects: int = 0, accept: str = "*/*"
    ) -> Looked:
        return looker(url, method=method, timeout=timeout / TIMEOUT_SCALE, redirects=redirects, accept=accept)

    watching = Watching(lambda: settings, folder, look=look, get=looker.get, clock=clock)
    logs = LogService(folder / "history.db", lambda: settings, clock=clock, sent=watching.redirects.sent)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(watching)
    registry.register(Shown(logs))
    Gauge("crawlhealth_evaluation_timestamp_seconds", "Now.", registry=registry).set_function(time.time)
    server, serving = start_http_server(0, "127.0.0.1", registry)
    bundle.write(folder, options_for(sink, time_scale=TIME_SCALE))
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        with (
            stepping(logs.read, *watching.steps.values()),
            alertmanager(folder) as alertmanager_url,
            prometheus(folder, url, alertmanager_url),
        ):
            yield watching, alertmanager_url
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
        logs.stop()
        watching.stop()


def decided(domain: str, url: str) -> str:
    """A line of a dispatcher's log."""
    return json.dumps(
        {"msec": START, "remote_addr": "192.0.2.1", "status": 302, "http_user_agent": GOOGLE, "host": domain,
         "target": url, "decision": "sent"}
    ) + "\n"  # fmt: skip


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_each_fault_pages_once_and_a_look_up_that_fails_never_does(tmp_path: Path) -> None:
    mended, log = threading.Event(), tmp_path / "shop.json"
    hanging = threading.Event()

    def answer(_method: str, _path: str) -> Answer:
        if hanging.is_set():
            mended.wait(60)
        return 200, {}, b""

    with ExitStack() as stack:
        running = stack.enter_context(ExitStack())
        port = running.enter_context(redis(tmp_path))
        target = stack.enter_context(web(answer))
        rdap = stack.enter_context(web(lambda *_: (500, {}, b"")))
        sink = stack.enter_context(Sink())
        stack.callback(mended.set)
        settings = SearchbotSettings(
            logs=(LogSettings(path=log, format="nginx_json", domains=("shop.invalid", "www.invalid")),),
            targets={"money": Target(name="money", url=target.url())},
            domains=DomainSettings(names=("shop.invalid", "www.invalid"), rdap=rdap.url("/")),
            dependencies={"redis": Dependency(name="redis", url=f"redis://127.0.0.1:{port}")},
        )
        watching, alertmanager_url = stack.enter_context(exporting(tmp_path, settings, sink))

        def told() -> list[tuple[str, str]]:
            """Name and status of each message that pages, without what the test itself tells."""
            pages = [message for path, message in list(sink.received) if path == "/page"]
            names = [(message["groupLabels"]["alertname"], message["status"]) for message in pages]
            return [each for each in names if each[0] != "CrawlLater"]

        def wait_for(name: str) -> None:
            until(lambda: (name, "firing") in told(), TOLD_SECONDS, f"{name} is told", lambda: str(sink.received))

        until(lambda: watching.targets.state("money") and not dict(watching.dependencies.problems())["redis"], 20)
        until(lambda: rdap.asked, 20, "RDAP is asked")
        hanging.set()
        running.close()
        log.write_text(
            decided("shop.invalid", "https://www.invalid/") + decided("www.invalid", "https://shop.invalid/")
        )
        for name in FAULTS:
            wait_for(name)
        state = watching.targets.state("money")
        assert state is not None
        assert state.result is Result.TIMEOUT
        post(alertmanager_url, {"alertname": "CrawlLater", "severity": "critical"})
        sink.wait_for("/page", ("CrawlLater", "", "firing"))
        assert sorted(told()) == [(name, "firing") for name in FAULTS]
        assert sink.told("/notify") == []
        mended.set()
        hanging.clear()
        until(lambda: ("CrawlBotTargetDown", "resolved") in told(), TOLD_SECONDS, "it is over")
        assert [name for name, status in told() if status == "firing"].count("CrawlBotTargetDown") == 1
