"""The reference page: whether our own uplink is up, asked of a page that has nothing to do with any site."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from crawlhealth.canary.fetch import Fetcher, FetchFailed
from crawlhealth.config import DIRECT, Canary, Fetching, Route
from crawlhealth.uplink import CONNECTION

TIMEOUT: Final = timedelta(seconds=10)
MISSES: Final = 2
"""So many fetches without an answer, one after another, mean that the uplink is down."""


class Reference:
    """Looks at a page again and again; `up` until it brought no answer twice in a row. Any answer over HTTP will do."""

    def __init__(self) -> None:
        self._missed = 0
        self._fetcher: tuple[Fetching, Fetcher] | None = None

    @property
    def up(self) -> bool:
        """Whether the page answered lately, or was not asked yet."""
        return self._missed < MISSES

    def look(self, url: str | None, settings: Fetching, *, now: float) -> None:
        """Fetch the page once; without one the uplink is taken to be up."""
        if url is None:
            self._missed = 0
            return
        if self._fetcher is None or self._fetcher[0] != settings:
            self._fetcher = (settings, Fetcher(settings))
        page = Canary(name="reference", site="", url=url, method="HEAD", timeout=TIMEOUT)
        fetched = self._fetcher[1].fetch(page, Route(name=DIRECT), now=now)
        lost = isinstance(fetched, FetchFailed) and fetched.response is None and fetched.reason in CONNECTION
        self._missed = self._missed + 1 if lost else 0
