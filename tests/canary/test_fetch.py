"""Fetching from servers that hold, flood, break off and lie, over real sockets."""

from __future__ import annotations

import gzip
import time
import zlib
from contextlib import ExitStack
from datetime import timedelta

import brotli
import pytest
import zstandard

from crawlhealth.canary.attempt import LARGE_BYTES
from crawlhealth.canary.fetch import LARGE_BODIES, Fetched, Fetcher, FetchFailed, retry_after
from crawlhealth.config import Canary, Fetching, Route, Secret
from crawlhealth.model import Phase, Response
from crawlhealth.outcome import Reason
from rawserver import RawServer, Script, answering, dripping, flooding, resetting, silent

NOW = 1_796_040_000.0
DIRECT = Route(name="direct")
SETTINGS = Fetching(max_body_bytes=300_000)
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
PAGE = b"<h1>Hello</h1>" * 100


def canary(url: str, seconds: float = 5.0, **options: object) -> Canary:
    return Canary(name="page", site="shop", url=url, timeout=timedelta(seconds=seconds), **options)  # type: ignore[arg-type]


def fetch(url: str, seconds: float = 5.0, *, route: Route = DIRECT, **options: object) -> Fetched | FetchFailed:
    return Fetcher(SETTINGS).fetch(canary(url, seconds, **options), route, now=NOW)


def with_length(body: bytes, *headers: bytes) -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return OK + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


def in_single_bytes(body: bytes) -> bytes:
    return b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("script", "body"),
    [
        pytest.param(answering(with_length(b"hello")), b"hello", id="a body of the length that was said"),
        pytest.param(answering(OK + b"\r\nhello"), b"hello", id="a body until the connection is closed"),
        pytest.param(
            answering(CHUNKED + b"3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: 1\r\n\r\n"), b"hello", id="chunks with trailers"
        ),
        pytest.param(
            answering(with_length(b"hello") + b"garbage" * 100), b"hello", id="garbage after the body is not read"
        ),
        pytest.param(
            answering(b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + with_length(b"hello")),
            b"hello",
            id="an interim answer first",
        ),
        pytest.param(
            answering(b"HTTP/1.0 200\r\nX\x00: \x00\xff\r\n\r\n\x00hi"), b"\x00hi", id="NULs and no reason phrase"
        ),
        pytest.param(answering(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"), b"", id="no body with 204"),
        pytest.param(answering(with_length(b"", b"Content-Encoding: gzip")), b"", id="an empty body is no gzip"),
        pytest.param(answering(with_length(b"hi", b"Content-Encoding: utf-8")), b"hi", id="an unknown coding is none"),
        pytest.param(
            answering(
                CHUNKED[:-2] + b"Content-Encoding: deflate\r\n\r\n" + in_single_bytes(zlib.compress(b"hi", wbits=-15))
            ),
            b"hi",
            id="deflate without its frame, byte by byte",
        ),
        pytest.param(
            answering(OK + b"content-length: 2\r\nContent-Length: 2\r\n\r\nhi"), b"hi", id="the same length twice"
        ),
    ],
)
def test_answers_that_are_read(script: Script, body: bytes) -> None:
    with RawServer(script) as server:
        fetched = fetch(server.url())
    assert isinstance(fetched, Fetched), fetched
    assert fetched.response.body == body


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param(silent, Reason.TIMEOUT, id="a server that says nothing"),
        pytest.param(dripping(OK, b"X: y\r\n"), Reason.TIMEOUT, id="a head that drips"),
        pytest.param(dripping(OK + b"\r\n", b"x"), Reason.TIMEOUT, id="a body that drips"),
        pytest.param(dripping(CHUNKED, b"1\r\nx\r\n"), Reason.TIMEOUT, id="chunks that drip"),
        pytest.param(dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), Reason.TIMEOUT, id="interim answers that drip"),
        pytest.param(flooding(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), Reason.INVALID_RESPONSE, id="endless interim"),
        pytest.param(flooding(OK, b"X: y\r\n"), Reason.INVALID_RESPONSE, id="endless headers"),
        pytest.param(flooding(OK + b"X: ", b"y" * 65_536), Reason.INVALID_RESPONSE, id="one endless header"),
        pytest.param(flooding(b"HTTP/1.1 200 ", b"y" * 65_536), Reason.INVALID_RESPONSE, id="an endless status line"),
        pytest.param(flooding(CHUNKED + b"1;", b"y" * 65_536), Reason.INVALID_RESPONSE, id="an endless extension"),
        pytest.param(flooding(CHUNKED, b"1\r\nx\r\n"), Reason.BODY_TOO_LARGE, id="endless chunks of one byte"),
        pytest.param(flooding(CHUNKED + b"0\r\n", b"X: y\r\n"), Reason.BODY_TOO_LARGE, id="endless trailers"),
        pytest.param(flooding(OK + b"\r\n", b"y" * 65_536), Reason.BODY_TOO_LARGE, id="an endless body"),
        pytest.param(answering(CHUNKED + b"-5\r\nhello\r\n"), Reason.INVALID_RESPONSE, id="a chunk of negative size"),
        pytest.param(answering(CHUNKED + b"2\r\nhello\r\n"), Reason.INVALID_RESPONSE, id="a chunk longer than it says"),
        pytest.param(answering(CHUNKED + b"F" * 17 + b"\r\nx"), Reason.INVALID_RESPONSE, id="a chunk of absurd size"),
        pytest.param(
            answering(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
            Reason.INVALID_RESPONSE,
            id="two lengths",
        ),
        pytest.param(answering(OK + b"Content-Length: +5\r\n\r\nhello"), Reason.INVALID_RESPONSE, id="no length"),
        pytest.param(
            answering(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n"),
            Reason.UNDECODABLE_BODY,
            id="a strange transfer coding",
        ),
        pytest.param(
            answering(OK + b"Content-Length: 50\r\n\r\nhello"), Reason.TRUNCATED_BODY, id="a body that breaks off"
        ),
        pytest.param(answering(CHUNKED + b"5\r\nhel"), Reason.TRUNCATED_BODY, id="a chunk that breaks off"),
        pytest.param(answering(CHUNKED + b"5\r\nhello\r\n"), Reason.TRUNCATED_BODY, id="chunks without an end"),
        pytest.param(answering(b"SSH-2.0-OpenSSH_9.2\r\n"), Reason.INVALID_RESPONSE, id="another protocol"),
        pytest.param(answering(OK + b"X: "), Reason.INVALID_RESPONSE, id="a head that breaks off"),
        pytest.param(answering(), Reason.CONNECTION_RESET, id="closed without an answer"),
        pytest.param(resetting, Reason.CONNECTION_RESET, id="reset"),
    ],
)
def test_answers_that_fail(script: Script, reason: Reason) -> None:
    with RawServer(script) as server:
        began = time.monotonic()
        failed = fetch(server.url(), 0.3 if reason is Reason.TIMEOUT else 5.0)
        took = time.monotonic() - began
    assert isinstance(failed, FetchFailed)
    assert failed.reason is reason, failed.detail
    assert took < 3.0
    assert sum(failed.exchange.phases.values()) == pytest.approx(failed.exchange.seconds, abs=0.05)


