"""The gate before every path: passwords, a rate, and headers, as the web configuration says."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import bcrypt
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crawlhealth.config import PushToken, Secret
from crawlhealth.traffic.tokens import granted
from crawlhealth.web.webfile import RateLimit, WebFile

REMEMBERED: Final = 100
"""So many right passwords are remembered, by a keyed hash: bcrypt takes as long as a scrape."""
MAX_WAITING: Final = 32
"""So many passwords wait to be checked; who comes then is told to come again."""
BCRYPT_BYTES: Final = 72
"""bcrypt, and what makes its hashes, reads no more of a password."""

DISPATCHES: Final = "/api/v1/dispatches"
"""What tenants may use."""
Tokens = Callable[[], Iterable[Secret | PushToken]]
"""The tokens that may post, now."""


class Passwords:
    """Checks passwords against bcrypt hashes, off the event loop and one at a time. For one event loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bcrypt")
        self._secret = os.urandom(32)
        self._right: OrderedDict[bytes, None] = OrderedDict()
        self._waiting = 0

    @property
    def busy(self) -> bool:
        """Whether too many wait already."""
        return self._waiting >= MAX_WAITING

    def remembered(self, user: str, password: bytes, users: Mapping[str, str]) -> bool:
        """Whether this was found right before, with the hash that the user still has."""
        known = self._key(user, password, users.get(user, ""))
        if known not in self._right:
            return False
        self._right.move_to_end(known)
        return True

    async def right(self, user: str, password: bytes, users: Mapping[str, str]) -> bool:
        """Whether it is the user's password. An unknown user takes as long as any."""
        hashed = users.get(user)
        against = max(users.values(), key=lambda each: each[4:6]) if hashed is None else hashed
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._pool, _matches, password, against)
        finally:
            self._waiting -= 1
        if hashed is None or not found:
            return False
        self._right[self._key(user, password, hashed)] = None
        if len(self._right) > REMEMBERED:
            self._right.popitem(last=False)
        return True

    def _key(self, user: str, password: bytes, hashed: str) -> bytes:
        parts = (user.encode(), hashed.encode(), password)
        text = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hashlib.blake2b(text, key=self._secret, digest_size=32).digest()


def _matches(password: bytes, hashed: str) -> bool:
    try:
        return bcrypt.checkpw(password[:BCRYPT_BYTES], hashed.encode())
    except ValueError:  # a NUL in a password that bcrypt refuses
        return False


class Rate:
    """A bucket of `burst` requests that one flows back into every `interval`."""

    def __init__(self) -> None:
        self._left, self._at, self._limit = 0.0, 0.0, RateLimit()

    def admits(self, limit: RateLimit, now: float) -> bool:
        """Whether one more request may pass at `now` (seconds of any clock)."""
        if not limit.interval:
            return True
        if limit != self._limit:
            self._limit, self._left, self._at = limit, float(limit.burst), now
        back = max(0.0, now - self._at) / limit.interval.total_seconds()
        self._left, self._at = min(float(limit.burst), self._left + back), now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Gate:
    """The application behind the web configuration that `settings` has now.

    Where users are configured, a request needs a user's password. A token that may post lets through what crawlers
    need: what is posted, and what they ask of the API; a header cannot carry both. A token of a tenant lets through to
    `DISPATCHES` alone.
    """

    def __init__(
        self, application: ASGIApp, settings: Callable[[], WebFile], tokens: Tokens, tenants: Tokens = tuple
    ) -> None:
        self._application = application
        self._settings = settings
        self._tokens = tokens
        self._tenants = tenants
        self._passwords = Passwords()
        self._rate = Rate()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        settings = self._settings()
        headers = settings.http_server_config.headers

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _put(MutableHeaders(scope=message), headers)
            await send(message)

        if scope["type"] == "http":
            answer = await self._refusal(scope, settings)
            await (answer or self._application)(scope, receive, send_with_headers if headers else send)

    async def _refusal(self, scope: Scope, settings: WebFile) -> Response | None:
        """Why a request does not pass; None when it does."""
        if not self._rate.admits(settings.rate_limit, time.monotonic()):
            return PlainTextResponse("too many requests\n", status_code=429, headers={"retry-after": "1"})
        users = settings.basic_auth_users
        if not users:
            return None
        header = Headers(scope=scope).get("authorization", "")
        given = _basic(header)
        if given is None:
            return None if self._borne(scope, header) else _unauthorised()
        if self._passwords.remembered(*given, users):
            return None
        if self._passwords.busy:
            return PlainTextResponse("busy checking passwords\n", status_code=503, headers={"retry-after": "1"})
        return None if await self._passwords.right(*given, users) else _unauthorised()

    def _borne(self, scope: Scope, header: str) -> bool:
        """Whether a request bears a token that lets it through."""
        if _crawlers(scope) and _bears_token(header, self._tokens()):
            return True
        return scope["path"] == DISPATCHES and _bears_token(header, self._tenants())


def _put(headers: MutableHeaders, wanted: Mapping[str, str]) -> None:
    """Set headers; a blank one is left out of the answer."""
    for name, value in wanted.items():
        if value:
            headers[name] = value
        else:
            del headers[name]


def _bears_token(header: str, tokens: Iterable[Secret | PushToken]) -> bool:
    """Whether an Authorization header bears one of the tokens; never where there are none."""
    known = list(tokens)
    return bool(known) and granted(header, known) is not None


def _crawlers(scope: Scope) -> bool:
    """Whether a request is one that crawlers make."""
    return scope["method"] in ("POST", "PUT") or scope["path"].startswith("/api/")


def basic_user(header: str) -> str | None:
    """The user that an Authorization header names; the gate lets none pass whose password is wrong."""
    given = _basic(header)
    return None if given is None else given[0]


def _basic(header: str) -> tuple[str, bytes] | None:
    """The user and password of an Authorization header; None without them."""
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(text.strip(), validate=True).partition(b":")
        return (user.decode(), password) if colon else None
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None


def _unauthorised() -> Response:
    headers = {"www-authenticate": 'Basic realm="crawlhealth", charset="UTF-8"'}
    return PlainTextResponse(
        "a user and password of the web configuration are needed\n", status_code=401, headers=headers
    )
