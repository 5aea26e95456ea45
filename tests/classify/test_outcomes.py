"""Statuses, failures, sizes and what was expected: the outcome where no vendor's marker decides."""

from __future__ import annotations

import pytest

from crawlhealth.classify import failure
from crawlhealth.outcome import Outcome, Reason
from responses import REFUSALS, judged, page, prose

KETTLE = page("Kettle", prose(2_000))
CHALLENGE = page("Just a moment...", '<form id="challenge-form" action="/?__cf_chl_f_tk=1"></form>')
LOGIN = page("Log in", '<form action="/session"><input name="u"><input name="p" type="password"></form>')
CONSENT = page("Before you continue", '<form action="/save"><button>Accept all</button></form>')


@pytest.mark.parametrize(
    ("status", "outcome", "reason"),
    [
        pytest.param(200, Outcome.OK, Reason.SERVED, id="200 is content"),
        pytest.param(204, Outcome.OK, Reason.SERVED, id="204 is served"),
        pytest.param(304, Outcome.OK, Reason.HTTP_3XX, id="a redirect that was not followed is no refusal"),
        pytest.param(400, Outcome.OK, Reason.HTTP_400, id="400 is no refusal"),
        pytest.param(404, Outcome.OK, Reason.HTTP_404, id="404 is no refusal"),
        pytest.param(407, Outcome.ERROR, Reason.PROXY, id="407 is a proxy on the way"),
        pytest.param(410, Outcome.OK, Reason.HTTP_410, id="410 is no refusal"),
        pytest.param(405, Outcome.OK, Reason.HTTP_4XX, id="another 4xx is no refusal"),
        pytest.param(401, Outcome.HARD_BLOCK, Reason.HTTP_401, id="401 is a hard block"),
        pytest.param(403, Outcome.HARD_BLOCK, Reason.HTTP_403, id="403 is a hard block"),
        pytest.param(406, Outcome.HARD_BLOCK, Reason.HTTP_406, id="406 is a hard block"),
        pytest.param(429, Outcome.HARD_BLOCK, Reason.HTTP_429, id="429 is a hard block"),
        pytest.param(451, Outcome.HARD_BLOCK, Reason.HTTP_451, id="451 is a hard block"),
        pytest.param(500, Outcome.ERROR, Reason.HTTP_500, id="500 is an error"),
        pytest.param(502, Outcome.ERROR, Reason.HTTP_502, id="502 is an error"),
        pytest.param(503, Outcome.ERROR, Reason.HTTP_503, id="503 is an error"),
        pytest.param(504, Outcome.ERROR, Reason.HTTP_504, id="504 is an error"),
        pytest.param(521, Outcome.ERROR, Reason.HTTP_5XX, id="another 5xx is an error"),
        pytest.param(999, Outcome.ERROR, Reason.INVALID_RESPONSE, id="a status outside of HTTP is an error"),
    ],
)
@pytest.mark.parametrize("body", [KETTLE, "", page("Hm", "<p>No.</p>")], ids=["a long page", "nothing", "a short page"])
def test_a_status_without_a_marker(status: int, outcome: Outcome, reason: Reason, body: str) -> None:
    came = judged(body, status)

    assert (came.outcome, came.reason) == (outcome, reason)
    assert came.evidence.status == status


def test_a_site_may_say_which_statuses_refuse() -> None:
    own = REFUSALS - {403} | {404, 503}

    assert judged(KETTLE, 404, refusal_status=own).reason is Reason.HTTP_REFUSED
    assert judged(KETTLE, 503, refusal_status=own).outcome is Outcome.HARD_BLOCK
    assert judged(KETTLE, 403, refusal_status=own).reason is Reason.HTTP_4XX
    assert judged(KETTLE, 403, refusal_status=own).outcome is Outcome.OK


@pytest.mark.parametrize("extracted", [None, False, True])
def test_a_refusing_status_refuses_whatever_was_found(extracted: bool | None) -> None:
    assert judged(KETTLE, 403, extracted=extracted).outcome is Outcome.HARD_BLOCK


@pytest.mark.parametrize("status", [200, 202, 401, 403, 404, 405, 429, 500, 503])
def test_a_challenge_is_one_with_any_status(status: int) -> None:
    assert judged(CHALLENGE, status).outcome is Outcome.CHALLENGE


def test_429_with_a_challenge_header_is_no_rate_limit() -> None:
    came = judged("", 429, headers={"cf-mitigated": "challenge", "retry-after": "30"})

    assert (came.outcome, came.reason) == (Outcome.CHALLENGE, Reason.CLOUDFLARE_CHALLENGE)


@pytest.mark.parametrize(
    ("title", "status", "outcome", "reason"),
    [
        pytest.param("Access denied", 200, Outcome.SOFT_BLOCK, Reason.GENERIC_BLOCK, id="with 200 a soft block"),
        pytest.param("Access denied", 403, Outcome.HARD_BLOCK, Reason.HTTP_403, id="with 403 its status says it"),
        pytest.param("Access Denied", 405, Outcome.HARD_BLOCK, Reason.GENERIC_BLOCK, id="with 405 a hard block"),
        pytest.param("Access denied", 404, Outcome.OK, Reason.HTTP_404, id="with 404 a page that is not there"),
        pytest.param("Access denied", 500, Outcome.ERROR, Reason.HTTP_500, id="with 500 an error"),
        pytest.param("Too Many Requests", 200, Outcome.SOFT_BLOCK, Reason.GENERIC_BLOCK, id="a rate limit with 200"),
        pytest.param("403 Forbidden", 200, Outcome.SOFT_BLOCK, Reason.GENERIC_BLOCK, id="a status in the title"),
        pytest.param("Are you a robot?", 503, Outcome.CHALLENGE, Reason.GENERIC_CHALLENGE, id="a question with 503"),
        pytest.param("Site maintenance", 503, Outcome.ERROR, Reason.HTTP_503, id="maintenance with 503"),
    ],
)
def test_the_exact_title_of_no_vendor_goes_by_the_status(
    title: str, status: int, outcome: Outcome, reason: Reason
) -> None:
    came = judged(page(title, "<p>No.</p>"), status)

    assert (came.outcome, came.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param("Access denied", "text/plain", id="the whole text"),
        pytest.param("<h1>Access Denied</h1><hr><p>Please write to the owner.</p>", "text/html", id="the only heading"),
        pytest.param("<html><title></title><h1>403 Forbidden</h1></html>", "text/html", id="an empty title"),
    ],
)
def test_a_page_without_a_title_is_judged_by_what_stands_in_its_place(body: str, content_type: str) -> None:
    assert judged(body, headers={"content-type": content_type}).reason is Reason.GENERIC_BLOCK