def bomb(coding: str) -> bytes:
    zeros = bytes(50_000_000)
    if coding == "gzip":
        return gzip.compress(zeros, 9)
    if coding == "deflate":
        return zlib.compress(zeros, 9)
    if coding == "br":
        return bytes(brotli.compress(zeros, quality=5))
    if coding == "zstd":
        return zstandard.compress(zeros, 9)
    return gzip.compress(gzip.compress(zeros, 9), 9)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_decompression_bomb_is_cut_at_the_cap(coding: str) -> None:
    with RawServer(answering(with_length(bomb(coding), b"Content-Encoding: " + coding.encode()))) as server:
        failed = fetch(server.url())
    assert isinstance(failed, FetchFailed)
    assert failed.reason is Reason.BODY_TOO_LARGE
    assert failed.response is not None
    assert len(failed.response.body) == SETTINGS.max_body_bytes


CODED = {
    "gzip": gzip.compress(PAGE),
    "x-gzip": gzip.compress(PAGE[:700]) + gzip.compress(PAGE[700:]) + b"trailing garbage",
    "deflate": zlib.compress(PAGE),
    "Deflate": zlib.compress(PAGE, wbits=-15),
    "br": brotli.compress(PAGE),
    "zstd": zstandard.compress(PAGE),
    "gzip, br": brotli.compress(gzip.compress(PAGE)),
}


@pytest.mark.parametrize("coding", CODED)
def test_content_codings_are_taken_off(coding: str) -> None:
    with RawServer(answering(with_length(CODED[coding], b"Content-Encoding: " + coding.encode()))) as server:
        fetched = fetch(server.url())
    assert isinstance(fetched, Fetched), fetched
    assert fetched.response.body == PAGE


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 131_072, 262_144])
def test_a_body_that_shrinks_much_is_whole(coding: str, size: int) -> None:
    packers = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstandard.compress}
    body = bytes(size)
    with RawServer(answering(with_length(packers[coding](body), b"Content-Encoding: " + coding.encode()))) as server:
        fetched = fetch(server.url())
    assert isinstance(fetched, Fetched), fetched
    assert fetched.response.body == body


@pytest.mark.parametrize(
    ("coded", "header", "reason"),
    [
        pytest.param(b"not gzip at all", b"gzip", Reason.UNDECODABLE_BODY, id="not in the coding it names"),
        pytest.param(gzip.compress(PAGE)[:-20], b"gzip", Reason.TRUNCATED_BODY, id="gzip that breaks off"),
        pytest.param(brotli.compress(PAGE)[:-8], b"br", Reason.TRUNCATED_BODY, id="br that breaks off"),
        pytest.param(zstandard.compress(PAGE)[:-4], b"zstd", Reason.TRUNCATED_BODY, id="zstd that breaks off"),
        pytest.param(
            gzip.compress(b"") * 5_000, b"gzip", Reason.UNDECODABLE_BODY, id="thousands of empty gzip members"
        ),
        pytest.param(PAGE, b"gzip, gzip, gzip", Reason.UNDECODABLE_BODY, id="three codings on one another"),
    ],
)
def test_damaged_codings(coded: bytes, header: bytes, reason: Reason) -> None:
    with RawServer(answering(with_length(coded, b"Content-Encoding: " + header))) as server:
        failed = fetch(server.url())
    assert isinstance(failed, FetchFailed)
    assert failed.reason is reason


