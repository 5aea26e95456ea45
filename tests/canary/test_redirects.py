"""Redirects: followed one by one, kept, and never to where a server must not send anyone."""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest

from crawlhealth.canary.fetch import Fetched, Fetcher, FetchFailed
from crawlhealth.config import Canary, Fetching, Route, Secret
from crawlhealth.outcome import Reason
from rawserver import RawServer, Script, answering

DIRECT = Route(name="direct")


def fetch(url: str, **options: object) -> Fetched | FetchFailed:
    canary = Canary(name="page", site="shop", url=url, timeout=timedelta(seconds=5), **options)  # type: ignore[arg-type]
    return Fetcher(Fetching()).fetch(canary, DIRECT, now=0.0)


def redirect(location: str, status: int = 302, *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\n{lines}Content-Length: 0\r\n\r\n".encode()


def hops(*locations: str) -> Script:
    """Answer /0 with the first location, /1 with the second …, anything else with a page."""

    def script(connection: socket.socket, server: RawServer) -> None:
        path = server.head(connection).split()[1].decode().strip("/")
        if path.isdigit() and int(path) < len(locations):
            connection.sendall(redirect(locations[int(path)]))
        else:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    return script


def test_redirects_are_followed_and_kept_and_the_phases_make_the_whole() -> None:
    with RawServer(hops("/1", "2", "?x=1#part")) as server:
        fetched = fetch(server.url("/0"))
    assert isinstance(fetched, Fetched), fetched
    assert fetched.response.redirects == (server.url("/1"), server.url("/2"), server.url("/2?x=1"))
    assert fetched.response.final_url == server.url("/2?x=1")
    assert fetched.response.url == server.url("/0")
    assert sum(fetched.exchange.phases.values()) == pytest.approx(fetched.exchange.seconds, abs=0.002)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        pytest.param("file:///etc/passwd", Reason.ADDRESS_REFUSED, id="a file"),
        pytest.param("gopher://127.0.0.1/", Reason.ADDRESS_REFUSED, id="another protocol"),
        pytest.param("javascript:alert(1)", Reason.ADDRESS_REFUSED, id="a script"),
        pytest.param("http://169.254.169.254/latest/meta-data/", Reason.ADDRESS_REFUSED, id="the metadata service"),
        pytest.param("http://[::ffff:169.254.169.254]/", Reason.ADDRESS_REFUSED, id="the metadata service, mapped"),
        pytest.param("http://[64:ff9b::a9fe:a9fe]/", Reason.ADDRESS_REFUSED, id="the metadata service through NAT64"),
        pytest.param("http://2852039166/", Reason.ADDRESS_REFUSED, id="the metadata service as one number"),
        pytest.param("http://0xa9.0xfe.0xa9.0xfe/", Reason.ADDRESS_REFUSED, id="the metadata service in hexadecimal"),
        pytest.param("http://100.100.100.200/", Reason.ADDRESS_REFUSED, id="another cloud's metadata service"),
        pytest.param("http://[fe80::1]/", Reason.ADDRESS_REFUSED, id="a link-local address"),
        pytest.param("http://0.0.0.0/", Reason.ADDRESS_REFUSED, id="no address at all"),
        pytest.param("http://[::]/", Reason.ADDRESS_REFUSED, id="no address at all, version 6"),
        pytest.param("http://224.0.0.1/", Reason.ADDRESS_REFUSED, id="a multicast address"),
        pytest.param("https://", Reason.INVALID_RESPONSE, id="nothing"),
        pytest.param("http://[broken/", Reason.INVALID_RESPONSE, id="half an address"),
        pytest.param("http://a.test:99999/", Reason.INVALID_RESPONSE, id="an impossible port"),
        pytest.param("/" + "x" * 10_000, Reason.INVALID_RESPONSE, id="an endless path"),
        pytest.param("http://" + "a" * 300 + ".invalid/", Reason.DNS, id="a name that cannot be"),
    ],
)
def test_redirects_that_are_not_followed(location: str, reason: Reason) -> None:
    with RawServer(answering(redirect(location))) as server:
        failed = fetch(server.url())
    assert isinstance(failed, FetchFailed)
    assert failed.reason is reason, failed.detail


