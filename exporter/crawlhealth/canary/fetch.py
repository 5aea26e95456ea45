"""Fetch: a canary's page through a route, within the bounds that a hostile server would like to break."""

from __future__ import annotations

import email.utils
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from typing import Final

import requests
from requests.cookies import RequestsCookieJar

from crawlhealth.canary.addresses import Resolver
from crawlhealth.canary.answer import Answer
from crawlhealth.canary.attempt import Attempt, Room
from crawlhealth.canary.connect import Connector, Contexts
from crawlhealth.canary.failure import Failure
from crawlhealth.canary.hop import BoundedAdapter, read_body
from crawlhealth.canary.proxies import parse_proxy
from crawlhealth.canary.request import first_request, keep_cookies, redirected, set_cookies, without_user_info
from crawlhealth.canary.wire import Watch
from crawlhealth.config import Canary, Fetching, Route
from crawlhealth.model import Phase, Response
from crawlhealth.outcome import Reason

LARGE_BODIES: Final = 8
"""How many large bodies are held at once; further ones wait, within their own timeout."""
LONGEST_RETRY_AFTER: Final = 86_400.0
"""Seconds that a server may send a canary away for."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What a fetch met on its way, complete or not. Durations in seconds; `phases` has those that were begun."""

    seconds: float
    phases: Mapping[Phase, float]
    redirects: tuple[str, ...] = ()
    address: str = ""
    not_after: Mapping[str, float] = field(default_factory=dict)
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A complete answer."""

    exchange: Exchange
    response: Response


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchFailed:
    """No complete answer: why, and what of one came all the same (None when not even its head did)."""

    exchange: Exchange
    reason: Reason
    detail: str
    response: Response | None = None


class RouteSession(requests.Session):
    """The session of one route: nothing from the environment, no cookies kept, no redirect followed by itself."""

    def __init__(self, adapter: BoundedAdapter) -> None:
        super().__init__()
        self.trust_env = False
        self.adapters.clear()
        self.mount("http://", adapter)
        self.mount("https://", adapter)

    def get_redirect_target(self, _response: requests.Response) -> None:
        """None: the fetch follows redirects, one by one, under its own rules."""
        return


class Fetcher:
    """Fetches canaries; thread-safe. Keeps TLS settings, a session for each route, and requests made ready."""

    def __init__(self, settings: Fetching, *, resolver: Resolver | None = None) -> None:
        self._settings = settings
        self._contexts = Contexts(settings.ca_file)
        self._resolver = resolver or Resolver()
        self._room = Room(LARGE_BODIES)
        self._sessions: dict[str, tuple[Route, RouteSession]] = {}
        self._requests: dict[tuple[str, str, str], tuple[Canary, Route, requests.PreparedRequest]] = {}

    def fetch(self, canary: Canary, route: Route, *, now: float) -> Fetched | FetchFailed:
        """The canary's page through the route, within its timeout. Never raises for what a server does.

        `now` (unix seconds) tells what a Retry-After date means.
        """
        with self.fetching(canary, route, now=now) as fetched:
            return fetched

    @contextmanager
    def fetching(self, canary: Canary, route: Route, *, now: float) -> Iterator[Fetched | FetchFailed]:
        """The same, for as long as the page is in use: only so many large ones are in memory at once."""
        attempt = Attempt(watch=Watch(canary.timeout_on(route.name).total_seconds()), room=self._room)
        try:
            yield self._fetched(canary, route, attempt, now)
        finally:
            if attempt.large:
                self._room.leave()

    def _fetched(self, canary: Canary, route: Route, attempt: Attempt, now: float) -> Fetched | FetchFailed:
        redirects: list[str] = []
        response: Response | None = None
        try:
            response, failure = self._follow(canary, route, attempt, redirects)
        except Failure as error:
            failure = error
        finally:
            attempt.hang_up()
        attempt.watch.enter(None)
        exchange = Exchange(
            seconds=attempt.watch.seconds,
            phases=attempt.watch.phases,
            redirects=tuple(redirects),
            address=attempt.address,
            not_after=attempt.not_after,
            retry_after=None if response is None else retry_after(response, now),
        )
        if failure is not None:
            return FetchFailed(exchange=exchange, reason=failure.reason, detail=failure.detail, response=response)
        assert response is not None, "no answer and no failure"
        return Fetched(exchange=exchange, response=response)

    def _session(self, route: Route) -> RouteSession:
        known = self._sessions.get(route.name)
        if known is None or known[0] is not route:
            proxy = None if route.proxy is None else parse_proxy(route.proxy.reveal())
            connector = Connector(contexts=self._contexts, resolver=self._resolver, proxy=proxy)
            known = self._sessions[route.name] = (route, RouteSession(BoundedAdapter(connector, self._settings)))
        return known[1]

    def _first_request(self, canary: Canary, route: Route) -> requests.PreparedRequest:
        key = (canary.site, canary.name, route.name)
        known = self._requests.get(key)
        if known is None or known[0] is not canary or known[1] is not route:
            known = self._requests[key] = (canary, route, first_request(canary, route, self._settings.user_agent))
        return known[2]

    def _follow(
        self, canary: Canary, route: Route, attempt: Attempt, redirects: list[str]
    ) -> tuple[Response, Failure | None]:
        """The last answer of a chain of redirects, and why it is not whole; Failure when there is none."""
        session = self._session(route)
        request = self._first_request(canary, route)
        cookies: RequestsCookieJar | None = None
        while True:
            answer = session.send(request, stream=True, allow_redirects=False, proxies={}, timeout=attempt)  # type: ignore[arg-type]  # the adapter's
            location = answer.headers.get("location") if answer.status_code in _REDIRECTS else None
            if location is None:
                body, failure = read_body(answer, attempt, self._settings.max_body_bytes)
                return _response(answer, canary, redirects, body), failure
            if len(redirects) >= self._settings.max_redirects:
                raise Failure(Reason.TOO_MANY_REDIRECTS, f"more than {self._settings.max_redirects} redirects")
            cookies = RequestsCookieJar() if cookies is None else cookies
            keep_cookies(request, answer, cookies)
            request = redirected(request, answer.status_code, location, canary, route)
            set_cookies(request, canary, route, cookies)
            redirects.append(request.url or "")


def retry_after(response: Response, now: float) -> float | None:
    """Seconds that an error answer asks to stay away for, at most a day; None when it does not ask."""
    written = response.headers.get("retry-after", "").strip()
    if response.status < 400 or not written:
        return None
    if written.isascii() and written.isdigit():
        return min(float(written.lstrip("0")[:9] or 0), LONGEST_RETRY_AFTER)
    try:
        moment = email.utils.parsedate_to_datetime(written[:64])
        if moment.tzinfo is None:  # HTTP knows but one time zone
            moment = moment.replace(tzinfo=UTC)
        seconds = moment.timestamp() - now
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(0.0, seconds), LONGEST_RETRY_AFTER)


def _response(answer: requests.Response, canary: Canary, redirects: list[str], body: bytes) -> Response:
    url, _ = without_user_info(canary.url)
    assert isinstance(answer.raw, Answer), "an answer of the bounded adapter"
    return Response(
        status=answer.status_code,
        url=url,
        final_url=redirects[-1] if redirects else url,
        headers=answer.raw.joined,
        body=body,
        redirects=tuple(redirects),
    )
