"""Arrival: what the user's own crawler or browser got of a canary, as it sends it, checked strictly."""

from __future__ import annotations

import binascii
import math
from base64 import b64decode
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec

from crawlhealth.canary.fetch import Exchange, Fetched, FetchFailed
from crawlhealth.canary.request import without_user_info
from crawlhealth.config import DIRECT, Canary, Fetching
from crawlhealth.model import Response
from crawlhealth.outcome import Reason

FUTURE_SECONDS: Final = 60.0
"""How far ahead of our clock another one may be."""
PAST_SECONDS: Final = 86_400.0
"""How old an arrival may be."""
LONGEST_SECONDS: Final = 86_400.0
FAILURES: Final = frozenset(
    {
        Reason.BODY_TOO_LARGE,
        Reason.CONNECTION_FAILED,
        Reason.CONNECTION_REFUSED,
        Reason.CONNECTION_RESET,
        Reason.DNS,
        Reason.INVALID_RESPONSE,
        Reason.PROXY,
        Reason.TIMEOUT,
        Reason.TLS,
        Reason.TOO_MANY_REDIRECTS,
        Reason.TRUNCATED_BODY,
        Reason.UNDECODABLE_BODY,
    }
)
"""What may have kept an answer from coming."""

_Url = Annotated[str, msgspec.Meta(max_length=8_192)]


class _Sent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The wire format. `body` is text, `body_base64` bytes; both without their content coding."""

    status: Annotated[int, msgspec.Meta(ge=100, le=999)] | None = None
    error: Reason | None = None
    route: str | None = None
    at: str | float | None = None
    seconds: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_SECONDS)] | None = None
    headers: dict[str, str | list[str]] | list[tuple[str, str]] = {}
    redirects: Annotated[list[_Url], msgspec.Meta(max_length=50)] = []
    final_url: _Url | None = None
    body: str | None = None
    body_base64: str | None = None


_decode: Final = msgspec.json.Decoder(_Sent).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One answer, or failure, as if a fetch through `route` had begun at `at`; `dated` when the sender said so.

    `seconds` is how long it took, None where nobody says.
    """

    route: str
    at: float
    dated: bool
    seconds: float | None
    fetched: Fetched | FetchFailed


def read_arrival(data: bytes, canary: Canary, fetching: Fetching, *, now: float) -> Arrival:
    """The arrival that a request's JSON body holds. Raises ValueError, saying what is wrong and what to send."""
    try:
        sent = _decode(data)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise ValueError(f"not an answer as it is sent: {str(error)[:300]}") from None
    if (sent.status is None) == (sent.error is None):
        raise ValueError("needs status, or error where no answer came: send one of them")
    if sent.error is not None and sent.error not in FAILURES:
        raise ValueError(f"error is {sent.error.value}: send one of {', '.join(sorted(FAILURES))}")
    exchange = Exchange(
        seconds=sent.seconds or 0.0,
        phases={},
        redirects=tuple(_checked(url, "redirects") for url in sent.redirects),
    )
    return Arrival(
        route=_route(sent.route, canary),
        at=now if sent.at is None else _time(sent.at, now),
        dated=sent.at is not None,
        seconds=sent.seconds,
        fetched=_fetched(sent, exchange, canary, fetching.max_body_bytes),
    )


def _fetched(sent: _Sent, exchange: Exchange, canary: Canary, most: int) -> Fetched | FetchFailed:
    if sent.error is not None:
        return FetchFailed(exchange=exchange, reason=sent.error, detail="as the crawler reports")
    assert sent.status is not None
    headers = _headers(sent)
    body = _body(sent)
    response = Response(
        status=sent.status,
        url=canary.url,
        final_url=_checked(sent.final_url, "final_url") if sent.final_url else canary.url,
        headers=headers,
        body=body[:most],
        redirects=exchange.redirects,
    )
    if len(body) > most:
        detail = f"more than {most} bytes, decoded"
        return FetchFailed(exchange=exchange, reason=Reason.BODY_TOO_LARGE, detail=detail, response=response)
    return Fetched(exchange=exchange, response=response)


def _headers(sent: _Sent) -> dict[str, str]:
    """Lower-case names, repeated ones joined. A text body was decoded already: its charset is ours from then on."""
    pairs: list[tuple[str, str]] = []
    if isinstance(sent.headers, dict):
        for name, value in sent.headers.items():
            pairs += [(name, one) for one in ([value] if isinstance(value, str) else value)]
    else:
        pairs += sent.headers
    joined: dict[str, str] = {}
    for name, value in pairs:
        key = name.strip().lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    if sent.body is not None:
        kind = joined.get("content-type", "").partition(";")[0].strip() or "text/html"
        joined["content-type"] = f"{kind}; charset=utf-8"
    return joined


def _body(sent: _Sent) -> bytes:
    if sent.body is not None and sent.body_base64 is not None:
        raise ValueError("has body and body_base64: send one of them")
    if sent.body_base64 is not None:
        try:
            return b64decode(sent.body_base64, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("body_base64 is not base64") from None
    return (sent.body or "").encode("utf-8", "replace")


def _route(route: str | None, canary: Canary) -> str:
    if route is None:
        if DIRECT not in canary.routes and len(canary.routes) > 1:
            raise ValueError(f"needs route: send one of {', '.join(canary.routes)}")
        return DIRECT if DIRECT in canary.routes else canary.routes[0]
    if route not in canary.routes:
        raise ValueError(f"route {route[:100]!r} is none of this canary's: send one of {', '.join(canary.routes)}")
    return route


def _time(value: str | float, now: float) -> float:
    if isinstance(value, str):
        example = "send it like 2026-11-30T12:00:00Z, or in unix seconds"
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"at is not a time: {example}") from None
        if moment.tzinfo is None:
            raise ValueError(f"at has no time zone: {example}")
        value = moment.timestamp()
    if not math.isfinite(value) or value > now + FUTURE_SECONDS:
        raise ValueError("at is in the future: set the clock")
    if value < now - PAST_SECONDS:
        raise ValueError("at is more than a day ago")
    return value


def _checked(url: str, key: str) -> str:
    """A URL without user name and password."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or True)
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"{key} has what is not an http or https URL")
    return without_user_info(url)[0]
