"""TLS: what does not verify is told, and the end of the certificate all the same."""

from __future__ import annotations

import socket
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawlhealth.canary.fetch import Fetched, Fetcher, FetchFailed
from crawlhealth.config import Canary, Fetching, Route
from crawlhealth.demo.certificates import Flaw, identity
from crawlhealth.model import Phase
from crawlhealth.outcome import Reason
from rawserver import RawServer, Script, answering, resetting, silent

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
NOW = datetime.now(UTC)


def fetch(url: str, settings: Fetching, seconds: float = 5.0) -> Fetched | FetchFailed:
    canary = Canary(name="page", site="shop", url=url, timeout=timedelta(seconds=seconds))
    return Fetcher(settings).fetch(canary, Route(name="direct"), now=0.0)


def test_a_certificate_that_verifies(tmp_path: Path) -> None:
    good = identity(Flaw.NONE, tmp_path, now=NOW)
    with RawServer(answering(PAGE), tls=good.context) as server:
        fetched = fetch(server.url(), Fetching(ca_file=good.ca_file))
    assert isinstance(fetched, Fetched), fetched
    assert fetched.response.body == b"hello"
    assert fetched.exchange.not_after["127.0.0.1"] == pytest.approx(good.not_after, abs=1)
    assert list(fetched.exchange.phases) == list(Phase)


@pytest.mark.parametrize(
    ("flaw", "why"),
    [(Flaw.EXPIRED, "expired"), (Flaw.WRONG_HOST, "mismatch"), (Flaw.SELF_SIGNED, "certificate")],
)
def test_a_certificate_that_does_not_verify(flaw: Flaw, why: str, tmp_path: Path) -> None:
    bad = identity(flaw, tmp_path, now=NOW)
    with RawServer(answering(PAGE), tls=bad.context) as server:
        failed = fetch(server.url(), Fetching(ca_file=bad.ca_file))
        assert b"".join(server.received) == b"", "no request goes over a line that does not verify"
    assert isinstance(failed, FetchFailed)
    assert failed.reason is Reason.TLS
    assert why in failed.detail
    assert failed.exchange.not_after["127.0.0.1"] == pytest.approx(bad.not_after, abs=1)
    assert Phase.FIRST_BYTE not in failed.exchange.phases


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param(silent, Reason.TIMEOUT, id="a handshake that stalls"),
        pytest.param(answering(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Reason.TLS, id="plain HTTP"),
        pytest.param(resetting, Reason.CONNECTION_RESET, id="a reset during the handshake"),
    ],
)
def test_handshakes_that_fail(script: Script, reason: Reason) -> None:
    class Plain(RawServer):
        def head(self, connection: socket.socket) -> bytes:  # a TLS greeting has no head to wait for
            return connection.recv(65_536)

    with Plain(script) as server:
        began = time.monotonic()
        failed = fetch(server.url().replace("http:", "https:"), Fetching(), 0.3)
    assert isinstance(failed, FetchFailed)
    assert failed.reason is reason, failed.detail
    assert time.monotonic() - began < 2
    assert list(failed.exchange.phases) == [Phase.DNS, Phase.CONNECT, Phase.TLS]
