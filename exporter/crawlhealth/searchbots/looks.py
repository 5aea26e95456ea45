"""Looking at a web server: what searchbots asks for, and is given back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from crawlhealth.outcome import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What came of one look: a status, or the reason why there is none.

    `redirects` are the URLs that were gone to in turn; a look that was to follow fewer has the reason
    `too_many_redirects`. `not_after` has the ends of the certificates that were seen, by host.
    """

    status: int | None = None
    reason: Reason | None = None
    detail: str = ""
    seconds: float = 0.0
    redirects: tuple[str, ...] = ()
    body: bytes = b""
    not_after: Mapping[str, float] = field(default_factory=dict)


class Look(Protocol):
    """Asks for a URL, within a deadline and every other bound; never raises for what a server does."""

    def __call__(
        self, url: str, *, method: str = "GET", timeout: float = 10.0, redirects: int = 0, accept: str = "*/*"
    ) -> Looked:
        """Follow so many redirects at most; `timeout` is in seconds, and for all of it."""


def origin(url: str) -> str:
    """The host of a URL as a domain is written: with the port where that is not the scheme's own."""
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    host = (parts.hostname or "").rstrip(".")
    return host if parts.port in (None, usual) else f"{host}:{parts.port}"
