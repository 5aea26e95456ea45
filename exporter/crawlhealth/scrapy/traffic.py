"""From Scrapy's requests to reports: outcome or facts, time, size, route, retries, credits, and records."""

from __future__ import annotations

import logging
import time
import weakref
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from crawlhealth.client import Reporter, classify
from crawlhealth.client.judging import plain_headers, reason_of
from crawlhealth.model import Classification
from crawlhealth.outcome import Outcome, Reason
from crawlhealth.scrapy.options import Bodies, Naming, Options
from crawlhealth.scrapy.pages import Page, Pages

log = logging.getLogger(__name__)

_PRIVATE_HEADERS = frozenset({"set-cookie", "set-cookie2", "cookie", "authorization", "proxy-authorization"})
_SECONDS = "crawlhealth_seconds"
_OF_WHO_WAS_CALLED = frozenset({Reason.CONNECTION_REFUSED, Reason.DNS})
"""Reasons that are about whom Scrapy itself called: the proxy, if there is one."""


class Traffic:
    """Reports every request that went out, once. For the thread of the reactor."""

    def __init__(self, crawler: Crawler, options: Options, naming: Naming, reporter: Reporter) -> None:
        self._crawler = crawler
        self._options = options
        self._naming = naming
        self._reporter = reporter
        self._out: weakref.WeakSet[Request] = weakref.WeakSet()
        self._headers_at: weakref.WeakKeyDictionary[Request, float] = weakref.WeakKeyDictionary()
        self._nameless: set[str] = set()
        self.pages = Pages(options.required, self._report_page)

    def reached(self, request: Request) -> None:
        """A request goes out to the network."""
        self._out.add(request)

    def headers(self, request: Request) -> None:
        """The head of an answer has come."""
        self._headers_at[request] = time.monotonic()

    def downloaded(self, request: Request) -> None:
        """An answer is complete; redirects hand their time on to the request that follows them."""
        latency = request.meta.get("download_latency")
        if latency is not None:
            rest = time.monotonic() - self._headers_at.get(request, time.monotonic())
            request.meta[_SECONDS] = request.meta.get(_SECONDS, 0.0) + latency + rest

    def answered(self, request: Request, response: Response) -> None:
        """A request was answered, after the redirects that were followed and before anything is retried."""
        seconds = request.meta.pop(_SECONDS, None)
        if request not in self._out:
            return  # from a cache, or from another middleware
        self._out.discard(request)
        common = self._common(request)
        if common is None:
            return
        urls = _urls(request, response)
        facts = {**common, "seconds": seconds, "bytes": len(response.body), "status": response.status, "url": urls[0]}
        if len(urls) > 1:
            facts["final_url"] = urls[-1]
        judged = self._judge(request, response)
        if "dataloss" in response.flags:
            self._reporter.report(**{**common, "reason": "truncated_body"})
        elif judged is None or judged.outcome is Outcome.OK:
            self._wait_for_records(request, response, facts)
        elif self._options.bodies is Bodies.NONE:
            self._reporter.report(**{**facts, "outcome": judged.outcome, "reason": judged.reason})
        else:
            self._reporter.report(**facts, **_content(response))

    def failed(self, request: Request, error: Exception) -> None:
        """A request that went out brought no answer."""
        request.meta.pop(_SECONDS, None)
        if request in self._out:
            self._out.discard(request)
            if (common := self._common(request)) is not None:
                reason = reason_of(error)
                if request.meta.get("proxy") and reason in _OF_WHO_WAS_CALLED:
                    reason = Reason.PROXY
                self._reporter.report(**common, reason=reason, url=request.url)

    def _common(self, request: Request) -> dict[str, Any] | None:
        """What every report of a request has; None where it has no site or no route."""
        site, route = self._naming.site(request), self._naming.route(request)
        if site is None:
            self._count("without_site")
            return None
        if route is None:
            self._count("without_route")
            self._name_proxy(request)
            return None
        common = {
            "site": site,
            "route": route,
            "at": time.time(),
            "retries": 1 if request.meta.get("retry_times") else 0,
            "page_type": _page_type(request),
        }
        if credits := request.meta.get("crawlhealth_credits"):
            common["credits"] = credits
        return common

    def _judge(self, request: Request, response: Response) -> Classification | None:
        """What came of it as far as it can be told here; None where the exporter is to say that."""
        if self._options.bodies is Bodies.ALL:
            return None
        try:
            site = self._naming.site(request) or ""
            return classify(response, hosts=self._options.sites.get(site, ()), earlier=_urls(request, response)[:-1])
        except Exception:
            log.exception("cannot classify %s", response)
            return None

    def _wait_for_records(self, request: Request, response: Response, facts: dict[str, Any]) -> None:
        page_type = str(facts["page_type"])
        page = Page(
            facts=facts,
            page_type=page_type,
            expects_records=200 <= response.status < 300 and page_type in self._options.record_pages,
            body=weakref.ref(response),
        )
        self.pages.add(request, page)

    def _report_page(self, page: Page) -> None:
        facts: dict[str, Any] = {**page.facts, "records_valid": page.records_valid, "records_invalid": page.invalid}
        if page.missing:
            facts["fields_missing"] = sorted(page.missing)
        nothing = page.records_valid == 0 and not page.invalid
        response = page.body()
        bodies = self._options.bodies
        if response is not None and (bodies is Bodies.ALL or (bodies is Bodies.REFUSED and nothing)):
            facts |= _content(response)
        self._reporter.report(**facts)

    def _name_proxy(self, request: Request) -> None:
        proxy = str(request.meta.get("proxy", "")).rpartition("@")[2]
        if proxy not in self._nameless and len(self._nameless) < 100:
            self._nameless.add(proxy)
            log.warning("nothing is reported of requests through %s: name its route in CRAWLHEALTH_ROUTES", proxy)

    def _count(self, name: str) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"crawlhealth/{name}")


def _urls(request: Request, response: Response) -> list[str]:
    return [*map(str, request.meta.get("redirect_urls", ())), response.url]


def _page_type(request: Request) -> str:
    """As the meta says, or else the name of the callback."""
    said = request.meta.get("crawlhealth_page_type")
    if said is None:
        said = getattr(request.callback, "__name__", "") or "parse"
    return str(said)[:100]


def _content(response: Response) -> dict[str, Any]:
    """Headers and body, for the exporter to look at; no cookies."""
    headers = plain_headers(response.headers)
    return {
        "headers": {name: value for name, value in headers.items() if name not in _PRIVATE_HEADERS},
        "body": response.body,
    }
