"""From a response to its outcome: the order in which markers, status, redirects and size are asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from crawlhealth.classify import redirects
from crawlhealth.classify.evidence import evidence
from crawlhealth.classify.marker import Act
from crawlhealth.classify.matcher import Found, extended, standard
from crawlhealth.classify.page import Page
from crawlhealth.config import Block
from crawlhealth.model import Classification, Evidence, Response
from crawlhealth.outcome import Outcome, Reason

COLLAPSE: Final = 0.5
"""A page without any expected value under this share of its usual size has collapsed."""

_SAID: Final = {
    int(reason.value[5:]): reason
    for reason in Reason
    if reason.value.startswith("http_") and reason.value[5:].isdigit()
}
_REFUSALS: Final = frozenset({401, 403, 406, 429, 451})
_GONE: Final = frozenset({404, 410})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One response and what was expected of it (see `classify`)."""

    response: Response
    hosts: Sequence[str]
    refusal_status: frozenset[int]
    extracted: bool | None
    usual_bytes: float | None
    expects_json: bool
    size: int | None = None
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An outcome, its reason, and what decided: a rule, or else a few words and the place they are about."""

    outcome: Outcome
    reason: Reason
    found: Found | None = None
    marker: str = ""
    where: str = ""
    detail: str = ""


def decide(question: Question) -> Classification:
    """The outcome of one response with its evidence."""
    response = question.response
    page = Page(response.body, response.headers)
    looked = (extended(question.blocks) if question.blocks else standard()).look(
        page,
        headers=response.headers,
        targets=redirects.targets(response, served=question.extracted is True),
        status=response.status,
        extracted=question.extracted,
    )
    found = looked.found
    answer = _by_marker(question, found) or _by_status(question, found) or _by_content(question, page, found)
    return Classification(
        outcome=answer.outcome,
        reason=answer.reason,
        evidence=evidence(
            response,
            page,
            answer.found,
            vendors=looked.vendors,
            marker=answer.marker,
            where=answer.where,
            detail=answer.detail,
        ),
    )


def _by_marker(question: Question, found: Sequence[Found]) -> Answer | None:
    """A vendor's challenge or block page, with any status; its page about a broken site unless the status refuses."""
    status = question.response.status
    for hit in found:
        act, reason = hit.rule.act, hit.rule.reason
        if hit.rule.outcome is not None:
            return Answer(outcome=hit.rule.outcome, reason=reason, found=hit)
        if act is Act.CHALLENGE:
            return Answer(outcome=Outcome.CHALLENGE, reason=reason, found=hit)
        if act is Act.BLOCK:
            outcome = Outcome.HARD_BLOCK if status >= 400 else Outcome.SOFT_BLOCK
            return Answer(outcome=outcome, reason=reason, found=hit)
        if act is Act.ORIGIN_ERROR:
            if status in question.refusal_status:
                return None
            reason = _SAID.get(status, Reason.HTTP_5XX) if status >= 500 else reason
            return Answer(outcome=Outcome.ERROR, reason=reason, found=hit)
    return None


def _by_status(question: Question, found: Sequence[Found]) -> Answer | None:
    """A status that says it all; None for one that leaves the content to be looked at."""
    status = question.response.status
    if status in question.refusal_status:
        reason = _SAID[status] if status in _REFUSALS else Reason.HTTP_REFUSED
        return _said(status, Outcome.HARD_BLOCK, reason, _first(found, Act.DENIAL))
    if not 200 <= status < 600:
        return _said(status, Outcome.ERROR, Reason.INVALID_RESPONSE)
    if status == 407:  # no site says so, only a proxy on the way
        return _said(status, Outcome.ERROR, Reason.PROXY)
    if status >= 500:
        return _said(status, Outcome.ERROR, _SAID.get(status, Reason.HTTP_5XX))
    if 300 <= status < 400:
        return Answer(outcome=Outcome.OK, reason=Reason.HTTP_3XX)
    return None


def _said(status: int, outcome: Outcome, reason: Reason, found: Found | None = None) -> Answer:
    return Answer(outcome=outcome, reason=reason, found=found, marker=f"status {status}", where="status")


def _first(found: Sequence[Found], *acts: Act) -> Found | None:
    return next((hit for hit in found if hit.rule.act in acts), None)


def _by_content(question: Question, page: Page, found: Sequence[Found]) -> Answer:
    """A page with 2xx or a 4xx that is no refusal: the content, or something in its place."""
    status = question.response.status
    if status >= 400:
        denial = _first(found, Act.DENIAL)
        if denial is not None and status not in _GONE:
            return Answer(outcome=Outcome.HARD_BLOCK, reason=denial.rule.reason, found=denial)
        reason = Reason.HTTP_4XX if status in _REFUSALS else _SAID.get(status, Reason.HTTP_4XX)
        return Answer(outcome=Outcome.OK, reason=reason)
    instead = None if question.extracted is True else _instead_of_content(question, page, found)
    return instead or Answer(outcome=Outcome.OK, reason=Reason.SERVED)


def _instead_of_content(question: Question, page: Page, found: Sequence[Found]) -> Answer | None:
    """A soft block: a 2xx that carries something else than what was asked for."""
    hit = _first(found, Act.NOT_CONTENT, Act.DENIAL)
    if hit is not None:
        return Answer(outcome=Outcome.SOFT_BLOCK, reason=hit.rule.reason, found=hit)
    reason = redirects.away(question.response, question.hosts)
    if reason is not None:
        return _soft(reason, reason.value, "redirect")
    if question.expects_json and page.kind == "html":
        return _soft(Reason.UNEXPECTED_HTML, "HTML where JSON was expected", "body")
    return _without_any_value(question, page) if question.extracted is False else None


def _without_any_value(question: Question, page: Page) -> Answer | None:
    """Values were expected and none was found: a gate, or a page that has shrunk; else it is the parser's matter."""
    gate = page.gate
    if gate is not None:
        return _soft(gate, f"{gate.value} without any expected value", "markup")
    size = len(question.response.body) if question.size is None else question.size
    usual = question.usual_bytes
    if usual is not None and size < usual * COLLAPSE:
        detail = f"{size} bytes, usually {usual:.0f}"
        return _soft(Reason.SIZE_COLLAPSE, "no expected value on a page under half its usual size", "size", detail)
    return None


def _soft(reason: Reason, marker: str, where: str, detail: str = "") -> Answer:
    return Answer(outcome=Outcome.SOFT_BLOCK, reason=reason, marker=marker, where=where, detail=detail)


def failed(reason: Reason, detail: str, status: int | None, final_url: str) -> Classification:
    """The outcome of a fetch that brought no usable response (see `failure`)."""
    reset = reason is Reason.CONNECTION_RESET
    return Classification(
        outcome=Outcome.HARD_BLOCK if reset else Outcome.ERROR,
        reason=reason,
        evidence=Evidence(status=status, final_url=final_url, marker=reason.value, where="fetch", detail=detail),
    )
