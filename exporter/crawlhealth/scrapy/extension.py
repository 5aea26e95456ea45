"""The extension: ties reports and advice to one crawl."""

from __future__ import annotations

import logging
from typing import Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThread

from crawlhealth.client import Advice, Reporter
from crawlhealth.scrapy.options import Naming, Options
from crawlhealth.scrapy.throttle import Throttle
from crawlhealth.scrapy.traffic import Traffic

log = logging.getLogger(__name__)

LOOK_EVERY = 1.0
"""Seconds between two looks at the advice, which is in memory."""


class CrawlHealth:
    """Reports the traffic of a crawl and obeys the advice. Off without CRAWLHEALTH_URL.

    It has to be built before AutoThrottle, which Addon sees to: that one then finds the usual delays, not ours.
    """

    def __init__(self, crawler: Crawler, options: Options) -> None:
        own = getattr(crawler.spider, "crawlhealth_site", None) or getattr(crawler.spidercls, "crawlhealth_site", None)
        naming = Naming(options, str(own) if own else None)
        self._crawler = crawler
        self._reporter = Reporter(
            options.url, token=options.token, spool=options.spool, flush_every=options.flush_every
        )
        self.traffic = Traffic(crawler, options, naming, self._reporter)
        self._advice: Advice | None = None
        self.throttle: Throttle | None = None
        if options.obey and naming.sites:
            self._advice = Advice(options.url, naming.sites, token=options.token, every=options.advice_every)
            self.throttle = Throttle(crawler, naming, self._advice)
            self._looking = create_looping_call(self.throttle.tick)
        self._connect()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """The extension of a crawl; raises NotConfigured without CRAWLHEALTH_URL, ValueError for a wrong setting."""
        options = Options.read(crawler.settings)
        if options is None:
            raise NotConfigured("CRAWLHEALTH_URL is not set")
        return cls(crawler, options)

    def _connect(self) -> None:
        connect = self._crawler.signals.connect
        connect(self._opened, signal=signals.spider_opened)
        connect(self._closed, signal=signals.spider_closed)
        connect(self._reached, signal=signals.request_reached_downloader)
        connect(self._headers, signal=signals.headers_received)
        connect(self._downloaded, signal=signals.response_downloaded)
        connect(self._scraped, signal=signals.item_scraped)
        connect(self._dropped, signal=signals.item_dropped)
        connect(self._dropped, signal=signals.item_error)
        connect(self._failed, signal=signals.spider_error)

    def _opened(self) -> None:
        if self.throttle is not None:
            self._crawler.signals.connect(self._adapted, signal=signals.response_downloaded)
            self._looking.start(LOOK_EVERY)

    async def _closed(self) -> None:
        if self._advice is not None and self._looking.running:
            self._looking.stop()
            self._advice.close()
        self.traffic.pages.flush()
        await maybe_deferred_to_future(deferToThread(self._close))

    def _close(self) -> None:
        counts = self._reporter.close()
        stats = self._crawler.stats
        if stats is not None:
            for name in ("delivered", "rejected", "dropped", "waiting"):
                stats.set_value(f"crawlhealth/reports/{name}", getattr(counts, name))

    def _reached(self, request: Request) -> None:
        self.traffic.reached(request)
        if self.throttle is not None:
            self.throttle.reached(request)

    def _headers(self, request: Request) -> None:
        self.traffic.headers(request)

    def _downloaded(self, request: Request) -> None:
        self.traffic.downloaded(request)
        if self.throttle is not None:
            self.throttle.before_others(request)

    def _adapted(self, request: Request) -> None:
        if self.throttle is not None:
            self.throttle.after_others(request)

    def _scraped(self, item: object, response: Response | None) -> None:
        self.traffic.pages.item(response, item, kept=True)

    def _dropped(self, item: object, response: Response | None) -> None:
        self.traffic.pages.item(response, item, kept=False)

    def _failed(self, response: Response | None, spider: Spider) -> None:
        self.traffic.pages.failed(response)
        self.traffic.pages.finished(response)
