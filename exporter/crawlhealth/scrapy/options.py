"""What a Scrapy project may set, with every default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.settings import BaseSettings

from crawlhealth import hosts

PLACEHOLDERS: Final = frozenset({"", "-", "–", "—", "n/a", "null", "none", "nan", "undefined"})
"""Texts that stand for a missing value, in lower case."""
ALL_ITEMS: Final = "*"
_PORTS: Final = {"http": 80, "https": 443}


class Bodies(StrEnum):
    """Which pages are sent to the exporter, to be classified there."""

    REFUSED = "refused"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings that begin with CRAWLHEALTH_, read and checked.

    `sites` maps names to hosts, `routes` proxies to names of routes; `required` maps classes of items (or "*") to
    fields that must have a value; `record_pages` are the page types that must give records.
    """

    url: str
    token: str | None = None
    sites: Mapping[str, Sequence[str]] = field(default_factory=dict)
    routes: Mapping[str, str] = field(default_factory=dict)
    spool: str | None = None
    obey: bool = True
    advice_every: float = 5.0
    flush_every: float = 1.0
    bodies: Bodies = Bodies.REFUSED
    required: Mapping[str, Sequence[str]] = field(default_factory=dict)
    record_pages: frozenset[str] = frozenset()

    @classmethod
    def read(cls, settings: BaseSettings) -> Options | None:
        """The options of a project; None where it has no CRAWLHEALTH_URL. Raises ValueError for one that is wrong."""
        url = settings.get("CRAWLHEALTH_URL")
        if not url:
            return None
        written = settings.get("CRAWLHEALTH_BODIES", Bodies.REFUSED)
        if written not in set(Bodies):
            raise ValueError(f"CRAWLHEALTH_BODIES is {written!r}: write one of {', '.join(Bodies)}")
        required = settings.get("CRAWLHEALTH_REQUIRED_FIELDS") or {}
        if not isinstance(required, Mapping):
            required = {ALL_ITEMS: settings.getlist("CRAWLHEALTH_REQUIRED_FIELDS")}
        return cls(
            url=str(url),
            token=settings.get("CRAWLHEALTH_TOKEN") or None,
            sites=_sites(settings.getdict("CRAWLHEALTH_SITES")),
            routes={proxy_key(str(proxy)): str(name) for proxy, name in settings.getdict("CRAWLHEALTH_ROUTES").items()},
            spool=settings.get("CRAWLHEALTH_SPOOL") or None,
            obey=settings.getbool("CRAWLHEALTH_OBEY", True),
            advice_every=settings.getfloat("CRAWLHEALTH_ADVICE_EVERY", 5.0),
            flush_every=settings.getfloat("CRAWLHEALTH_FLUSH_EVERY", 1.0),
            bodies=Bodies(written),
            required={str(kind): tuple(fields) for kind, fields in required.items()},
            record_pages=frozenset(settings.getlist("CRAWLHEALTH_RECORD_PAGES")),
        )


class Naming:
    """Which site and route a request belongs to. `own` is the site of a spider that crawls only that."""

    def __init__(self, options: Options, own: str | None) -> None:
        self._index = hosts.HostIndex(options.sites)
        self._routes = options.routes
        self._own = own
        self.sites = tuple(dict.fromkeys([*options.sites, *([own] if own else [])]))

    def site(self, request: Request) -> str | None:
        """The site of a request: as its meta says, by its host, or the spider's own; None if it has none."""
        if said := request.meta.get("crawlhealth_site"):
            return str(said)
        try:
            parts = urlsplit(request.url)
            host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            return self._own
        return self._index.site(host, port) or self._own

    def site_of_slot(self, key: str) -> str | None:
        """The site of a download slot that is named by a host."""
        return self._index.site(key) or self._own

    def route(self, request: Request) -> str | None:
        """The route of a request: as its meta says, by its proxy, or direct; None for a proxy that has no name."""
        if said := request.meta.get("crawlhealth_route"):
            return str(said)
        proxy = request.meta.get("proxy")
        if not proxy:
            return "direct"
        return self._routes.get(proxy_key(str(proxy))) or self._routes.get("*")


def proxy_key(proxy: str) -> str:
    """A proxy as it is compared: host and port, without scheme and without who uses it."""
    return proxy.rpartition("@")[2].rpartition("//")[2].rstrip("/").lower()


def _sites(written: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Sites with their hosts. Raises ValueError for a host that is none."""
    sites: dict[str, tuple[str, ...]] = {}
    for name, listed in written.items():
        names = (
            (listed,) if isinstance(listed, str) else tuple(map(str, listed if isinstance(listed, Sequence) else ()))
        )
        for host in names:
            try:
                hosts.parse(host)
            except ValueError as error:
                raise ValueError(f"CRAWLHEALTH_SITES: {name}: {host!r} {error}") from None
        sites[str(name)] = names
    return sites
