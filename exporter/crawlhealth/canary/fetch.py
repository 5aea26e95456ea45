"""Fetch: a canary's page through a route, within the bounds that a hostile server would like to break."""

from __future__ import annotations

import email.utils
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import requests

from crawlhealth.canary.addresses import Resolver
from crawlhealth.canary.connect import Connector, Contexts, Trail
from crawlhealth.canary.failure import Failure
from crawlhealth.canary.hop import BoundedAdapter, OneHop
from crawlhealth.canary.proxies import parse_proxy
from crawlhealth.canary.request import first_request, redirected, set_cookies, without_user_info
from crawlhealth.canary.wire import Watch
from crawlhealth.config import Canary, Fetching, Route
from crawlhealth.model import Phase, Response
from crawlhealth.outcome import Reason

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


class Fetcher:
    """Fetches canaries; thread-safe, and without state but TLS settings and running name lookups."""

    def __init__(self, settings: Fetching, *, resolver: Resolver | None = None) -> None:
        self._settings = settings
        self._contexts = Contexts(settings.ca_file)
        self._resolver = resolver or Resolver()
        self._lock = threading.Lock()
        self._connectors: dict[str, tuple[Route, Connector]] = {}

    def fetch(self, canary: Canary, route: Route, *, now: float) -> Fetched | FetchFailed:
        """The canary's page through the route, within its timeout. Never raises for what a server does.

        `now` (unix seconds) tells what a Retry-After date means.
        """
        watch = Watch(canary.timeout.total_seconds())
        trail = Trail()
        redirects: list[str] = []
        response: Response | None = None
        failure: Failure | None = None
        try:
            connector = self._connector(route)
            adapter = BoundedAdapter(connector=connector, settings=self._settings, watch=watch, trail=trail)
            try:
                with OneHop(adapter) as session:
                    response, failure = self._follow(canary, route, session, adapter, redirects)
            finally:
                adapter.close()
        except Failure as error:
            failure = error
        watch.enter(None)
        exchange = Exchange(
            seconds=watch.seconds,
            phases=watch.phases,
            redirects=tuple(redirects),
            address=trail.address,
            not_after=trail.not_after,
            retry_after=None if response is None else retry_after(response, now),
        )
        if response is not None and failure is None:
            return Fetched(exchange=exchange, response=response)
        assert failure is not None, "no answer and no failure"
        return FetchFailed(exchange=exchange, reason=failure.reason, detail=failure.detail, response=response)

    def _connector(self, route: Route) -> Connector:
        with self._lock:
            known = self._connectors.get(route.name)
        if known is None or known[0] is not route:
            proxy = None if route.proxy is None else parse_proxy(route.proxy.reveal())
            known = (route, Connector(contexts=self._contexts, resolver=self._resolver, proxy=proxy))
            with self._lock:
                self._connectors[route.name] = known
        return known[1]

    def _follow(
        self, canary: Canary, route: Route, session: OneHop, adapter: BoundedAdapter, redirects: list[str]
    ) -> tuple[Response, Failure | None]:
        """The last answer of a chain of redirects, and why it is not whole; Failure when there is none."""
        request = first_request(canary, route, self._settings.user_agent)
        while True:
            answer = session.send(request, stream=True, allow_redirects=False)
            location = answer.headers.get("location") if answer.status_code in _REDIRECTS else None
            if location is None:
                body, failure = adapter.read_body(answer)
                return _response(answer, canary, redirects, body), failure
            if len(redirects) >= self._settings.max_redirects:
                raise Failure(Reason.TOO_MANY_REDIRECTS, f"more than {self._settings.max_redirects} redirects")
            request = redirected(request, answer.status_code, location, canary, route)
            set_cookies(request, canary, session.cookies)
            redirects.append(request.url or "")


def retry_after(response: Response, now: float) -> float | None:
    """Seconds that an error answer asks to stay away for, at most a day; None when it does not ask."""
    written = response.headers.get("retry-after", "").strip()
    if response.status < 400 or not written:
        return None
    if written.isascii() and written.isdigit():
        return min(float(written[:9]), LONGEST_RETRY_AFTER)
    try:
        moment = email.utils.parsedate_to_datetime(written[:64]).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(0.0, moment - now), LONGEST_RETRY_AFTER)


def _response(answer: requests.Response, canary: Canary, redirects: list[str], body: bytes) -> Response:
    headers: dict[str, str] = {}
    for name, value in answer.raw.headers.items():
        low = name.lower()
        headers[low] = f"{headers[low]}, {value}" if low in headers else value
    url, _ = without_user_info(canary.url)
    return Response(
        status=answer.status_code,
        url=url,
        final_url=redirects[-1] if redirects else url,
        headers=headers,
        body=body,
        redirects=tuple(redirects),
    )
