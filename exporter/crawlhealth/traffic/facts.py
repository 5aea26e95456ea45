"""The outcome of an item: as its crawler named it, or classified from the facts of its response."""

from __future__ import annotations

import codecs
import logging
from collections.abc import Mapping
from typing import Final

from crawlhealth.classify import classify, failure
from crawlhealth.config import Block, Site
from crawlhealth.model import Classification, Response
from crawlhealth.outcome import REFUSED, Outcome, Reason
from crawlhealth.traffic.observations import Item

log = logging.getLogger(__name__)

FAILURES: Final = frozenset(
    {
        Reason.CONNECTION_RESET, Reason.TIMEOUT, Reason.DNS, Reason.CONNECTION_REFUSED, Reason.CONNECTION_FAILED,
        Reason.TLS, Reason.PROXY, Reason.ADDRESS_REFUSED, Reason.TOO_MANY_REDIRECTS, Reason.INVALID_RESPONSE,
        Reason.TRUNCATED_BODY, Reason.BODY_TOO_LARGE, Reason.UNDECODABLE_BODY, Reason.PAGE_TOO_COMPLEX,
    }
)  # fmt: skip
"""Reasons that say enough without a response."""
_SERVED: Final = frozenset(
    {Reason.SERVED, Reason.HTTP_400, Reason.HTTP_404, Reason.HTTP_410, Reason.HTTP_4XX, Reason.HTTP_3XX}
)
_ERRORS: Final = FAILURES - {Reason.CONNECTION_RESET} | {
    Reason.HTTP_500, Reason.HTTP_502, Reason.HTTP_503, Reason.HTTP_504, Reason.HTTP_5XX, Reason.ORIGIN_ERROR,
}  # fmt: skip
_BY_STATUS: Final = {
    int(reason.value[5:]): reason
    for reason in Reason
    if reason.value.startswith("http_") and reason.value[5:].isdigit()
}


def named(item: Item, outcome: Outcome) -> Reason:
    """The reason of an item that has an outcome. Raises ValueError where its reason belongs to another outcome."""
    reason = item.reason
    if reason is None:
        reason = Reason.SERVED if outcome is Outcome.OK else Reason.CUSTOM
        said = _BY_STATUS.get(item.status or 0)
        return said if said is not None and _fits(outcome, said) else reason
    if not _fits(outcome, reason):
        raise ValueError(f"the reason {reason.value} does not go with the outcome {outcome.value}")
    return reason


def _fits(outcome: Outcome, reason: Reason) -> bool:
    if reason is Reason.CUSTOM:
        return outcome is not Outcome.OK
    if reason in _SERVED:
        return outcome is Outcome.OK
    return outcome is Outcome.ERROR if reason in _ERRORS else outcome in REFUSED


def classified(
    item: Item, site: Site, page: bytes, *, usual_bytes: float | None, blocks: tuple[Block, ...] = ()
) -> Classification:
    """What came of the request of an item without an outcome. Raises ValueError where it has no facts.

    `page` is its body, `usual_bytes` the usual size of such pages, None while unknown; `blocks` are the user's own
    markers. A refusal that did not come whole is a refusal all the same; another answer that failed is that failure.
    """
    failed = None
    if item.reason in FAILURES:
        failed = failure(item.reason, status=item.status, final_url=item.final_url or item.url or "")
    if item.status is None:
        if failed is not None:
            return failed
        raise ValueError("needs an outcome, or a status to classify, or the reason of a request that failed")
    url = item.url or item.final_url or ""
    response = Response(
        status=item.status,
        url=url,
        final_url=item.final_url or url,
        headers=_headers(item.headers or {}),
        body=page,
    )
    try:
        judged = classify(
            response,
            hosts=site.hosts,
            refusal_status=site.refusal_status,
            extracted=item.found,
            usual_bytes=usual_bytes,
            size=item.bytes // item.count or None,
            blocks=blocks,
        )
    except Exception:
        log.exception("cannot classify a page that was pushed")
        raise ValueError("cannot be classified: the exporter's log says why") from None
    return judged if failed is None or judged.outcome in REFUSED else failed


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    """Lower-case names; those that differ in case only are joined."""
    headers: dict[str, str] = {}
    for name, value in given.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def body(item: Item) -> bytes:
    """The body of an item as bytes; text gets a mark, so that it is read as UTF-8 whatever the page says of itself."""
    if item.body_base64 is not None:
        return item.body_base64
    return codecs.BOM_UTF8 + item.body.encode() if item.body else b""
