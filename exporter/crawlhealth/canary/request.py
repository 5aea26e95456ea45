"""The requests of a fetch: the first as configured, the next as redirects ask; secrets go only where they belong."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from http.client import HTTPMessage
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import requests
from requests.cookies import MockRequest, MockResponse, RequestsCookieJar, create_cookie

from crawlhealth.canary.answer import Answer
from crawlhealth.canary.decode import ACCEPT_ENCODING
from crawlhealth.canary.failure import Failure
from crawlhealth.canary.hop import DEFAULT_PORTS
from crawlhealth.config import Canary, Route, Secret
from crawlhealth.outcome import Reason

_ACCEPT: Final = "text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8"
_LONGEST_URL: Final = 8_192


def first_request(canary: Canary, route: Route, user_agent: str) -> requests.PreparedRequest:
    """The request as configured. What the canary sets wins over the route, and both over what is usual."""
    url, authorization = without_user_info(canary.url)
    headers = {"User-Agent": user_agent, "Accept": _ACCEPT, "Accept-Encoding": ACCEPT_ENCODING, "Connection": "close"}
    known = {name.lower(): name for name in headers}
    if authorization is not None:
        headers["Authorization"] = authorization
    for name, value in (*_plain(route.headers), *_plain(canary.headers)):
        headers.pop(known.get(name.lower(), ""), None)
        known[name.lower()] = name
        headers[name] = value
    cookies = _own_cookies(canary, route) if canary.cookies else {}
    if cookies:
        headers.pop(known.get("cookie", ""), None)  # it is among them
    request = requests.PreparedRequest()
    body = None if canary.body is None else canary.body.encode()
    try:
        request.prepare(canary.method, url, headers, data=body, cookies=cookies or None)
    except (requests.RequestException, ValueError):
        raise Failure(Reason.INVALID_RESPONSE, "the canary's address or headers are not valid HTTP") from None
    return request


def redirected(
    before: requests.PreparedRequest, status: int, location: str, canary: Canary, route: Route
) -> requests.PreparedRequest:
    """The request that a redirect asks for. Raises Failure for a target that is no address of the web.

    Another origin gets neither credentials nor cookies nor any header whose value is a secret.
    """
    try:
        target = urljoin(before.url or "", location.encode("latin-1", "replace").decode("utf-8", "replace"))
        parts = urlsplit(target)
        url, _ = without_user_info(urlunsplit(parts._replace(fragment="")))
        if parts.scheme not in DEFAULT_PORTS:
            raise Failure(Reason.ADDRESS_REFUSED, f"a redirect to a {parts.scheme[:20]!r} address")
        if not parts.hostname or len(url) > _LONGEST_URL:
            raise ValueError
        request = before.copy()
        request.prepare_url(url, None)
    except (requests.RequestException, ValueError):
        raise Failure(Reason.INVALID_RESPONSE, "a redirect to something that is not an address") from None
    if (status == 303 and before.method != "HEAD") or (status in (301, 302) and before.method == "POST"):
        request.method = "GET"
        request.body = None
        for name in ("Content-Length", "Content-Type", "Transfer-Encoding"):
            request.headers.pop(name, None)
    if not _same_origin(before.url or "", request.url or ""):
        for name in ("Authorization", "Cookie", "Host"):
            request.headers.pop(name, None)
        for name, value in (*route.headers.items(), *canary.headers.items()):
            if isinstance(value, Secret):
                request.headers.pop(name, None)
    return request


def _plain(values: Mapping[str, str | Secret]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        yield name, value.reveal() if isinstance(value, Secret) else value


def keep_cookies(request: requests.PreparedRequest, answer: requests.Response, jar: RequestsCookieJar) -> None:
    """Take the cookies that an answer sets into the jar, as far as its origin may set them."""
    message = HTTPMessage()
    raw = answer.raw
    assert isinstance(raw, Answer), "an answer of the bounded adapter"
    for name, value in raw.headers:
        if name == "set-cookie":
            message["Set-Cookie"] = value
    if message:
        jar.extract_cookies(MockResponse(message), MockRequest(request))  # type: ignore[arg-type]  # requests' stand-ins


def set_cookies(request: requests.PreparedRequest, canary: Canary, route: Route, jar: RequestsCookieJar) -> None:
    """The cookies of a redirected request: what servers set on the way, and the configured ones while at the origin."""
    own = _own_cookies(canary, route) if "Cookie" in request.headers else {}
    request.headers.pop("Cookie", None)
    if not own and not len(jar):
        return
    cookies = jar.copy()
    host = urlsplit(request.url or "").hostname or ""
    for name, value in own.items():
        if name not in cookies.keys():  # noqa: SIM118 - `in jar` compares cookies, not names
            cookies.set_cookie(create_cookie(name, value, domain=host))  # type: ignore[no-untyped-call]  # requests has none
    request.prepare_cookies(cookies)


def _own_cookies(canary: Canary, route: Route) -> dict[str, str]:
    """The configured cookies by name: those that a Cookie header writes, and the canary's, which win."""
    written = ""
    for name, value in (*_plain(route.headers), *_plain(canary.headers)):
        if name.lower() == "cookie":
            written = value
    pairs = (pair.strip().partition("=") for pair in written.split(";"))
    return {name: value for name, _, value in pairs if name} | dict(_plain(canary.cookies))


def without_user_info(url: str) -> tuple[str, str | None]:
    """A URL without user and password, and the Authorization that they make."""
    parts = urlsplit(url)
    user_info, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = user_info.partition(":")
    token = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode("ascii")
    return urlunsplit(parts._replace(netloc=host)), f"Basic {token}"


def _same_origin(before: str, after: str) -> bool:
    """Whether a redirect stays on its origin; from http to https of the same host on usual ports it does."""
    old, new = urlsplit(before), urlsplit(after)
    if old.hostname != new.hostname:
        return False
    ports = [parts.port or DEFAULT_PORTS[parts.scheme] for parts in (old, new)]
    if (old.scheme, new.scheme) == ("http", "https") and ports == [80, 443]:
        return True
    return old.scheme == new.scheme and ports[0] == ports[1]
