"""What came of a request, from what an HTTP library hands out. Imports the classification only when it is used."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from crawlhealth.outcome import Reason

if TYPE_CHECKING:
    from crawlhealth.model import Classification

REFUSAL_STATUS: Final = frozenset({401, 403, 406, 429, 451})
"""What a site's `refusal_status` is when its configuration says nothing."""
_BODY: Final = 4_000_000

_BY_NAME: Final[Mapping[str, Reason]] = {
    "ConnectionResetError": Reason.CONNECTION_RESET,
    "ConnectionRefusedError": Reason.CONNECTION_REFUSED,
    "DownloadConnectionRefusedError": Reason.CONNECTION_REFUSED,
    "RemoteDisconnected": Reason.CONNECTION_RESET,
    "ServerDisconnectedError": Reason.CONNECTION_RESET,
    "RemoteProtocolError": Reason.CONNECTION_RESET,
    "ResponseNeverReceived": Reason.CONNECTION_RESET,
    "ConnectionLost": Reason.CONNECTION_RESET,
    "gaierror": Reason.DNS,
    "NameResolutionError": Reason.DNS,
    "DNSLookupError": Reason.DNS,
    "CannotResolveHostError": Reason.DNS,
    "ClientConnectorDNSError": Reason.DNS,
    "ProxyError": Reason.PROXY,
    "ClientHttpProxyError": Reason.PROXY,
    "TunnelError": Reason.PROXY,
    "SSLError": Reason.TLS,
    "SSLCertVerificationError": Reason.TLS,
    "ClientSSLError": Reason.TLS,
    "TooManyRedirects": Reason.TOO_MANY_REDIRECTS,
    "ContentDecodingError": Reason.UNDECODABLE_BODY,
    "DecodeError": Reason.UNDECODABLE_BODY,
    "IncompleteRead": Reason.TRUNCATED_BODY,
    "ChunkedEncodingError": Reason.TRUNCATED_BODY,
    "ClientPayloadError": Reason.TRUNCATED_BODY,
    "ResponseDataLossError": Reason.TRUNCATED_BODY,
    "PartialDownloadError": Reason.TRUNCATED_BODY,
    "_DataLoss": Reason.TRUNCATED_BODY,
    "PotentialDataLoss": Reason.TRUNCATED_BODY,
    "InvalidHeader": Reason.INVALID_RESPONSE,
    "ParseError": Reason.INVALID_RESPONSE,
    "DownloadCancelledError": Reason.BODY_TOO_LARGE,
}
_LAST_RESORT: Final = (("timeout", Reason.TIMEOUT), ("tls", Reason.TLS), ("ssl", Reason.TLS), ("proxy", Reason.PROXY))


class Headers(Protocol):
    """Headers as any library has them."""

    def items(self) -> Iterable[tuple[object, object]]:
        """Names and values; a value may be a list."""


def classify(
    response: object,
    *,
    hosts: Sequence[str] = (),
    earlier: Sequence[str] = (),
    extracted: bool | None = None,
    refusal_status: frozenset[int] = REFUSAL_STATUS,
    usual_bytes: float | None = None,
) -> Classification:
    """What came of a response of requests, httpx, Scrapy, or anything that looks like one of theirs.

    `hosts` are the site's (none: a redirect to another host is not judged). `earlier` are the addresses that redirected
    to it, where the response does not say so itself. `extracted` says whether an expected value
    was found on the page, None when nothing was expected; `usual_bytes` how large its kind of page usually is. Takes
    about 0.1 ms a page, so call it where that does not matter, or report the facts and let the exporter do it.
    """
    from crawlhealth.classify import classify as judge  # noqa: PLC0415 - heavy, and not every crawler classifies
    from crawlhealth.model import Response  # noqa: PLC0415 - likewise

    urls = [*(earlier or _earlier(response)), str(_first(response, "url"))]
    headers: Headers = getattr(response, "headers", None) or {}
    return judge(
        Response(
            status=int(str(_first(response, "status_code", "status"))),
            url=urls[0],
            final_url=urls[-1],
            headers=plain_headers(headers),
            body=_bytes(_first(response, "content", "body"))[:_BODY],
            redirects=tuple(urls[1:]),
        ),
        hosts=hosts,
        refusal_status=refusal_status,
        extracted=extracted,
        usual_bytes=usual_bytes,
    )


def failure(error: BaseException) -> Classification:
    """What came of a request that raised `error` in requests, httpx, aiohttp, urllib3 or Scrapy."""
    from crawlhealth.classify import failure as judge  # noqa: PLC0415 - heavy, and not every crawler classifies

    return judge(reason_of(error), detail=type(error).__name__)


def reason_of(error: BaseException) -> Reason:
    """Why a request failed: the proxy, if it is among the causes, else by the deepest cause that says it."""
    chain = list(_causes(error))
    for one in sorted(chain, key=lambda one: _said(one) is Reason.PROXY)[::-1]:
        if reason := _said(one):
            return reason
        if isinstance(one, OSError) and one.errno == errno.ECONNRESET:
            return Reason.CONNECTION_RESET
    names = " ".join(kind.__name__.lower() for one in chain for kind in type(one).__mro__)
    return next((reason for word, reason in _LAST_RESORT if word in names), Reason.CONNECTION_FAILED)


def _said(error: BaseException) -> Reason | None:
    if type(error).__module__.startswith("OpenSSL"):  # its only name is Error
        return Reason.TLS
    return next((_BY_NAME[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _BY_NAME), None)


def _causes(error: BaseException) -> Iterable[BaseException]:
    """The error and what is inside it, outermost first: causes, contexts, and errors given as arguments."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < 50:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = [one.__cause__, one.__context__, getattr(one, "reason", None), *getattr(one, "reasons", ()), *one.args]
        parts = (getattr(part, "value", part) for part in inner)  # Twisted wraps errors in failures
        waiting += [part for part in parts if isinstance(part, BaseException)]


def _earlier(response: object) -> list[str]:
    """The addresses that redirected to that of a response, oldest first."""
    history = getattr(response, "history", None)
    if history:
        return [str(hop.url) for hop in history]
    meta = getattr(getattr(response, "request", None), "meta", None) or {}
    return [str(url) for url in meta.get("redirect_urls", ())]


def plain_headers(headers: Headers) -> dict[str, str]:
    """Headers of any library as classification wants them: lower-case names, repeated ones joined."""
    plain: dict[str, str] = {}
    for name, value in headers.items():
        values = value if isinstance(value, list | tuple) else [value]
        text = ", ".join(_latin(part) for part in values)
        key = _latin(name).lower()
        plain[key] = f"{plain[key]}, {text}" if key in plain else text
    return plain


def _latin(text: object) -> str:
    return text.decode("latin-1") if isinstance(text, bytes) else str(text)


def _bytes(body: object) -> bytes:
    if isinstance(body, str):
        return body.encode("utf-8", "replace")
    return bytes(body) if isinstance(body, bytes | bytearray | memoryview) else b""


def _first(response: object, *names: str) -> object:
    """The first of these that the response has."""
    for name in names:
        if (value := getattr(response, name, None)) is not None and not callable(value):
            return value
    raise TypeError(f"not a response: it has none of {', '.join(names)}")