def test_a_refusal_that_drips_is_kept_as_far_as_it_came() -> None:
    with RawServer(dripping(b"HTTP/1.1 403 Forbidden\r\nRetry-After: 120\r\n\r\n", b"no ")) as server:
        failed = fetch(server.url(), 0.5)
    assert isinstance(failed, FetchFailed)
    assert failed.response is not None
    assert failed.response.status == 403
    assert failed.response.body.startswith(b"no ")
    assert failed.exchange.retry_after == 120.0


def test_a_route_may_have_less_time_than_the_others() -> None:
    """A canary's timeout may differ by route; the route's own one counts."""
    with RawServer(silent) as server:
        failed = fetch(server.url(), 30.0, timeouts={"direct": timedelta(seconds=0.3)})
    assert isinstance(failed, FetchFailed)
    assert failed.reason is Reason.TIMEOUT
    assert "0.3 s" in failed.detail


def test_only_so_many_large_pages_are_held_at_once() -> None:
    """A further one waits until a place is free, within its own timeout; small ones never wait."""
    fetcher = Fetcher(Fetching(max_body_bytes=5_000_000))
    large, small = with_length(b"x" * (LARGE_BYTES + 1)), with_length(PAGE)
    with RawServer(answering(large)) as server, RawServer(answering(small)) as other, ExitStack() as held:
        for _ in range(LARGE_BODIES):
            held.enter_context(fetcher.fetching(canary(server.url()), DIRECT, now=NOW))
        waited = fetcher.fetch(canary(server.url(), 0.3), DIRECT, now=NOW)
        assert isinstance(waited, FetchFailed)
        assert waited.reason is Reason.TIMEOUT
        assert isinstance(fetcher.fetch(canary(other.url()), DIRECT, now=NOW), Fetched)
        held.close()
        assert isinstance(fetcher.fetch(canary(server.url()), DIRECT, now=NOW), Fetched)


def test_a_refused_connection_has_no_later_phases() -> None:
    with RawServer(silent) as server:
        url = server.url()
    failed = fetch(url)
    assert isinstance(failed, FetchFailed)
    assert failed.reason is Reason.CONNECTION_REFUSED
    assert set(failed.exchange.phases) == {Phase.DNS, Phase.CONNECT}


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("120", 120.0), ("0", 0.0), ("99999999999999", 86_400.0), ("Mon, 30 Nov 2026 12:01:00 GMT", 60.0),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0), ("soon", None), ("-5", None), ("", None),
        ("Mon, 99 Nov 99999999", None), ("0000000000120", 120.0), ("Mon Nov 30 12:01:00 2026", 60.0),
        ("Mon, 30 Nov 2026 12:01:00", 60.0), ("Mon, 30 Nov 2026 12:01:00 -0000", 60.0),
    ],
)  # fmt: skip
def test_retry_after(written: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    url = "http://a.test/"
    response = Response(status=503, url=url, final_url=url, headers={"retry-after": written})
    found = retry_after(response, NOW)
    monkeypatch.undo()
    time.tzset()
    assert found == seconds


def test_a_header_that_comes_twice_does_not_spoil_the_first() -> None:
    twice = b"Retry-After: 120\r\nContent-Type: text/html\r\nX-A: 1\r\n" * 2
    with RawServer(answering(b"HTTP/1.1 429 No\r\n" + twice + b"\r\n")) as server:
        fetched = fetch(server.url())
    assert isinstance(fetched, Fetched), fetched
    assert fetched.exchange.retry_after == 120.0
    assert (fetched.response.headers["content-type"], fetched.response.headers["x-a"]) == ("text/html", "1, 1")


def test_secrets_appear_in_no_result() -> None:
    token = "t0p-s3cret"
    with RawServer(answering(b"HTTP/1.1 302 Found\r\nLocation: /next\r\n\r\n")) as server:
        failed = fetch(
            server.url("/", user=f"user:{token}"),
            headers={"X-Token": Secret(token)},
            cookies={"session": Secret(token)},
            route=Route(name="direct", headers={"X-Route": Secret(token)}),
        )
        sent = server.received[0]
    assert sent.count(token.encode()) == 3
    assert b"Authorization: Basic dXNlcjp0MHAtczNjcmV0" in sent
    assert token not in repr(failed)
    assert "dXNlcjp0MHAtczNjcmV0" not in repr(failed)


def test_a_header_with_a_line_break_is_not_sent() -> None:
    with RawServer(answering(with_length(b"x"))) as server:
        failed = fetch(server.url(), headers={"X-A": "b\r\nX-Injected: 1"})
        assert server.received == []
    assert isinstance(failed, FetchFailed)
    assert failed.reason is Reason.INVALID_RESPONSE
