"""The add-on: puts every part of the extension in its place."""

from __future__ import annotations

from typing import Final

from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings

from crawlhealth.scrapy.extension import CrawlHealth
from crawlhealth.scrapy.middleware import TrafficMiddleware
from crawlhealth.scrapy.output import OutputMiddleware

EXTENSION_ORDER: Final = -10
"""Before Scrapy's own, AutoThrottle among them."""
DOWNLOADER_ORDER: Final = 585
SPIDER_ORDER: Final = 5
"""Next to the engine."""


class Addon:
    """Enables the extension, its middlewares, and its queue unless the project has one of its own."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the components; raises NotConfigured without CRAWLHEALTH_URL."""
        if not settings.get("CRAWLHEALTH_URL"):
            raise NotConfigured("CRAWLHEALTH_URL is not set")
        settings.setdefault_in_component_priority_dict("EXTENSIONS", CrawlHealth, EXTENSION_ORDER)
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", TrafficMiddleware, DOWNLOADER_ORDER)
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", OutputMiddleware, SPIDER_ORDER)
        settings.set("SCHEDULER_PRIORITY_QUEUE", "crawlhealth.scrapy.AdvisedPriorityQueue", priority="addon")