def test_endless_redirects_end() -> None:
    with RawServer(answering(redirect("/"))) as server:
        failed = fetch(server.url())
        asked = len(server.received)
    assert isinstance(failed, FetchFailed)
    assert failed.reason is Reason.TOO_MANY_REDIRECTS
    assert asked == Fetching().max_redirects + 1
    assert len(failed.exchange.redirects) == Fetching().max_redirects


def test_secrets_stay_with_their_origin() -> None:
    with (
        RawServer(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as other,
        RawServer(answering(redirect(other.url("/?here"), 302, "Set-Cookie: theirs=1"))) as server,
    ):
        fetched = fetch(
            server.url("/", user="user:passw0rd"),
            headers={"X-Token": Secret("t0ken"), "X-Plain": "fine"},
            cookies={"session": Secret("c00kie")},
        )
        first, second = server.received[0], other.received[0]
    assert isinstance(fetched, Fetched), fetched
    assert b"t0ken" in first
    assert b"session=c00kie" in first
    for secret in (b"t0ken", b"c00kie", b"Authorization"):
        assert secret not in second
    assert b"X-Plain: fine" in second
    assert f"Host: 127.0.0.1:{other.port}\r\n".encode() in second


def test_cookies_that_are_set_on_the_way_are_sent_on() -> None:
    def script(connection: socket.socket, server: RawServer) -> None:
        if b"theirs=1" in server.head(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nin")
        else:
            connection.sendall(redirect("/again", 302, "Set-Cookie: theirs=1; Path=/"))

    with RawServer(script) as server:
        fetched = fetch(server.url(), cookies={"mine": "2"})
        last = server.received[-1]
        again = fetch(server.url())
    assert isinstance(fetched, Fetched), fetched
    assert b"mine=2" in last
    assert isinstance(again, Fetched)
    assert len(again.exchange.redirects) == 1, "cookies of one fetch are not those of the next"


def test_a_cookie_header_is_kept_on_its_origin_and_joined_with_the_cookies() -> None:
    with (
        RawServer(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as other,
        RawServer(hops("/1", other.url("/"))) as server,
    ):
        fetched = fetch(server.url("/0"), headers={"cookie": Secret("a=1; b=2")}, cookies={"b": "3"})
        sent = [*server.received, *other.received]
        alone = fetch(server.url("/0"), headers={"Cookie": "a=1; b=2"})
        sent_alone = server.received[2:]
    assert isinstance(fetched, Fetched), fetched
    assert [b"Cookie: a=1; b=3\r\n" in head for head in sent] == [True, True, False]
    assert b"okie" not in sent[2]
    assert isinstance(alone, Fetched), alone
    assert [b"Cookie: a=1; b=2\r\n" in head for head in sent_alone] == [True, True]


@pytest.mark.parametrize(
    ("status", "method", "line", "with_body"),
    [
        pytest.param(302, "POST", b"GET /next", False, id="302 turns a POST into a GET"),
        pytest.param(303, "POST", b"GET /next", False, id="303 as well"),
        pytest.param(307, "POST", b"POST /next", True, id="307 repeats it"),
        pytest.param(302, "HEAD", b"HEAD /next", False, id="HEAD stays HEAD"),
    ],
)
def test_the_method_after_a_redirect(status: int, method: str, line: bytes, with_body: bool) -> None:
    bodies = []

    def script(connection: socket.socket, server: RawServer) -> None:
        head = server.head(connection)
        bodies.append(head.partition(b"\r\n\r\n")[2])
        first = head.split()[1] == b"/"
        connection.sendall(redirect("/next", status) if first else b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with RawServer(script) as server:
        fetched = fetch(server.url(), method=method, body="a=1" if method == "POST" else None)
        last = server.received[-1]
    assert isinstance(fetched, Fetched), fetched
    assert last.startswith(line)
    assert (b"Content-Length: 3" in last) is with_body
