"""One file of canaries: defaults at its top, then each canary, checked against the sites and routes there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Literal
from urllib.parse import urlsplit

from crawlhealth.config import DEFAULT_EVERY, DEFAULT_TIMEOUT, DIRECT, Canary, Route, Secret, Site
from crawlhealth.configfile.expectations import read_expectations
from crawlhealth.configfile.rules import check_cookies, check_headers, check_name, check_route_names
from crawlhealth.hosts import HostIndex, normal_name
from crawlhealth.quantities import show
from crawlhealth.yamlfile.binding import Binder, nearest
from crawlhealth.yamlfile.document import Document, Steps
from crawlhealth.yamlfile.tree import Items, Node, quoted

DEFAULT_SHARE: Final = 0.8
"""Of `every`: a timeout that nobody set stays this far under it."""
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """What a file may say for all its canaries, and each of them for itself."""

    site: str | None = None
    every: timedelta | None = None
    timeout: timedelta | None = None
    routes: tuple[str, ...] | None = None
    headers: Mapping[str, str | Secret] = field(default_factory=dict)
    cookies: Mapping[str, str | Secret] = field(default_factory=dict)
    page_type: str | None = None
    fetch: Literal["pull", "push"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _File(_Common):
    canaries: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written(_Common):
    name: str = ""
    url: str = ""
    method: Literal["GET", "POST", "HEAD"] = "GET"
    body: str | None = None
    expect: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What canaries may refer to. `names` are all sites written, `sites` those that could be read."""

    names: frozenset[str]
    sites: Mapping[str, Site]
    hosts: HostIndex
    routes: Mapping[str, Route]


