"""The Alertmanager configuration, judged by amtool and by a real Alertmanager with a real webhook."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests

from crawlhealth import bundle
from crawlhealth.bundle.model import Alert, Scope, Severity
from waiting import until

CONFIG = Path(__file__).parents[2] / "alerting" / "alertmanager.yml"
ALERTS = bundle.alerts()
RECEIVERS = {
    Severity.CRITICAL: "crawlhealth-page",
    Severity.WARNING: "crawlhealth-notify",
    Severity.INFO: "crawlhealth-notify",
}


def amtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["amtool", *arguments], check=False, capture_output=True, text=True, timeout=60)


def test_amtool_accepts_the_configuration() -> None:
    result = amtool("check-config", str(CONFIG))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("alert", [pytest.param(alert, id=alert.name) for alert in ALERTS])
def test_the_alert_reaches_the_receiver_of_its_severity(alert: Alert) -> None:
    result = amtool(
        "config", "routes", "test", f"--config.file={CONFIG}", f"--verify.receivers={RECEIVERS[alert.severity]}",
        f"alertname={alert.name}", f"severity={alert.severity}", "site=shop",
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


class Sink:
    """A webhook that keeps what it is sent, by path."""

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, Any]]] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append((self.path, json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Sink:
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def told(self, path: str) -> list[tuple[str, str]]:
        """The alerts told at a path, in order: name and status."""
        return [
            (alert["labels"]["alertname"], alert["status"])
            for at, message in list(self.received)
            if at == path
            for alert in message["alerts"]
        ]

    def sites(self, path: str) -> list[tuple[str, str]]:
        """The alerts told at a path, in order: name and site."""
        return [
            (alert["labels"]["alertname"], alert["labels"]["site"])
            for at, message in list(self.received)
            if at == path
            for alert in message["alerts"]
        ]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def alertmanager(folder: Path, sink: Sink) -> Iterator[str]:
    """A real Alertmanager on the rendered configuration with its waits cut to half a second."""
    options = bundle.Options(time_scale=600, page_url=sink.url + "/page", notify_url=sink.url + "/notify")
    bundle.write(folder, options)
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    assert program, "the package prometheus-alertmanager is needed"
    url = f"http://127.0.0.1:{free_port()}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program, f"--config.file={folder / 'alerting/alertmanager.yml'}", f"--storage.path={folder / 'data'}",
                f"--web.listen-address={url.removeprefix('http://')}", "--cluster.listen-address=",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        until(lambda: answers(url + "/-/ready"), 20, "Alertmanager is ready")
        yield url
    finally:
        process.kill()
        process.wait()


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.ConnectionError:
        return False


def post(url: str, *alerts: tuple[str, str, Severity], ended: bool = False) -> None:
    """Tell Alertmanager of firing (or ended) alerts, each a name, a site and a severity."""
    end = {"startsAt": "2020-01-01T00:00:00Z", "endsAt": "2020-01-01T00:05:00Z"} if ended else {}
    body = [
        {"labels": {"alertname": name, "site": site, "severity": str(severity)}, **end}
        for name, site, severity in alerts
    ]
    requests.post(url + "/api/v2/alerts", json=body, timeout=5).raise_for_status()


RESISTING = ("CrawlTargetResisting", "shop", Severity.CRITICAL)
DEGRADING = ("CrawlTargetDegrading", "shop", Severity.WARNING)
PARSER = ("CrawlParserFailing", "shop", Severity.WARNING)


def test_a_site_that_gets_worse_is_told_once_and_its_way_back_too(tmp_path: Path) -> None:
    """Each step ends with a notice, so that Alertmanager knows of the worse alert when the lesser one comes."""
    with Sink() as sink, alertmanager(tmp_path, sink) as url:
        post(url, RESISTING)
        until(lambda: sink.told("/page"), 20, "the page arrives")
        post(url, DEGRADING, ("CrawlTargetDegrading", "books", Severity.WARNING))
        until(lambda: sink.told("/notify"), 20, "the warning about another site arrives")
        post(url, PARSER, ("CrawlParserFailing", "quotes", Severity.WARNING))
        until(lambda: len(sink.told("/notify")) > 1, 20, "the other parser's warning arrives")
        assert sink.sites("/page") == [("CrawlTargetResisting", "shop")]
        assert set(sink.sites("/notify")) == {("CrawlTargetDegrading", "books"), ("CrawlParserFailing", "quotes")}

        post(url, RESISTING, ended=True)
        until(lambda: ("CrawlTargetResisting", "resolved") in sink.told("/page"), 20, "the page is resolved")
        until(lambda: ("CrawlTargetDegrading", "shop") in sink.sites("/notify"), 20, "what was muted speaks")
        assert ("CrawlParserFailing", "shop") not in sink.sites("/notify"), "hostility is read first"


def test_without_uplink_one_alert_is_told_and_none_about_a_site(tmp_path: Path) -> None:
    with Sink() as sink, alertmanager(tmp_path, sink) as url:
        post(url, ("CrawlUplinkDown", "", Severity.CRITICAL))
        until(lambda: sink.told("/page"), 20, "the page arrives")
        sites = [(alert.name, "shop", alert.severity) for alert in ALERTS if alert.scope is Scope.SITE]
        post(url, *sites, ("CrawlUnknownToUs", "shop", Severity.WARNING))
        until(lambda: sink.told("/notify"), 20, "another alert arrives")
        assert sink.told("/page") == [("CrawlUplinkDown", "firing")]
        assert sink.told("/notify") == [("CrawlUnknownToUs", "firing")]
