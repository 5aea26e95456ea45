"""One run of a canary: fetched through its routes, read, classified, and its values held against one another."""

from __future__ import annotations

import dataclasses
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from crawlhealth import classify
from crawlhealth.canary.arrival import Arrival
from crawlhealth.canary.extract import Extractor, TooComplex
from crawlhealth.canary.fetch import Fetched, Fetcher, FetchFailed
from crawlhealth.canary.proof import found
from crawlhealth.canary.structures import Structures, proving
from crawlhealth.checks import agree
from crawlhealth.config import Canary, Config, Route, Site
from crawlhealth.model import CanaryRun, Classification, Response, ValueResult
from crawlhealth.outcome import REFUSED, Outcome, Reason

SIZES_KEPT: Final = 20
"""How many of the last ok bodies make a page's usual size."""

SizesKey = tuple[str, str, str]
"""Site, canary, route."""


class Sizes:
    """The sizes of each canary's last ok bodies, by route. Thread-safe."""

    def __init__(self, known: Mapping[SizesKey, Iterable[int]]) -> None:
        self._lock = threading.Lock()
        self._known = {key: deque(sizes, SIZES_KEPT) for key, sizes in known.items()}

    def usual(self, key: SizesKey) -> float | None:
        """The median, None while nothing is known."""
        with self._lock:
            sizes = self._known.get(key)
            return statistics.median(sizes) if sizes else None

    def add(self, key: SizesKey, size: int) -> None:
        """Note the size of an ok body."""
        with self._lock:
            self._known.setdefault(key, deque(maxlen=SIZES_KEPT)).append(size)

    def keep(self, keys: Iterable[SizesKey]) -> None:
        """Forget all others."""
        wanted = set(keys)
        with self._lock:
            for key in [key for key in self._known if key not in wanted]:
                del self._known[key]


class Runner:
    """Runs canaries of one configuration. Thread-safe; what it is made of belongs to whoever made it."""

    def __init__(
        self,
        config: Config,
        *,
        fetcher: Fetcher,
        extractor: Extractor,
        sizes: Sizes,
        structures: Structures | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._fetcher = fetcher
        self._extractor = extractor
        self._sizes = sizes
        self._structures = Structures({}) if structures is None else structures
        self._clock = clock

    def run(self, canary: Canary, routes: tuple[str, ...]) -> tuple[CanaryRun, ...]:
        """Fetch a canary through routes, together when there are several, and judge what came.

        Nothing for a site or route that the configuration does not have.
        """
        site = self._config.sites.get(canary.site)
        ways = [self._config.routes[name] for name in routes if name in self._config.routes]
        if site is None or len(ways) < len(routes):
            return ()  # it left the configuration between its start and now
        if len(ways) == 1:
            return (self._run_one(canary, site, ways[0]),)
        with ThreadPoolExecutor(min(len(ways), site.max_concurrency), thread_name_prefix="together") as threads:
            runs = tuple(threads.map(lambda route: self._run_one(canary, site, route), ways))
        return agreed(canary, runs)

    def take(self, canary: Canary, arrival: Arrival) -> CanaryRun | None:
        """Judge what the user's own crawler got of a canary; None when its site has left the configuration."""
        site = self._config.sites.get(canary.site)
        if site is None:
            return None
        run = self._judged(canary, site, arrival.route, arrival.fetched, arrival.at)
        return dataclasses.replace(run, seconds=arrival.seconds)

    def _run_one(self, canary: Canary, site: Site, route: Route) -> CanaryRun:
        now = self._clock()
        with self._fetcher.fetching(canary, route, now=now) as fetched:
            return self._judged(canary, site, route.name, fetched, now)

    def _judged(self, canary: Canary, site: Site, route: str, fetched: Fetched | FetchFailed, now: float) -> CanaryRun:
        key = (site.name, canary.name, route)
        values: tuple[ValueResult, ...] = ()
        body = b"" if fetched.response is None else fetched.response.body
        if isinstance(fetched, FetchFailed):
            classification = self._failed(fetched, canary, site)
        else:
            classification, values = self._read(fetched.response, canary, site, key)
            if classification.reason is Reason.SERVED:  # a 404 or an unfollowed redirect is ok, and no page of content
                self._sizes.add(key, len(body))
                values = self._structures.adopt(key, canary.expect, values, now)
        exchange = fetched.exchange
        return CanaryRun(
            site=site.name,
            canary=canary.name,
            route=route,
            at=now,
            classification=classification,
            seconds=exchange.seconds,
            bytes=len(body),
            phases=exchange.phases,
            values=values,
            not_after=exchange.not_after,
            retry_after=exchange.retry_after,
            redirects=exchange.redirects,
            address=exchange.address,
            page_type=canary.page_type,
        )

    def _read(
        self, response: Response, canary: Canary, site: Site, key: SizesKey
    ) -> tuple[Classification, tuple[ValueResult, ...]]:
        values: tuple[ValueResult, ...] = ()
        usual = self._sizes.usual(key)
        readable = response.status not in site.refusal_status and response.status < 500
        if canary.expect and readable and canary.method != "HEAD":
            content_type = response.headers.get("content-type", "")
            try:
                values = self._extractor.extract("\0".join(key), response.body, content_type, canary.expect)
            except TooComplex as error:
                classification = self._classify(response, canary, site, None, usual)
                if classification.outcome not in REFUSED:
                    classification = _unread(response, str(error))
                return classification, ()
        values = self._structures.compare(key, canary.expect, values)
        proof = found(canary.expect, proving(canary.expect, values))
        classification = self._classify(response, canary, site, proof, usual)
        return classification, values if classification.outcome is Outcome.OK else ()

    def _failed(self, failed: FetchFailed, canary: Canary, site: Site) -> Classification:
        """What a failed fetch means. A refusal that does not come whole is a refusal all the same."""
        response = failed.response
        if response is not None:
            classification = self._classify(response, canary, site, None, None)
            if classification.outcome in REFUSED:
                return classification
        return classify.failure(
            failed.reason,
            detail=failed.detail,
            status=None if response is None else response.status,
            final_url=failed.exchange.redirects[-1] if failed.exchange.redirects else "",
        )

    def _classify(
        self, response: Response, canary: Canary, site: Site, extracted: bool | None, usual: float | None
    ) -> Classification:
        return classify.classify(
            response,
            hosts=site.hosts,
            refusal_status=site.refusal_status,
            extracted=extracted,
            usual_bytes=None if canary.method == "HEAD" else usual,
            expects_json=any(spec.selector.kind == "jmespath" for spec in canary.expect),
            blocks=self._config.blocks,
        )


def agreed(canary: Canary, runs: tuple[CanaryRun, ...]) -> tuple[CanaryRun, ...]:
    """Runs of one moment with their `same_on` values held against one another; runs that are not ok take no part."""
    for spec in canary.expect:
        if not spec.same_on:
            continue
        results = {
            run.route: value
            for run in runs
            if run.ok and run.route in spec.same_on
            for value in run.values
            if value.name == spec.name
        }
        judged = agree(results)
        runs = tuple(
            dataclasses.replace(
                run,
                values=tuple(
                    judged.get(run.route, value) if value.name == spec.name else value for value in run.values
                ),
            )
            if run.route in judged
            else run
            for run in runs
        )
    return runs


def _unread(response: Response, detail: str) -> Classification:
    return classify.failure(
        Reason.PAGE_TOO_COMPLEX, detail=detail, status=response.status, final_url=response.final_url
    )
