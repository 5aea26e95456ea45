"""What crawlers import: report the traffic, and follow the advice. Light, and never in the crawler's way."""

from __future__ import annotations

from crawlhealth.client.advice import Advice, SiteAdvice
from crawlhealth.client.judging import classify, failure
from crawlhealth.client.ledger import Counts
from crawlhealth.client.registry import RegistryReporter
from crawlhealth.client.reporter import Limits, Reporter
from crawlhealth.shard import number_of as shard_of

__all__ = [
    "Advice",
    "Counts",
    "Limits",
    "RegistryReporter",
    "Reporter",
    "SiteAdvice",
    "classify",
    "failure",
    "shard_of",
]
