"""A crawl with real Scrapy, run as a program of its own: `crawlprogram.py JSON`, with pages, settings, and a spider."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Item, Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import DropItem
from scrapy.http import Response

ORDERS: dict[str, Any] = json.loads(sys.argv[1]) if __name__ == "__main__" else {}


class Drop:
    """A pipeline that drops what it is told to."""

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        if item.get("drop"):
            raise DropItem("as told")
        return item


class Shop(Spider):
    """Asks for all pages, in turn, and takes a product from each as its callback's name says."""

    name = "shop"

    async def start(self) -> AsyncIterator[Any]:
        for page in ORDERS["pages"]:
            order: dict[str, Any] = {"url": page} if isinstance(page, str) else page
            yield Request(
                order["url"],
                callback=getattr(self, order.get("callback", "parse_product")),
                errback=self.quiet,
                dont_filter=True,
                meta=order.get("meta", {}),
            )

    def parse_product(self, response: Response) -> Iterator[dict[str, Any]]:
        name, price = response.css("h1::text").get(), response.css("p.price::text").get()
        if name:
            yield {"name": name, "price": price}

    def parse_nothing(self, response: Response) -> Iterator[Item]:
        yield from ()

    def parse_and_drop(self, response: Response) -> Iterator[dict[str, Any]]:
        yield {"name": "kept", "price": "1"}
        yield {"name": "dropped", "price": "1", "drop": True}

    def parse_empty(self, response: Response) -> Iterator[dict[str, Any]]:
        yield {"name": "a name", "price": " n/a "}

    def parse_badly(self, response: Response) -> Iterator[dict[str, Any]]:
        yield {"name": "first", "price": "1"}
        raise ValueError("no such element")

    def fail_at_once(self, response: Response) -> list[dict[str, Any]]:
        raise ValueError("no such element")

    def quiet(self, failure: object) -> None:
        """An error is the business of others."""


class Both(Shop):
    """Asks for page after page of both shops without an end, each answered or not asking for the next."""

    AT_ONCE = 20

    async def start(self) -> AsyncIterator[Any]:
        for number in range(self.AT_ONCE):
            for page in ORDERS["pages"]:
                yield self.ask(page, number)

    def ask(self, page: str, number: int) -> Request:
        return Request(
            f"{page}?n={number}",
            callback=self.parse_and_ask,
            errback=self.ask_after_error,
            meta={"handle_httpstatus_all": True},
            cb_kwargs={"number": number},
        )

    def parse_and_ask(self, response: Response, number: int) -> Iterator[Any]:
        yield from self.parse_product(response)
        yield self.ask(response.url.partition("?")[0], number + self.AT_ONCE)

    def ask_after_error(self, failure: Any) -> Iterator[Request]:
        request = failure.request
        yield self.ask(request.url.partition("?")[0], request.cb_kwargs["number"] + self.AT_ONCE)


if __name__ == "__main__":
    process = CrawlerProcess(
        settings={
            "ADDONS": {"crawlhealth.scrapy.Addon": 500},
            "ITEM_PIPELINES": {Drop: 100},
            "ROBOTSTXT_OBEY": False,
            "LOG_LEVEL": "INFO",
            "TELNETCONSOLE_ENABLED": False,
            "RETRY_TIMES": 0,
            "DOWNLOAD_TIMEOUT": 5,
            "DOWNLOAD_DELAY": 0,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
            "CRAWLHEALTH_FLUSH_EVERY": 0.1,
            "CRAWLHEALTH_ADVICE_EVERY": 0.1,
            **ORDERS["settings"],
        }
    )
    process.crawl({"shop": Shop, "both": Both}[ORDERS.get("spider", "shop")])
    process.start()
