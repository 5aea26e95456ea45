"""What is kept of a response so that a person can believe its outcome: short, printable, and without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from crawlhealth.classify.marker import Where
from crawlhealth.classify.matcher import Found
from crawlhealth.classify.page import Page
from crawlhealth.model import Evidence, Response

_KEPT: Final = frozenset(
    [
        "server",
        "content-type",
        "content-length",
        "retry-after",
        "via",
        "cf-ray",
        "cf-mitigated",
        "x-amzn-waf-action",
        "x-amz-cf-id",
        "x-datadome",
        "x-cache",
        "x-iinfo",
        "x-cdn",
        "x-sucuri-id",
        "x-sucuri-block",
        "x-vercel-id",
        "x-vercel-mitigated",
        "x-yandex-captcha",
        "x-dd-b",
    ]
)
_KEPT_PREFIX: Final = "x-kpsdk-"
_URL_HEADERS: Final = frozenset({"location", "refresh"})
_MAX_NAME: Final = 40
_MAX_VALUE: Final = 200
_MAX_TEXT: Final = 240
_MAX_HEADERS: Final = 24
_MAX_URL: Final = 2_000


def evidence(
    response: Response,
    page: Page | None,
    found: Found | None,
    *,
    vendors: tuple[str, ...] = (),
    marker: str = "",
    where: str = "",
    detail: str = "",
) -> Evidence:
    """The evidence of one response; `found` is the rule that decided, `marker` and `where` say it when none did."""
    if found is not None:
        marker = found.rule.name
        where = "body" if found.rule.trust is Where.ANY else found.rule.trust.name.lower()
        if found.rule.trust is Where.HEADER:
            where = f"header {found.rule.needs[0].header}"
    return Evidence(
        status=response.status,
        final_url=address(response.final_url or response.url),
        headers=headers_that_matter(response.headers),
        title=clean(page.title) if page is not None and page.kind == "html" else "",
        marker=marker,
        where=where,
        excerpt=clean(found.excerpt) if found is not None else "",
        vendors=vendors,
        detail=detail,
    )


def headers_that_matter(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The headers that tell who answered; never a cookie, and of a URL neither user-info nor query."""
    kept = []
    for name, value in headers.items():
        if name in _KEPT or (name.startswith(_KEPT_PREFIX) and len(name) <= _MAX_NAME and name.isprintable()):
            kept.append((name, clean(value[:_MAX_VALUE])))
        elif name in _URL_HEADERS:
            kept.append((name, address(value).partition("?")[0][:_MAX_VALUE]))
    return tuple(sorted(kept)[:_MAX_HEADERS])


def clean(text: bytes | str) -> str:
    """Text of a page on one short line: white space collapsed, what cannot be printed left out."""
    if isinstance(text, bytes):
        text = text[: 4 * _MAX_TEXT].decode("utf-8", "ignore")
    line = " ".join(text[: 4 * _MAX_TEXT].split())
    return _printable(line)[:_MAX_TEXT]


def address(url: str) -> str:
    """A URL on one short line, without user name and password."""
    line = url[:_MAX_URL]  # first: urlsplit remembers what it was given
    try:
        parts = urlsplit(line)
    except ValueError:
        return ""
    if len(line) < len(url) and not (parts.path or parts.query or parts.fragment):
        return ""  # cut within what may be a password
    if "@" in parts.netloc:
        line = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return _printable(line)


def _printable(line: str) -> str:
    return line if line.isprintable() else "".join(filter(str.isprintable, line))
