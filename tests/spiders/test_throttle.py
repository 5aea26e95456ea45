"""Real Scrapy obeys the advice: read from the log of the practice site, which holds every request for a while."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlhealth.demo.behaviour import Behaviour, Kind
from crawlhealth.demo.site import PracticeSite
from crawling import Crawl
from pushserver import PushServer
from waiting import until

HELD = 0.2
"""Seconds that the site holds each request: as many as begin within them are under way together."""
SHOP, OTHER = "127.0.0.1", "127.0.0.2"


@pytest.fixture
def site() -> Iterator[PracticeSite]:
    with PracticeSite(addresses=(SHOP, OTHER)) as site:
        site.behave(Behaviour(kind=Kind.SLOW, seconds=HELD))
        yield site


@pytest.fixture
def server() -> Iterator[PushServer]:
    with PushServer() as server:
        server.advise("shop", '"usual"', concurrency_ratio=1.0)
        server.advise("other", '"usual"', concurrency_ratio=1.0)
        yield server


class Watched:
    """The requests of one host since it was last looked at."""

    def __init__(self, site: PracticeSite, host: str) -> None:
        self._site, self._host, self._since = site, host, time.monotonic()

    def anew(self) -> None:
        self._since = time.monotonic()

    def times(self) -> list[float]:
        return [
            one.monotonic
            for one in self._site.requests("/product/")
            if one.host.partition(":")[0] == self._host and one.monotonic >= self._since
        ]

    def together(self) -> int:
        """The most requests that were under way at the same time."""
        times = self.times()
        return max((sum(begun <= other < begun + HELD * 0.95 for other in times) for begun in times), default=0)


def crawl(folder: Path, site: PracticeSite, server: PushServer, **settings: Any) -> Crawl:
    pages = [site.url("/product/1", host=host) for host in (SHOP, OTHER)]
    return Crawl(
        folder, pages, "both",
        CRAWLHEALTH_URL=server.url, CRAWLHEALTH_SITES={"shop": [SHOP], "other": [OTHER]}, **settings,
    )  # fmt: skip


@pytest.mark.alone
def test_concurrency_falls_the_crawl_pauses_and_resumes_and_the_other_site_never_notices(
    tmp_path: Path, site: PracticeSite, server: PushServer
) -> None:
    shop, other = Watched(site, SHOP), Watched(site, OTHER)

    def goes_on(count: int, watched: Watched) -> None:
        until(lambda: len(watched.times()) >= count, 20, "the crawl goes on", running.log)

    def settled(pace: str) -> None:
        """Wait until advice was seen and what was under way before it is over."""
        until(lambda: running.log().rpartition("site shop: ")[2].startswith(pace), 20, pace, running.log)
        over = time.monotonic() + HELD
        until(lambda: time.monotonic() > over, 5)
        shop.anew()
        other.anew()

    with crawl(tmp_path, site, server) as running:
        goes_on(40, shop)
        assert 8 <= shop.together() <= 16  # on asyncio Scrapy may start more than 8, but never more than in all
        assert 8 <= other.together() <= 16

        server.advise("shop", '"slow"', concurrency_ratio=0.5, band="degrading", score=65)
        settled("50 %")
        goes_on(60, other)
        assert shop.together() == 4
        assert other.together() >= 8

        server.advise("shop", '"paused"', concurrency_ratio=0.0, paused=True, band="resisting", score=12)
        settled("paused (band resisting, score 12)")
        goes_on(80, other)
        assert shop.times() == []
        assert other.together() >= 8
        usual = len(other.times()) / (other.times()[-1] - other.times()[0])
        assert usual > 0.5 * 8 / HELD
        assert running.running()

        server.advise("shop", '"quarter"', concurrency_ratio=0.25, band="degrading", score=50)
        settled("25 %")
        goes_on(10, shop)
        assert shop.together() == 2

        server.advise("shop", '"well"', concurrency_ratio=1.0, band="normal", score=98)
        settled("100 %")
        goes_on(40, shop)
        assert shop.together() >= 8
        running.stop()
    reported = Counter(item["site"] for item in server.items)
    for name, host in (("shop", SHOP), ("other", OTHER)):
        asked = [one for one in site.requests("/product/") if one.host.partition(":")[0] == host]
        assert reported[name] == len(asked)


def test_a_crawl_that_ends_during_a_pause_ends_at_once_and_keeps_what_waited(
    tmp_path: Path, site: PracticeSite, server: PushServer
) -> None:
    shop = Watched(site, SHOP)
    pages = [{"url": site.url(f"/product/{number}")} for number in range(1, 40)]
    settings: dict[str, Any] = {
        "CRAWLHEALTH_URL": server.url, "CRAWLHEALTH_SITES": {"shop": [SHOP]}, "JOBDIR": str(tmp_path / "job"),
        "CONCURRENT_REQUESTS_PER_DOMAIN": 2,
    }  # fmt: skip
    with Crawl(tmp_path, pages, **settings) as running:
        until(lambda: len(shop.times()) >= 3, 20, "the crawl goes on", running.log)
        server.advise("shop", '"paused"', paused=True)
        until(lambda: "site shop: paused" in running.log(), 20, "the pause is seen", running.log)
        log = running.stop()
    assert "Closing spider (shutdown)" in log
    before = len(shop.times())
    assert before < 39
    server.advise("shop", '"well"', concurrency_ratio=1.0)
    with Crawl(tmp_path, [], **settings) as running:
        running.wait(30)
    assert {one.path for one in site.requests("/product/")} == {f"/product/{number}" for number in range(1, 40)}
    assert len(shop.times()) == 39


def test_a_pause_from_the_start_lets_only_a_few_out_and_a_crawl_waits_for_its_end(
    tmp_path: Path, site: PracticeSite, server: PushServer
) -> None:
    server.advise("shop", '"paused"', paused=True)
    shop = Watched(site, SHOP)
    pages = [{"url": site.url(f"/product/{number}")} for number in range(1, 20)]
    with Crawl(
        tmp_path, pages, CRAWLHEALTH_URL=server.url, CRAWLHEALTH_SITES={"shop": [SHOP]}
    ) as running:  # fmt: skip
        until(lambda: "site shop: paused" in running.log(), 20, "the pause is seen", running.log)
        assert running.running()
        server.advise("shop", '"well"', concurrency_ratio=1.0)
        running.wait(30)
    assert len(shop.times()) == 19


def test_a_project_with_a_queue_of_its_own_is_paused_too(
    tmp_path: Path, site: PracticeSite, server: PushServer
) -> None:
    queue = "scrapy.pqueues.ScrapyPriorityQueue"
    shop, other = Watched(site, SHOP), Watched(site, OTHER)
    with crawl(tmp_path, site, server, SCHEDULER_PRIORITY_QUEUE=queue) as running:
        until(lambda: len(shop.times()) >= 20, 20, "the crawl goes on", running.log)
        server.advise("shop", '"paused"', paused=True)
        until(lambda: "site shop: paused" in running.log(), 20, "the pause is seen", running.log)
        shop.anew()
        other.anew()
        until(lambda: len(other.times()) >= 80, 20, "the other site is crawled", running.log)
        assert len(shop.times()) == 0
        assert other.together() >= 8
        server.advise("shop", '"well"', concurrency_ratio=1.0)
        until(lambda: len(shop.times()) >= 20, 20, "the crawl goes on", running.log)


@pytest.mark.alone
def test_one_at_a_time_is_spread_out(tmp_path: Path, site: PracticeSite, server: PushServer) -> None:
    shop = Watched(site, SHOP)
    with crawl(tmp_path, site, server, CONCURRENT_REQUESTS_PER_DOMAIN=1) as running:
        until(lambda: len(shop.times()) >= 5, 20, "the crawl goes on", running.log)
        server.advise("shop", '"slow"', concurrency_ratio=0.25)
        until(lambda: "site shop: 25 %" in running.log(), 20, "the advice is seen", running.log)
        shop.anew()
        until(lambda: len(shop.times()) >= 5, 30, "the crawl goes on", running.log)
    gaps = [later - earlier for earlier, later in zip(shop.times()[1:], shop.times()[2:], strict=False)]
    assert sum(gaps) / len(gaps) > 2.5 * HELD  # 4 x less what the delay varies by


@pytest.mark.alone
def test_autothrottle_goes_on_from_its_own_delay(tmp_path: Path, site: PracticeSite, server: PushServer) -> None:
    """Its delays tend to the latency; ours are that over the ratio, and do not add up."""
    shop = Watched(site, SHOP)
    settings = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": HELD, "DOWNLOAD_DELAY_JITTER": 0}
    with crawl(tmp_path, site, server, **settings) as running:
        until(lambda: len(shop.times()) >= 10, 20, "the crawl goes on", running.log)
        server.advise("shop", '"slow"', concurrency_ratio=0.5)
        until(lambda: "site shop: 50 %" in running.log(), 20, "the advice is seen", running.log)
        shop.anew()
        until(lambda: len(shop.times()) >= 10, 30, "the crawl goes on", running.log)
    gaps = [later - earlier for earlier, later in zip(shop.times()[1:], shop.times()[2:], strict=False)]
    assert 1.5 * HELD < sum(gaps) / len(gaps) < 3 * HELD


def test_an_exporter_that_goes_away_lets_the_crawl_go_on_as_advised_last(
    tmp_path: Path, site: PracticeSite, server: PushServer
) -> None:
    shop, other = Watched(site, SHOP), Watched(site, OTHER)
    server.advise("shop", '"paused"', paused=True)
    with crawl(tmp_path, site, server) as running:
        until(lambda: "site shop: paused" in running.log(), 20, "the pause is seen", running.log)
        server.stop()
        shop.anew()
        other.anew()
        until(lambda: len(other.times()) >= 40, 20, "the other site is crawled", running.log)
        assert shop.times() == []


def test_advice_is_not_obeyed_where_that_is_wanted(tmp_path: Path, site: PracticeSite, server: PushServer) -> None:
    server.advise("shop", '"paused"', paused=True)
    pages = [site.url("/product/1")]
    Crawl(tmp_path, pages, CRAWLHEALTH_URL=server.url, CRAWLHEALTH_SITES={"shop": [SHOP]}, CRAWLHEALTH_OBEY=False).wait(
        30
    )
    assert server.asked == []
