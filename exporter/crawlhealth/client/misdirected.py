"""Sites whose advice is asked of the wrong shard: nothing slows their crawl down, so that must not go unsaid."""

from __future__ import annotations

import logging
import math
from typing import Final

import msgspec

log = logging.getLogger(__name__)

SAY_AGAIN: Final = 600.0
"""Seconds until it is said again while it lasts."""
MOST_NAMED: Final = 5


class Owner(msgspec.Struct, frozen=True):
    """The shard that an exporter says a site belongs to."""

    number: int
    count: int


class Misdirected:
    """The sites that the exporter at `url` says another shard has. For one thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._owners: dict[str, Owner] = {}
        self._said: dict[str, Owner] = {}
        self._said_at = -math.inf

    def note(self, site: str, owner: Owner | None) -> None:
        """Which other shard has a site, by the latest answer; None for an exporter that knows it, or knows none."""
        if owner is None:
            self._owners.pop(site, None)
        else:
            self._owners[site] = owner

    def complain(self, now: float) -> None:
        """Log an error that names the shards, when there are others than before, and again from time to time."""
        owners = self._owners
        if not owners:
            self._said = {}
        elif not owners.items() <= self._said.items() or now - self._said_at >= SAY_AGAIN:
            named = ", ".join(
                f"{site} is of shard {owner.number} of {owner.count}"
                for site, owner in sorted(owners.items())[:MOST_NAMED]
            )
            more = f", and {len(owners) - MOST_NAMED} sites more are of others" if len(owners) > MOST_NAMED else ""
            log.error(
                "no advice from %s, which is another shard: %s%s; nothing slows their crawl down until the exporter of"
                " their shard is asked (crawlhealth.client.shard_of)",
                self._url, named, more,
            )  # fmt: skip
            self._said, self._said_at = dict(owners), now
