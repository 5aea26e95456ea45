"""From what the exporter shows to what a person is told, through a real Prometheus and a real Alertmanager.

The exporter here is a page that the test writes; bands come from the exporter's own rule for them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Thread

import pytest

from alerting.alertmanagers import START_SECONDS, TOLD_SECONDS, Sink, alertmanager, muted, options_for, post
from crawlhealth import bundle
from crawlhealth.bands import next_state
from crawlhealth.demo.processes import Process, free_port
from crawlhealth.demo.setting import prometheus_config
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.verdict import Band, BandState
from waiting import until

TIME_SCALE = 100.0
SCRAPE_INTERVAL = "250ms"
SETTINGS = ScoreSettings()
MINUTE = 60.0


class Exposed:
    """An exporter that shows one page after the other, each to one scrape at least; the last one stays."""

    def __init__(self) -> None:
        self._pages = [""]
        self._scraped = Condition()
        next_page = self._next

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = next_page().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Exposed:
        Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def show(self, *pages: str) -> None:
        """Show these pages from now on; returns when the last one has been scraped."""
        with self._scraped:
            self._pages = [*pages, pages[-1], pages[-1]]
            assert self._scraped.wait_for(lambda: len(self._pages) == 1, TOLD_SECONDS), "nobody scrapes"

    def _next(self) -> str:
        with self._scraped:
            page = self._pages.pop(0) if len(self._pages) > 1 else self._pages[0]
            self._scraped.notify_all()
            return page + f"crawlhealth_evaluation_timestamp_seconds {time.time()}\n"


@dataclass(frozen=True, slots=True)
class World:
    """What runs, and what it tells."""

    exposed: Exposed
    sink: Sink
    alertmanager_url: str

    def wait_for(self, path: str, name: str, site: str, status: str) -> None:
        self.sink.wait_for(path, (name, site, status))

    def later(self) -> None:
        """Returns when an alert that came after all others so far has been told, and so could they."""
        post(self.alertmanager_url, {"alertname": "CrawlLater", "severity": "critical"})
        self.wait_for("/page", "CrawlLater", "", "firing")

    def pages(self) -> list[tuple[str, str, str]]:
        return [told for told in self.sink.told("/page") if told[0] != "CrawlLater"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Everything, on a clock that is a hundred times as fast."""
    with Sink() as sink, Exposed() as exposed:
        bundle.write(tmp_path, options_for(sink, time_scale=TIME_SCALE))
        with alertmanager(tmp_path) as alertmanager_url, prometheus(tmp_path, exposed.url, alertmanager_url):
            yield World(exposed, sink, alertmanager_url)


@contextmanager
def prometheus(folder: Path, exporter_url: str, alertmanager_url: str) -> Iterator[None]:
    """A Prometheus with the bundle's rules that scrapes this exporter."""
    config = folder / "prometheus.json"
    written = json.loads(prometheus_config(folder, exporter_url, alertmanager_url))
    written["global"].update(scrape_interval=SCRAPE_INTERVAL, scrape_timeout=SCRAPE_INTERVAL)
    config.write_text(json.dumps(written))
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address={url.removeprefix('http://')}",
    ]  # fmt: skip
    with Process("prometheus", command, folder) as process:
        until(lambda: process.answers(url + "/-/ready"), START_SECONDS, "Prometheus is ready", process.log)
        yield


def site(name: str, band: Band, score: float | None) -> str:
    """What the exporter shows of a site."""
    lines = [f'crawlhealth_band{{site="{name}",band="{one}"}} {int(one is band)}' for one in Band]
    if score is not None:
        lines.append(f'crawlhealth_score{{site="{name}"}} {score}')
        lines.append(f'crawlhealth_penalty_points{{site="{name}",signal="hard_block"}} {100 - score}')
    return "\n".join(lines) + "\n"


def uplink(up: bool) -> str:
    return f"crawlhealth_uplink_up {int(up)}\n"


