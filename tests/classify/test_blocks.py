"""Markers of the user's own: `blocks:` of the configuration."""

from __future__ import annotations

import time

import pytest

from crawlhealth.classify import classify
from crawlhealth.config import Block
from crawlhealth.model import Classification, Response
from crawlhealth.outcome import Outcome, Reason
from responses import ASKED, REFUSALS, page, prose

GATE = Block(name="our gate", where="selector", pattern="form#gate", outcome=Outcome.CHALLENGE)
QUEUE = Block(name="queue", where="redirect", pattern=r"^wait\.example/", outcome=Outcome.SOFT_BLOCK)
HEADER = Block(name="edge", where="header", header="X-Edge", pattern="^denied", outcome=Outcome.HARD_BLOCK)
FLAG = Block(name="flag", where="header", header="x-flag", outcome=Outcome.SOFT_BLOCK)
TITLE = Block(name="busy", where="title", pattern="^we are busy$", outcome=Outcome.ERROR)
BODY = Block(name="json limit", where="body", pattern=r'"error":\s*"slow down"', outcome=Outcome.HARD_BLOCK)
FINE = Block(name="our own words", where="title", pattern="^access denied: a novel$", outcome=Outcome.OK)
BLOCKS = (GATE, QUEUE, HEADER, FLAG, TITLE, BODY, FINE)


def judged(
    body: str = "", status: int = 200, *, final_url: str = ASKED, extracted: bool | None = None, **headers: str
) -> Classification:
    response = Response(
        status=status, url=ASKED, final_url=final_url, body=body.encode(),
        headers={"content-type": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}},
    )  # fmt: skip
    return classify(
        response, hosts=("shop.example",), refusal_status=REFUSALS, extracted=extracted, blocks=BLOCKS
    )  # fmt: skip


@pytest.mark.parametrize(
    ("classification", "outcome", "marker", "where"),
    [
        pytest.param(
            judged(page(body=f"<form class=x id='gate'>{prose(30_000)}")),
            Outcome.CHALLENGE, "our gate", "markup", id="an element, on a long page too",
        ),
        pytest.param(
            judged(page(), final_url="https://wait.example/room?token=1"),
            Outcome.SOFT_BLOCK, "queue", "redirect", id="a redirect",
        ),
        pytest.param(judged(x_edge="Denied by rule 7"), Outcome.HARD_BLOCK, "edge", "header x-edge", id="a header"),
        pytest.param(judged(x_flag=""), Outcome.SOFT_BLOCK, "flag", "header x-flag", id="a header without a pattern"),
        pytest.param(judged(page("We are  busy")), Outcome.ERROR, "busy", "title", id="a title is a broken site"),
        pytest.param(
            judged('{"error": "slow down"}', content_type="application/json"),
            Outcome.HARD_BLOCK, "json limit", "body", id="a body of JSON with 200",
        ),
        pytest.param(
            judged(page("Access denied: a novel"), 403), Outcome.OK, "our own words", "title",
            id="what the user calls content is content",
        ),
        pytest.param(
            judged(page(body="<form id=gate>"), cf_mitigated="challenge"),
            Outcome.CHALLENGE, "our gate", "markup", id="the user's marker comes before a vendor's",
        ),
        pytest.param(
            judged(page("We are busy", "<form id=gate>")), Outcome.CHALLENGE, "our gate", "markup", id="the first wins"
        ),
    ],
)  # fmt: skip
def test_a_marker_of_the_user_decides(
    classification: Classification, outcome: Outcome, marker: str, where: str
) -> None:
    evidence = classification.evidence
    assert (classification.outcome, evidence.marker, evidence.where) == (outcome, marker, where)
    assert classification.reason is Reason.CUSTOM


@pytest.mark.parametrize(
    ("classification", "reason"),
    [
        pytest.param(judged(page(body=prose(500))), Reason.SERVED, id="a page without them"),
        pytest.param(judged(page(body="<!-- <form id=gate> -->" + prose(500))), Reason.SERVED, id="in a comment"),
        pytest.param(judged(page(body="&lt;form id=gate&gt;" + prose(500))), Reason.SERVED, id="shown as text"),
        pytest.param(judged(page(body="<form id=gate>"), extracted=True), Reason.SERVED, id="beside expected content"),
        pytest.param(judged(page(), cf_mitigated="challenge"), Reason.CLOUDFLARE_CHALLENGE, id="only a vendor's"),
        pytest.param(judged(page(), 403), Reason.HTTP_403, id="only a status"),
    ],
)
def test_elsewhere_all_is_as_ever(classification: Classification, reason: Reason) -> None:
    assert classification.reason is reason


def test_time_stays_linear_in_a_hostile_body() -> None:
    blocks = tuple(
        Block(name=f"m{n}", where="selector", pattern=f"div.c{n}[data-x*=a{n}]", outcome=Outcome.CHALLENGE)
        for n in range(20)
    )

    def seconds(size: int) -> float:
        body = (b"<div class='c1 " * (size // 15))[:size]
        response = Response(status=200, url=ASKED, final_url=ASKED, headers={"content-type": "text/html"}, body=body)
        best = float("inf")
        for _ in range(3):
            began = time.perf_counter()
            classify(response, hosts=(), refusal_status=REFUSALS, extracted=None, blocks=blocks)
            best = min(best, time.perf_counter() - began)
        return best

    seconds(1_000)
    assert seconds(1_000_000) < 100 * seconds(100_000) + 0.5
