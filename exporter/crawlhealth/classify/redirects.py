"""Where a response came from against where it was asked for: redirects away, home, to a login or to a consent page."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import re2

from crawlhealth.hosts import HostIndex, normal_name
from crawlhealth.model import Response
from crawlhealth.outcome import Reason

_LOGIN: Final = re2.compile(
    r"(?i:(?:^|[/._-])(?:log[_-]?in|sign[_-]?in|logon)(?:[/._;-]|$))|(?i:[/._-](?:login|signin))|[a-z](?:Login|Sign[Ii]n)"
)
_CONSENT: Final = re2.compile(r"(?i:(?:^|[/._-])consent(?:[/._-]|$))")
_HOME: Final = re2.compile(r"(?i)^/?(?:(?:index|home|default)(?:\.[a-z]{2,5})?/?)?$")
_PORTS: Final = {"http": 80, "https": 443}
_MAX_URL: Final = 4_096


class Place(NamedTuple):
    """The parts of a URL that are compared; host in its normal form."""

    host: str
    port: int | None
    path: str


def place(url: str) -> Place | None:
    """The place of a URL, None for what is none."""
    try:
        parts = urlsplit(url[:_MAX_URL])
        host = normal_name(parts.hostname or "")
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return Place(host, port, parts.path or "/") if host else None


def targets(response: Response, *, served: bool) -> Iterator[str]:
    """`host/path` of every redirect: those followed and the one not followed; only the last if content was served."""
    urls = [response.final_url] if response.final_url != response.url else []
    if not served:
        urls = [*response.redirects, *urls]
    if 300 <= response.status < 400 and "location" in response.headers:
        with contextlib.suppress(ValueError):
            base = (response.final_url or response.url)[:_MAX_URL]
            urls.append(urljoin(base, response.headers["location"][:_MAX_URL]))
    for url in urls:
        target = place(url)
        if target is not None:
            yield target.host + target.path


def away(response: Response, hosts: Sequence[str]) -> Reason | None:
    """Why a response is from somewhere else than it was asked for; None when it is not.

    A canonical redirect (scheme, `www.`, `/index.html` to `/`) is none.
    """
    asked, got = place(response.url), place(response.final_url or response.url)
    if asked is None or got is None or asked == got:
        return None
    if _hits(_CONSENT, got) and not _hits(_CONSENT, asked):
        return Reason.CONSENT_PAGE
    if _LOGIN.search(got.path) and not _LOGIN.search(asked.path):
        return Reason.REDIRECTED_LOGIN
    if not _same_host(asked, got) and hosts and HostIndex({"": hosts}).site(got.host, got.port) is None:
        return Reason.REDIRECTED_AWAY
    if got.path == "/" and not _HOME.search(asked.path):
        return Reason.REDIRECTED_HOME
    return None


def _hits(pattern: re2._Regexp, where: Place) -> bool:
    return where.host.startswith("consent.") or bool(pattern.search(where.path))


def _same_host(asked: Place, got: Place) -> bool:
    return asked.host.removeprefix("www.") == got.host.removeprefix("www.")
