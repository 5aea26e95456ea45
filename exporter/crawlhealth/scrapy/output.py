"""The spider middleware: counts what the spider makes of each page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from crawlhealth.scrapy.extension import CrawlHealth
from crawlhealth.scrapy.pages import Pages


class OutputMiddleware:
    """Stands next to the engine, so that it sees the items that reach the pipelines, and no others."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """The middleware of a crawl; raises NotConfigured where the extension is off."""
        extension = crawler.get_extension(CrawlHealth)
        if extension is None:
            raise NotConfigured
        return cls(extension.traffic.pages)

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterable[Any]:
        """Pass everything on."""
        try:
            for one in result:
                self._count(response, one)
                yield one
        except Exception:
            self._pages.failed(response)
            raise
        finally:
            self._pages.finished(response)

    async def process_spider_output_async(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass everything on."""
        try:
            async for one in result:
                self._count(response, one)
                yield one
        except Exception:
            self._pages.failed(response)
            raise
        finally:
            self._pages.finished(response)

    def _count(self, response: Response, one: object) -> None:
        if one is not None and not isinstance(one, Request):
            self._pages.yielded(response)
