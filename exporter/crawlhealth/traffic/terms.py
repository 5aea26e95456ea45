"""What holds for one push: which sites and routes it may name, and of which time its items may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final
from urllib.parse import urlsplit

from crawlhealth.config import Config, Site
from crawlhealth.hosts import HostIndex

FUTURE_SECONDS: Final = 60.0
"""How far ahead of our clock another one may be."""
_PORTS: Final = {"http": 80, "https": 443}
_MAX_URL: Final = 4_096


class Refused(ValueError):
    """An item of a site that the token may not push."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of one push at `now`.

    `width` is how many seconds a slot of the history has; `sites` are those the token may push, None for all.
    """

    config: Config
    now: float
    width: float
    sites: frozenset[str] | None = None
    _known: dict[tuple[str, int | None], str] = field(default_factory=dict, repr=False)

    @cached_property
    def oldest(self) -> float:
        """The earliest time of an item."""
        return self.now - self.config.push.max_age.total_seconds()

    @property
    def newest(self) -> float:
        """The latest time of an item."""
        return self.now + FUTURE_SECONDS

    @cached_property
    def _hosts(self) -> HostIndex:
        everywhere = {**self.config.sites, **self.config.elsewhere}
        return HostIndex({name: site.hosts for name, site in everywhere.items()})

    def untimely(self, at: float) -> str:
        """Why a time is not taken."""
        if at > self.now:
            return "at is in the future"
        return "at is longer ago than push.max_age"

    def site(self, name: str | None, url: str | None) -> Site:
        """The site of an item by its name, else by its URL. Raises ValueError, or Refused."""
        if name is None:
            name = self._named_by(url)
        site = self.config.sites.get(name)
        if site is None:
            raise ValueError(self.config.unknown(name))
        if self.sites is not None and name not in self.sites:
            raise Refused(f"the token may not push the site {name!r}")
        return site

    def check_route(self, name: str) -> None:
        """Raises ValueError for a route that is not configured."""
        if name not in self.config.routes:
            raise ValueError(f"unknown route: {name[:100]!r}")

    def _named_by(self, url: str | None) -> str:
        if url is None:
            raise ValueError("needs site, or url")
        try:
            parts = urlsplit(url[:_MAX_URL])
            place = parts.hostname or "", parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            raise ValueError(f"not a URL: {url[:100]!r}") from None
        name = self._known.get(place)
        if name is None:
            name = self._hosts.site(*place)
            if name is None:
                raise ValueError(f"unknown site: no site has the host {place[0][:100]!r}")
            self._known[place] = name
        return name
