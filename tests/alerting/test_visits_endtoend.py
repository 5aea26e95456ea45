"""From visits to what a person is told: nginx, `crawlhealth serve`, Prometheus and Alertmanager, each the real one.

Two bots have visited for 16 days; then one comes half as often, and the other does not. That past comes as a user
brings it: old logs by `logs import`, and `export` and promtool into Prometheus. All ranges of the rules are as shipped;
only what is waited for is cut, in the text.
"""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from alerting.alertmanagers import START_SECONDS, TOLD_SECONDS, Sink, alertmanager, options_for, post
from crawlhealth import bundle
from crawlhealth.bundle.model import Severity
from crawlhealth.demo.processes import Process, free_port
from crawlhealth.demo.setting import prometheus_config
from running import Exporter, plain_session
from searchbots.dnsserver import Zone, serving
from searchbots.logwriting import GOOGLE
from searchbots.nginxes import MAIN, NGINX, Nginx, as_logged
from waiting import until

DAYS = 16
AN_HOUR = 200
"""Visits of each bot in every hour of the past."""
HOUR = 3600
BING = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"
GOOD = {
    "66.249.66.1": ("crawl-66-249-66-1.googlebot.com", GOOGLE),
    "157.55.39.1": ("msnbot-157-55-39-1.search.msn.com", BING),
}
LIAR = "198.51.100.7"
CONFIG = """
    searchbots:
      logs:
        - path: nginx/access.log
          name: shop
          domain: shop.example
          format: '{form}'
          trusted_proxies: [127.0.0.0/8]
      resolver: {{servers: ['{dns}']}}
      domains: {{redirects: false, expiry: false}}
"""
MADE_BY_RULES = "domain_bot:searchbot_visits"

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


def hurried(folder: Path) -> None:
    """Cut what is waited for: until an alert fires, until rules are evaluated again, and until one is told.

    An alert waits longer than Prometheus does before its first scrape: that takes five seconds.
    """
    for name in ("rules/volume-visits.yml", "rules/searchbots.yml", "alertmanager.yml"):
        path = folder / "alerting" / name
        text = re.sub(r"\b(interval|group_wait|group_interval): \w+", r"\1: 1s", path.read_text())
        path.write_text(re.sub(r"\bfor: \w+", "for: 10s", text))