def test_a_long_page_under_a_refusing_title_is_one_only_where_the_content_is_missing() -> None:
    long = page("Access denied", prose(8_000))

    assert judged(long).outcome is Outcome.OK
    assert judged(long, extracted=False).outcome is Outcome.SOFT_BLOCK


@pytest.mark.parametrize(
    ("size", "usual", "extracted", "outcome"),
    [
        pytest.param(400, 1000.0, False, Outcome.SOFT_BLOCK, id="under half of the usual size without any value"),
        pytest.param(499, 1000.0, False, Outcome.SOFT_BLOCK, id="just under half"),
        pytest.param(500, 1000.0, False, Outcome.OK, id="exactly half is the parser's matter"),
        pytest.param(1000, 1000.0, False, Outcome.OK, id="the usual size without any value is the parser's matter"),
        pytest.param(0, 1000.0, False, Outcome.SOFT_BLOCK, id="an empty body"),
        pytest.param(100, 1000.0, True, Outcome.OK, id="a small page with its values"),
        pytest.param(100, 1000.0, None, Outcome.OK, id="a small page of which nothing is expected"),
        pytest.param(100, None, False, Outcome.OK, id="a small page where the usual size is unknown"),
    ],
)
def test_a_page_that_shrinks(size: int, usual: float | None, extracted: bool | None, outcome: Outcome) -> None:
    came = judged(b"x" * size, extracted=extracted, usual_bytes=usual)

    assert came.outcome is outcome
    assert (came.reason is Reason.SIZE_COLLAPSE) == (outcome is Outcome.SOFT_BLOCK)


@pytest.mark.parametrize(
    ("body", "content_type", "reason"),
    [
        pytest.param(KETTLE, "text/html", Reason.UNEXPECTED_HTML, id="a page"),
        pytest.param(KETTLE, "application/json", Reason.UNEXPECTED_HTML, id="a page that calls itself JSON"),
        pytest.param(" \n<HTML><body>", "", Reason.UNEXPECTED_HTML, id="a page without a type"),
        pytest.param('{"price": 1}', "application/json", Reason.SERVED, id="JSON"),
        pytest.param('{"price": "<b>1</b>"}', "text/html", Reason.SERVED, id="JSON under a wrong name"),
        pytest.param('[{"price": 1}]', "text/plain", Reason.SERVED, id="a list"),
        pytest.param("", "application/json", Reason.SERVED, id="nothing"),
    ],
)
@pytest.mark.parametrize("extracted", [None, False])
def test_where_json_is_expected(body: str, content_type: str, reason: Reason, extracted: bool | None) -> None:
    came = judged(body, headers={"content-type": content_type}, expects_json=True, extracted=extracted)

    assert came.reason is reason


def test_a_challenge_where_json_is_expected_is_a_challenge() -> None:
    assert judged(CHALLENGE, expects_json=True, extracted=False).outcome is Outcome.CHALLENGE


def test_a_page_about_logging_in_is_no_gate() -> None:
    manual = page("tool-login", "<p>Give the password with <code>tool login --password</code>.</p>")

    assert judged(manual, extracted=False).outcome is Outcome.OK
    assert judged(page("Shop - Sign in", '<input type="password">'), extracted=False).reason is Reason.LOGIN_PAGE
    assert judged(page("Log in", '<input type="password">' + prose(9_000)), extracted=False).outcome is Outcome.OK


@pytest.mark.parametrize(
    ("body", "reason"),
    [pytest.param(LOGIN, Reason.LOGIN_PAGE, id="login"), pytest.param(CONSENT, Reason.CONSENT_PAGE, id="consent")],
)
def test_a_gate_is_a_soft_block_only_where_content_was_expected_and_is_missing(body: str, reason: Reason) -> None:
    assert judged(body, extracted=False).reason is reason
    assert judged(body, extracted=None).outcome is Outcome.OK
    assert judged(body, extracted=True).outcome is Outcome.OK


@pytest.mark.parametrize("reason", list(Reason))
def test_only_a_reset_is_a_block_among_failures(reason: Reason) -> None:
    came = failure(reason, detail="after 3 bytes")

    assert came.reason is reason
    assert came.outcome is (Outcome.HARD_BLOCK if reason is Reason.CONNECTION_RESET else Outcome.ERROR)
    assert came.evidence.detail == "after 3 bytes"


def test_a_failure_shows_no_user_name_and_one_line() -> None:
    came = failure(Reason.TIMEOUT, detail="a\nb\x00\x1b[31m", status=200, final_url="https://u:hidden@shop.example/a")

    assert came.evidence.final_url == "https://shop.example/a"
    assert came.evidence.detail == "a b[31m"
    assert came.evidence.status == 200