@dataclass(slots=True)
class Minutes:
    """A site minute by minute: its scores are turned into bands as the exporter does it."""

    name: str
    state: BandState = field(default_factory=BandState)
    at: float = 1_796_040_000.0

    def pages(self, scores: Iterable[float]) -> list[str]:
        """What is shown after each minute."""
        found = []
        for score in scores:
            self.at += MINUTE
            self.state = next_state(self.state, score, at=self.at, new_evidence=True, settings=SETTINGS)
            found.append(uplink(True) + site(self.name, self.state.band, score))
        return found

    def band(self) -> Band:
        """The band after the last minute."""
        return self.state.band

    def after(self, scores: Sequence[float]) -> str:
        """What is shown after the last of these minutes."""
        return self.pages(scores)[-1]


def test_a_slide_from_normal_to_resisting_pages_once_and_is_over_once(world: World) -> None:
    shop = Minutes("shop")
    world.exposed.show(shop.after([100] * 10))
    world.exposed.show(shop.after([70] * 70))
    assert shop.band() is Band.DEGRADING
    world.wait_for("/notify", "CrawlTargetDegrading", "shop", "firing")
    world.exposed.show(shop.after([40] * 6))
    assert shop.band() is Band.RESISTING
    world.wait_for("/page", "CrawlTargetResisting", "shop", "firing")
    until(lambda: ("CrawlTargetDegrading", "shop") in muted(world.alertmanager_url), TOLD_SECONDS, "it is inhibited")
    world.exposed.show(shop.after([100] * 125))
    world.wait_for("/page", "CrawlTargetResisting", "shop", "resolved")
    world.exposed.show(shop.after([100] * 60 * 7))
    assert shop.band() is Band.NORMAL
    world.wait_for("/notify", "CrawlTargetDegrading", "shop", "resolved")
    world.later()
    assert [status for _, _, status in world.pages()] == ["firing", "resolved"]
    assert world.sink.told("/notify") == [
        ("CrawlTargetDegrading", "shop", "firing"),
        ("CrawlTargetDegrading", "shop", "resolved"),
    ]
    first = next(message for path, message in world.sink.received if path == "/page")
    said = first["alerts"][0]["annotations"]["description"]
    assert "The health score is 40 of 100. hard_block costs 60 points." in said


def test_a_score_that_swings_about_the_threshold_pages_once(world: World) -> None:
    shop = Minutes("shop")
    world.exposed.show(shop.after([100] * 10))
    world.exposed.show(shop.after([48] * 6))
    world.wait_for("/page", "CrawlTargetResisting", "shop", "firing")
    swinging = shop.pages([52, 48] * 8)
    assert all('band="resisting"} 1' in page for page in swinging)
    world.exposed.show(*swinging)
    world.later()
    assert world.pages() == [("CrawlTargetResisting", "shop", "firing")]
    world.exposed.show(shop.after([60] * 125))
    world.wait_for("/page", "CrawlTargetResisting", "shop", "resolved")
    assert [status for _, _, status in world.pages()] == ["firing", "resolved"]


SITES = [f"site-{number}" for number in range(20)]


def failing(name: str) -> str:
    """A site of which nothing is left to see, in the worst case: a canary that fails, and refusals on top."""
    canary = f'crawlhealth_canary_success{{site="{name}",canary="home",route="direct"}} 0\n'
    return site(name, Band.RESISTING, 20) + canary


def test_twenty_sites_that_fail_with_the_uplink_page_once(world: World) -> None:
    """The uplink comes first, as it does (see test_alertmanager): here as soon as it has been told."""
    well = "".join(site(name, Band.NORMAL, 100) for name in SITES)
    world.exposed.show(uplink(True) + well)
    world.exposed.show(uplink(False) + well)
    world.wait_for("/page", "CrawlUplinkDown", "", "firing")
    world.exposed.show(uplink(False) + "".join(failing(name) for name in SITES))
    lost = {"CrawlTargetResisting", "CrawlTargetDegrading", "CrawlCanaryFailing"}
    wanted = sorted((name, site) for name in lost for site in SITES)
    until(
        lambda: muted(world.alertmanager_url) == wanted,
        TOLD_SECONDS,
        "all are muted",
        lambda: str(muted(world.alertmanager_url)),
    )
    world.later()
    assert world.pages() == [("CrawlUplinkDown", "", "firing")]
    world.exposed.show(uplink(True) + well)
    world.wait_for("/page", "CrawlUplinkDown", "", "resolved")
    assert [name for name, _, _ in world.pages()] == ["CrawlUplinkDown"] * 2
    assert world.sink.told("/notify") == []
