"""The Scrapy extension: reports what spiders get, and obeys the advice.

One line in a project's settings enables it: `ADDONS = {"crawlhealth.scrapy.Addon": 500}`.
"""

from __future__ import annotations

from crawlhealth.scrapy.addon import Addon
from crawlhealth.scrapy.extension import CrawlHealth
from crawlhealth.scrapy.middleware import TrafficMiddleware
from crawlhealth.scrapy.output import OutputMiddleware
from crawlhealth.scrapy.queue import AdvisedPriorityQueue

__all__ = ["Addon", "AdvisedPriorityQueue", "CrawlHealth", "OutputMiddleware", "TrafficMiddleware"]
