"""What came of a request, by the responses and errors of real libraries against the practice site."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import replace

import httpx
import pytest
import requests
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from crawlhealth.client import classify, failure
from crawlhealth.client.judging import reason_of
from crawlhealth.demo.behaviour import Behaviour, Kind
from crawlhealth.demo.site import PracticeSite
from crawlhealth.outcome import Outcome, Reason
from pushserver import no_tls

OUTCOMES = [
    pytest.param(None, Outcome.OK, Reason.SERVED, id="a page is served"),
    pytest.param(Behaviour(kind=Kind.STATUS, status=403), Outcome.HARD_BLOCK, Reason.HTTP_403, id="403"),
    pytest.param(Behaviour(kind=Kind.STATUS, status=503), Outcome.ERROR, Reason.HTTP_503, id="503"),
    pytest.param(
        Behaviour(kind=Kind.CHALLENGE, status=200), Outcome.CHALLENGE, Reason.CLOUDFLARE_CHALLENGE,
        id="a challenge with 200",
    ),
    pytest.param(
        Behaviour(kind=Kind.REDIRECT_LOGIN), Outcome.SOFT_BLOCK, Reason.REDIRECTED_LOGIN, id="a redirect to the login"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("behaviour", "outcome", "reason"), OUTCOMES)
@pytest.mark.parametrize("library", ["requests", "httpx"])
def test_a_response_of(library: str, behaviour: Behaviour | None, outcome: Outcome, reason: Reason) -> None:
    with PracticeSite() as site:
        if behaviour is not None:
            site.behave(replace(behaviour, path="/product/"))
        address = site.url("/product/3")
        response: object
        if library == "requests":
            with requests.Session() as session:
                session.trust_env = False
                response = session.get(address, timeout=10)
        else:
            response = httpx.get(address, timeout=10, follow_redirects=True, trust_env=False)
        judged = classify(response, hosts=["127.0.0.1"])
        assert (judged.outcome, judged.reason) == (outcome, reason)


def test_a_response_of_scrapy() -> None:
    request = Request("http://shop.example/login", meta={"redirect_urls": ["http://shop.example/product/3"]})
    response = HtmlResponse("http://shop.example/login", body=b"<title>Welcome</title>", request=request)
    assert classify(response, hosts=["shop.example"]).reason is Reason.REDIRECTED_LOGIN
    blocked = Response("http://shop.example/", status=429, headers={"cf-mitigated": ["challenge"]})
    assert classify(blocked).outcome is Outcome.CHALLENGE


def test_what_is_no_response_is_said_so() -> None:
    with pytest.raises(TypeError, match="not a response"):
        classify(object())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("library", ["requests", "httpx"])
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("/~reset/product/1", Reason.CONNECTION_RESET, id="a reset"),
        pytest.param("/~close/product/1", Reason.CONNECTION_RESET, id="a connection closed without an answer"),
        pytest.param("/~hang/product/1", Reason.TIMEOUT, id="no answer in time"),
        pytest.param("/~endless_redirects/product/1", Reason.TOO_MANY_REDIRECTS, id="endless redirects"),
        pytest.param("refused", Reason.CONNECTION_REFUSED, id="nobody listens"),
        pytest.param("unknown", Reason.DNS, id="a name that is none"),
        pytest.param("plain", Reason.TLS, id="no TLS where some was expected"),
    ],
)
def test_an_error_of(library: str, path: str, reason: Reason) -> None:
    with PracticeSite() as site, no_tls() as plain:
        address = {
            "refused": f"http://127.0.0.1:{free_port()}/",
            "unknown": "http://nowhere.invalid/",
            "plain": plain,
        }.get(path, site.url(path))
        try:
            if library == "requests":
                with requests.Session() as session:
                    session.trust_env = False
                    session.get(address, timeout=0.5)
            else:
                httpx.get(address, timeout=0.5, follow_redirects=True, trust_env=False)
        except (requests.RequestException, httpx.HTTPError) as error:
            judged = failure(error)
        else:
            pytest.fail("the request worked")
        assert judged.reason is reason
        assert judged.outcome is (Outcome.HARD_BLOCK if reason is Reason.CONNECTION_RESET else Outcome.ERROR)


def test_a_dead_proxy_is_no_matter_of_the_site() -> None:
    with requests.Session() as session:
        session.trust_env = False
        with pytest.raises(requests.exceptions.ProxyError) as raised:
            session.get("http://shop.example/", proxies={"http": f"http://127.0.0.1:{free_port()}"}, timeout=2)
    assert reason_of(raised.value) is Reason.PROXY


def test_an_error_that_nobody_knows_is_a_failed_connection() -> None:
    assert reason_of(ValueError("what")) is Reason.CONNECTION_FAILED


def test_an_error_that_is_its_own_cause_ends() -> None:
    error = ValueError("what")
    error.__cause__ = error
    assert reason_of(error) is Reason.CONNECTION_FAILED


def test_classification_is_imported_only_when_it_is_used() -> None:
    program = "import sys, crawlhealth.client; sys.exit('re2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0
