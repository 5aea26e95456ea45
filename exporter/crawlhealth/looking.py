"""Looking at web servers for the search-bot part, with the bounds and the address policy of canary fetches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from crawlhealth.canary.fetch import Fetcher, FetchFailed
from crawlhealth.config import DIRECT, Canary, Fetching, Route
from crawlhealth.searchbots.looks import Looked

_ROUTE = Route(name=DIRECT)


class Looker:
    """A `Look` by the settings in force. Works from any thread. `clock` gives unix seconds."""

    def __init__(self, settings: Callable[[], Fetching], *, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._fetchers: dict[int, tuple[Fetching, Fetcher]] = {}

    def __call__(
        self, url: str, *, method: str = "GET", timeout: float = 10.0, redirects: int = 0, accept: str = "*/*"
    ) -> Looked:
        """See `Look`."""
        page = Canary(
            name="look",
            site="",
            url=url,
            method="HEAD" if method == "HEAD" else "GET",
            timeout=timedelta(seconds=timeout),
            headers={"Accept": accept},
        )
        fetched = self._fetcher(redirects).fetch(page, _ROUTE, now=self._clock())
        response = fetched.response
        failed = fetched if isinstance(fetched, FetchFailed) else None
        return Looked(
            status=None if response is None else response.status,
            reason=None if failed is None else failed.reason,
            detail="" if failed is None else failed.detail,
            seconds=fetched.exchange.seconds,
            redirects=fetched.exchange.redirects,
            body=b"" if response is None or failed is not None else response.body,
            not_after=fetched.exchange.not_after,
        )

    def get(self, url: str) -> bytes:
        """The body at a URL. Raises OSError where there is none, or none with status 200."""
        looked = self(url, timeout=60.0, redirects=5)
        if looked.status != 200 or looked.reason is not None:
            raise OSError(looked.detail or f"HTTP {looked.status}")
        return looked.body

    def _fetcher(self, redirects: int) -> Fetcher:
        settings = self._settings()
        known = self._fetchers.get(redirects)
        if known is None or known[0] != settings:
            known = self._fetchers[redirects] = (settings, Fetcher(replace(settings, max_redirects=redirects)))
        return known[1]