def old_log(path: Path, now: float) -> int:
    """The logs of 16 days, packed: of one bot up to now, of the other to the end of the hour before; their lines."""
    hour = int(now) // HOUR * HOUR
    lines = 0
    with gzip.open(path, "wt", compresslevel=1) as file:
        for at in range(hour - DAYS * 24 * HOUR, int(now), HOUR // AN_HOUR):
            written = [
                as_logged(address, agent, at) for address, (_, agent) in GOOD.items() if agent == BING or at < hour
            ]
            file.writelines(written)
            lines += len(written)
    return lines


def crawlhealth(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "crawlhealth.cli", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def bring_in(folder: Path, instance: str, now: float) -> None:
    """Export the history as OpenMetrics, with an hour of scrapes that there was, and make Prometheus' data of it."""
    labels = ("job=crawlhealth", f"instance={instance}")
    crawlhealth(folder, "export", "--openmetrics", *(f"--label={each}" for each in labels), "--out", "past.om")
    path = folder / "past.om"
    up = "".join(
        f'up{{job="crawlhealth",instance="{instance}"}} 1 {at}\n'
        for at in range(int(now) - 4500, int(now), 15)
    )  # fmt: skip
    path.write_text(path.read_text().removesuffix("# EOF\n") + f"# TYPE up gauge\n{up}# EOF\n")
    command = ["promtool", "tsdb", "create-blocks-from", "--max-block-duration=486h", "openmetrics"]
    subprocess.run([*command, str(path), str(folder / "prometheus")], check=True, capture_output=True, timeout=60)


class Asked:
    """A Prometheus that can be asked."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, query: str) -> dict[str, float]:
        """What a query gives now, by bot."""
        with plain_session() as session:
            answer = session.get(self._url + "/api/v1/query", params={"query": query}, timeout=10).json()
        return {each["metric"].get("bot", ""): float(each["value"][1]) for each in answer["data"]["result"]}

    def state(self, sink: Sink) -> str:
        """What is recorded, firing and told."""
        with plain_session() as session:
            found = [
                f"{each['metric']} {each['value'][1]}"
                for query in (f'{{__name__=~"{MADE_BY_RULES}.*|instance:.*|domain_bot_.*"}}', "ALERTS")
                for each in session.get(self._url + "/api/v1/query", params={"query": query}, timeout=10).json()[
                    "data"
                ]["result"]
            ]
        return "\n".join([*found, str(sink.received)])


@contextmanager
def prometheus(folder: Path, exporter_url: str, alertmanager_url: str) -> Iterator[Asked]:
    config = folder / "prometheus.json"
    config.write_text(prometheus_config(folder, exporter_url, alertmanager_url))
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address={url.removeprefix('http://')}", "--storage.tsdb.retention.time=40d",
        "--rules.alert.resend-delay=1s",  # what comes before Alertmanager is found is told again
    ]  # fmt: skip
    with Process("prometheus", command, folder) as process:
        until(lambda: process.answers(url + "/-/ready"), START_SECONDS, "Prometheus is ready", process.log)
        yield Asked(url)


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")
def test_visits_that_halve_page_once_and_so_does_a_surge_of_fakes(tmp_path: Path) -> None:
    now = time.time()
    zone = Zone()
    for address, (name, _) in GOOD.items():
        zone.names(address, name)
        zone.put(name, "A", address)
    with ExitStack() as stack:
        dns = stack.enter_context(serving(zone))
        nginx = stack.enter_context(Nginx(tmp_path / "nginx"))
        sink = stack.enter_context(Sink())
        exporter = Exporter(tmp_path, CONFIG.format(form=MAIN, dns=dns))
        lines = old_log(tmp_path / "old.log.gz", now)
        said = crawlhealth(tmp_path, "logs", "import", "--log", "shop", "--verify", "old.log.gz")
        assert said == f"{lines:,} visits taken\n"
        stack.enter_context(exporter)
        bring_in(tmp_path, exporter.url.removeprefix("http://"), now)
        options = options_for(sink, time_scale=1.0)
        told = ("CrawlBotVisitsHalved", "CrawlBotFakesSurge")
        bundle.write(tmp_path, replace(options, severities=dict.fromkeys(told, Severity.CRITICAL)))
        hurried(tmp_path)
        alertmanager_url = stack.enter_context(alertmanager(tmp_path))
        nginx.visit(GOOGLE, "66.249.66.1", AN_HOUR // 5)
        nginx.visit(BING, "157.55.39.1", AN_HOUR)
        nginx.visit(GOOGLE, LIAR, 5)
        exporter.wait_for("crawlhealth_searchbot_visits_total", AN_HOUR // 5, bot="Googlebot", identity="verified")
        exporter.wait_for("crawlhealth_searchbot_visits_total", AN_HOUR, bot="bingbot", identity="verified")
        exporter.wait_for("crawlhealth_searchbot_visits_total", 5, identity="fake")
        ask = stack.enter_context(prometheus(tmp_path, exporter.url, alertmanager_url))

        def pages() -> list[tuple[str, str]]:
            return [(name, status) for name, _, status in sink.told("/page")]

        def wait_for(name: str) -> None:
            until(lambda: (name, "firing") in pages(), TOLD_SECONDS, f"{name} is told", lambda: ask.state(sink))

        wait_for("CrawlBotVisitsHalved")
        assert ask(f"{MADE_BY_RULES}:volume_halved") == {"Googlebot": 1, "bingbot": 0}, ask.state(sink)
        assert ask(f"{MADE_BY_RULES}:increase1h_reference") == dict.fromkeys(("Googlebot", "bingbot"), AN_HOUR)
        assert ask(f"{MADE_BY_RULES}:increase1h_busy") == dict.fromkeys(("Googlebot", "bingbot"), AN_HOUR)
        verified = 'crawlhealth_searchbot_visits_total{identity="verified"}'
        assert ask(f"count by (bot) (count_over_time({verified}[16d]))") == dict.fromkeys(
            ("Googlebot", "bingbot"), 1
        ), "what was brought in and what is scraped are one series"
        assert pages() == [("CrawlBotVisitsHalved", "firing")], ask.state(sink)
        assert ask('sum by (bot) (crawlhealth_searchbot_visits_total{identity="fake"})') == {"Googlebot": 5}
        nginx.visit(GOOGLE, LIAR, 150)
        wait_for("CrawlBotFakesSurge")
        post(alertmanager_url, {"alertname": "CrawlLater", "severity": "critical"})
        wait_for("CrawlLater")
        assert pages() == [(name, "firing") for name in (*told, "CrawlLater")]
        assert sink.told("/notify") == []
        bots = [alert["labels"].get("bot") for _, message in sink.received for alert in message["alerts"]]
        assert bots == ["Googlebot", "Googlebot", None]
