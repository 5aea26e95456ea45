"""The downloader middleware: sees every answer after its redirects and before its retries."""

from __future__ import annotations

import logging
import uuid
from typing import Final, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response

from crawlhealth.scrapy.extension import CrawlHealth
from crawlhealth.scrapy.throttle import HeldBack
from crawlhealth.scrapy.traffic import Traffic

log = logging.getLogger(__name__)

_GIVEN_BACK: Final = "crawlhealth_given_back"
"""Says in which run a request was given back: those that do not come from the scheduler would come again and again."""


class TrafficMiddleware:
    """Changes nothing. Its place is between HttpCompressionMiddleware (590) and MetaRefreshMiddleware (580)."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._run = uuid.uuid4().hex

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """The middleware of a crawl; raises NotConfigured where the extension is off."""
        extension = crawler.get_extension(CrawlHealth)
        if extension is None:
            raise NotConfigured
        return cls(extension.traffic)

    def process_response(self, request: Request, response: Response) -> Response:
        """Report an answer, or have it wait for its records."""
        try:
            self._traffic.answered(request, response)
        except Exception:
            log.exception("cannot report %s", response)
        return response

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Report a request without an answer; one that was held back until the end goes back to the scheduler."""
        if isinstance(exception, HeldBack):
            if request.meta.get(_GIVEN_BACK) == self._run:
                raise IgnoreRequest("the site is paused, and the crawl ends")
            return request.replace(dont_filter=True, meta={**request.meta, _GIVEN_BACK: self._run})
        if not isinstance(exception, IgnoreRequest):
            try:
                self._traffic.failed(request, exception)
            except Exception:
                log.exception("cannot report that %s failed", request)
        return None