class CanaryFile:
    """Reads the canaries of one file; its problems are noted in the document."""

    def __init__(
        self, document: Document, around: Surroundings, *, environ: Mapping[str, str], secrets: bool = True
    ) -> None:
        self.document = document
        self.binder = Binder(document, environ=environ, secrets=secrets)
        self._around = around

    def read(self) -> tuple[tuple[int, Canary], ...]:
        """The canaries, each with its place in the file."""
        if self.document.root is None:
            return ()
        defaults = self.binder.record(self.document.root, _File)
        if defaults is None:
            return ()
        self._common(defaults, ())
        node = self.document.find(("canaries",))
        if not self.document.has("canaries") or not isinstance(node, Items) or not node.items:
            self.document.report(("canaries",), "needs a list of canaries: write - name: … and url: … under it")
            return ()
        read = ((number, self._canary(item, number, defaults)) for number, item in enumerate(node.items))
        return tuple((number, canary) for number, canary in read if canary is not None)

    def _canary(self, node: Node, number: int, defaults: _File) -> Canary | None:
        steps: Steps = ("canaries", number)
        own = self.binder.record(node, _Written, steps)
        if own is None or self.document.full:
            return None
        self._common(own, steps)
        for key in ("name", "url"):
            if not getattr(own, key) and self.document.sound(*steps, key):
                self.document.report(steps, f"needs {key}: add it")
        if own.name:
            check_name(self.document, own.name, (*steps, "name"), key=False)
        site = own.site or defaults.site
        if site is None and self.document.sound(*steps, "site") and self.document.sound("site"):
            self.document.report(steps, "needs site: write it here, or once at the top of the file")
        self._url(own.url, site, steps)
        self._method(own, steps)
        routes = self._routes(own, defaults, site)
        every = own.every or defaults.every or DEFAULT_EVERY
        timeout = own.timeout or defaults.timeout
        canary = Canary(
            name=own.name,
            site=site or "",
            url=own.url,
            every=every,
            timeout=timeout or min(DEFAULT_TIMEOUT, every * DEFAULT_SHARE),
            timeouts={} if timeout else self._route_timeouts(routes),
            routes=routes,
            method=own.method,
            headers=_merged(defaults.headers, own.headers),
            cookies={**defaults.cookies, **own.cookies},
            body=own.body,
            page_type=own.page_type if own.page_type is not None else defaults.page_type or "",
            fetch=own.fetch or defaults.fetch or "pull",
            expect=read_expectations(self.binder, node, routes, steps),
        )
        self._times(canary, steps)
        if canary.fetch == "push" and canary.same_on:
            message = "has same_on, which needs fetches at one moment: leave it out, or write fetch: pull"
            self.document.report((*steps, "expect"), message)
        return canary

    def _routes(self, own: _Written, defaults: _File, site: str | None) -> tuple[str, ...]:
        for routes in (own.routes, defaults.routes):
            if routes is not None:
                return routes
        found = self._around.sites.get(site or "")
        return found.routes if found else (DIRECT,)

    def _route_timeouts(self, routes: tuple[str, ...]) -> Mapping[str, timedelta]:
        known = (self._around.routes[name] for name in routes if name in self._around.routes)
        return {route.name: route.timeout for route in known if route.timeout is not None}

    def _common(self, common: _Common, steps: Steps) -> None:
        """What holds for the defaults of a file as for a canary."""
        document = self.document
        if common.site is not None and common.site not in self._around.names:
            remedy = nearest(common.site, self._around.names)
            document.report((*steps, "site"), f"there is no site {quoted(common.site)}: {remedy}")
        if common.routes is not None:
            check_route_names(document, common.routes, self._around.routes, (*steps, "routes"))
        check_headers(document, common.headers, (*steps, "headers"))
        check_cookies(document, common.cookies, (*steps, "cookies"))
        for key in ("every", "timeout"):
            if getattr(common, key) is not None and getattr(common, key) <= timedelta(0):
                document.report((*steps, key), "must be more than 0: write for instance 30s")

    def _url(self, url: str, site: str | None, steps: Steps) -> None:
        """The page's address is one that can be fetched, and its host one of the site's."""
        steps = (*steps, "url")
        if not url or not self.document.sound(*steps):
            return
        example = "write for instance https://books.toscrape.com/"
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            self.document.report(steps, f"is not a URL: {example}")
            return
        if parts.scheme not in _PORTS or not host or not url.isprintable() or " " in url:
            self.document.report(steps, f"is not an http or https URL: {example}")
            return
        if parts.username is not None or parts.password is not None:
            message = "holds a user name or password: write headers: {Authorization: {env: NAME}} instead"
            self.document.report(steps, message, secret=True)
            return
        if site is None or site not in self._around.sites or not self.document.sound("site"):
            return
        owner = self._around.hosts.site(host, port)
        if owner != site:
            whose = f"belongs to the site {quoted(owner)}" if owner else "is in no site's hosts"
            hosts = ", ".join(self._around.sites[site].hosts[:5])
            message = (
                f"the host {quoted(normal_name(host))} {whose}: add it to the hosts of {site} ({hosts}), or mend one"
            )
            self.document.report(steps, message)

    def _method(self, own: _Written, steps: Steps) -> None:
        if own.body is not None and own.method != "POST":
            self.document.report((*steps, "body"), "is sent by POST only: add method: POST")
        if own.method == "HEAD" and own.expect:
            self.document.report((*steps, "method"), "HEAD answers have no body to read values from: write GET")

    def _times(self, canary: Canary, steps: Steps) -> None:
        """A fetch must have ended before the next one begins, through every route."""
        keys = [(*steps, "every"), (*steps, "timeout"), ("every",), ("timeout",)]
        if not all(self.document.sound(*key) for key in keys):
            return
        where = next((key for key in (keys[1], keys[0], keys[3], keys[2]) if self.document.has(*key)), steps)
        slow = {name: canary.timeout_on(name) for name in canary.routes if canary.timeout_on(name) >= canary.every}
        if slow:
            name, timeout = next(iter(slow.items()))
            whose = f"of the route {quoted(name)} " if name in canary.timeouts else ""
            message = f"the timeout {whose}({show(timeout)}) must be shorter than every ({show(canary.every)})"
            self.document.report(where, f"{message}: shorten it, or fetch less often")


def _merged(below: Mapping[str, str | Secret], above: Mapping[str, str | Secret]) -> Mapping[str, str | Secret]:
    """Headers of a file and a canary; the canary's win, whatever their case."""
    own = {name.lower() for name in above}
    return {**{name: value for name, value in below.items() if name.lower() not in own}, **above}
