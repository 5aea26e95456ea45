"""Proxies: names are resolved by them, what they do wrong is the route's failure, and nothing tells their secrets."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crawlhealth.canary.fetch import Fetched, Fetcher, FetchFailed
from crawlhealth.config import Canary, Fetching, Route, Secret
from crawlhealth.demo.certificates import Flaw, identity
from crawlhealth.model import Phase
from crawlhealth.outcome import Reason
from rawserver import RawServer, Script, answering, dripping, flooding, resetting, silent

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
PASSWORD = "pr0xy-passw0rd"


def fetch(url: str, proxy: str, seconds: float = 5.0, settings: Fetching | None = None) -> Fetched | FetchFailed:
    canary = Canary(name="page", site="shop", url=url, timeout=timedelta(seconds=seconds))
    return Fetcher(settings or Fetching()).fetch(canary, Route(name="dc", proxy=Secret(proxy)), now=0.0)


def proxy_url(server: RawServer, scheme: str = "http") -> str:
    return f"{scheme}://user:{PASSWORD}@127.0.0.1:{server.port}"


def pump(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65_536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


def tunnel(connection: socket.socket, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as onward:
        back = threading.Thread(target=pump, args=(onward, connection), daemon=True)
        back.start()
        pump(connection, onward)
        back.join(5)


def connecting(port: int) -> Script:
    """An HTTP proxy that leads everywhere to one port of this machine."""

    def script(connection: socket.socket, server: RawServer) -> None:
        server.head(connection)
        connection.sendall(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")
        tunnel(connection, port)

    return script


def hollow(connection: socket.socket, server: RawServer) -> None:
    """An HTTP proxy that says it is connected, and resets the connection."""
    server.head(connection)
    connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def breaking_off(connection: socket.socket, server: RawServer) -> None:
    """An HTTP proxy that resets the connection in the middle of a body."""
    server.head(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello")
    server.over.wait(0.1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def socks(port: int, reply: int = 0) -> Script:
    """A SOCKS5 proxy with user and password that leads everywhere to one port of this machine."""

    def script(connection: socket.socket, server: RawServer) -> None:
        server.received.append(connection.recv(100))
        connection.sendall(b"\x05\x02")
        server.received.append(connection.recv(600))
        connection.sendall(b"\x01\x00")
        server.received.append(connection.recv(600))
        connection.sendall(bytes([5, reply, 0, 1, 0, 0, 0, 0, 0, 0]))
        if reply == 0:
            tunnel(connection, port)

    return script


def test_plain_http_through_an_http_proxy() -> None:
    with RawServer(answering(PAGE)) as proxy:
        fetched = fetch("http://shop.invalid:8080/page?x=1", proxy_url(proxy))
        sent = proxy.received[0]
    assert isinstance(fetched, Fetched), fetched
    assert sent.startswith(b"GET http://shop.invalid:8080/page?x=1 HTTP/1.1\r\n")
    assert b"Host: shop.invalid:8080\r\n" in sent
    assert b"Proxy-Authorization: Basic " in sent
    assert Phase.DNS not in fetched.exchange.phases


@pytest.mark.parametrize("kind", ["http", "https", "socks5", "socks5h"])
def test_https_through_a_proxy(kind: str, tmp_path: Path) -> None:
    good = identity(Flaw.NONE, tmp_path, now=datetime.now(UTC))
    settings = Fetching(ca_file=good.ca_file)
    with RawServer(answering(PAGE), tls=good.context) as site:
        script = socks(site.port) if kind.startswith("socks") else connecting(site.port)
        with RawServer(script, tls=good.context if kind == "https" else None) as proxy:
            fetched = fetch("https://localhost/page", proxy_url(proxy, kind), settings=settings)
            asked = b"".join(proxy.received)
        at_site = site.received[0]
    assert isinstance(fetched, Fetched), fetched
    assert fetched.response.body == b"hello"
    assert fetched.exchange.not_after["localhost"] == pytest.approx(good.not_after, abs=1)
    assert b"localhost" in asked, "the proxy resolves the name"
    assert b"Proxy-Authorization" not in at_site
    if kind.startswith("socks"):
        assert b"\x03\x09localhost\x01\xbb" in asked
        assert b"\x04user" + bytes([len(PASSWORD)]) + PASSWORD.encode() in asked


def test_an_expired_certificate_is_seen_through_a_proxy(tmp_path: Path) -> None:
    bad = identity(Flaw.EXPIRED, tmp_path, now=datetime.now(UTC))
    with RawServer(answering(PAGE), tls=bad.context) as site, RawServer(connecting(site.port)) as proxy:
        failed = fetch("https://localhost/", proxy_url(proxy), settings=Fetching(ca_file=bad.ca_file))
    assert isinstance(failed, FetchFailed)
    assert failed.reason is Reason.TLS
    assert failed.exchange.not_after["localhost"] == pytest.approx(bad.not_after, abs=1)


@pytest.mark.parametrize(
    ("kind", "script"),
    [
        pytest.param("http", answering(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"), id="407"),
        pytest.param("http", answering(b"HTTP/1.1 502 Bad Gateway\r\n\r\n"), id="502 to CONNECT"),
        pytest.param("http", answering(b"nonsense\r\n\r\n"), id="no HTTP"),
        pytest.param("http", answering(), id="closed without an answer"),
        pytest.param("http", resetting, id="reset"),
        pytest.param("http", silent, id="an HTTP proxy that says nothing"),
        pytest.param("http", dripping(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), id="an answer that drips"),
        pytest.param("http", flooding(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1000), id="an endless answer"),
        pytest.param("https", silent, id="a TLS proxy that stalls"),
        pytest.param("socks5h", silent, id="a SOCKS proxy that says nothing"),
        pytest.param("socks5h", socks(0, reply=5), id="a SOCKS proxy that cannot connect"),
        pytest.param("socks5h", lambda connection, server: connection.sendall(b"HTTP/1.1 400\r\n"), id="no SOCKS"),
        pytest.param("socks5h", lambda connection, server: connection.sendall(b"\x05\xff"), id="no way to sign in"),
    ],
)
def test_what_a_proxy_does_wrong_is_the_routes_failure(kind: str, script: Script) -> None:
    with RawServer(script) as proxy:
        began = time.monotonic()
        failed = fetch("https://shop.invalid/", proxy_url(proxy, kind), 0.3)
        took = time.monotonic() - began
    assert isinstance(failed, FetchFailed)
    assert failed.reason is Reason.PROXY, failed.detail
    assert took < 2
    assert list(failed.exchange.phases) == [Phase.CONNECT]
    assert PASSWORD not in repr(failed)
    assert str(proxy.port) not in failed.detail


@pytest.mark.parametrize("url", ["http://shop.invalid/", "https://shop.invalid/"])
@pytest.mark.parametrize(
    "proxy",
    [
        f"http://user:{PASSWORD}@127.0.0.1:1",
        f"http://user:{PASSWORD}@no-proxy.invalid:80",
        f"ftp://:{PASSWORD}@x",
        f"socks4://:{PASSWORD}@127.0.0.1:1",
        PASSWORD,
    ],
)
def test_a_proxy_that_is_not_there(url: str, proxy: str) -> None:
    failed = fetch(url, proxy)
    assert isinstance(failed, FetchFailed)
    assert failed.reason is Reason.PROXY
    assert PASSWORD not in repr(failed)
    assert "no-proxy" not in repr(failed)


def test_a_proxy_of_another_kind_is_not_spoken_to_as_if_it_were_http() -> None:
    with RawServer(answering(PAGE)) as proxy:
        failed = fetch("http://shop.invalid/", proxy_url(proxy, "socks4"))
        assert proxy.received == []
    assert isinstance(failed, FetchFailed)
    assert failed.detail == "the route's proxy is not an http, https, socks5 or socks5h URL"


@pytest.mark.parametrize(
    ("url", "script"),
    [
        pytest.param("http://shop.invalid/", answering(), id="a forwarding proxy that hangs up"),
        pytest.param("http://shop.invalid/", resetting, id="a forwarding proxy that resets"),
        pytest.param("http://shop.invalid/", breaking_off, id="a forwarding proxy that resets in the middle of a body"),
        pytest.param("https://shop.invalid/", hollow, id="a tunnel that leads nowhere"),
    ],
)
def test_a_proxy_before_a_dead_site_is_no_refusal(url: str, script: Script) -> None:
    with RawServer(script) as proxy:
        failed = fetch(url, proxy_url(proxy))
    assert isinstance(failed, FetchFailed)
    assert failed.reason is Reason.PROXY, failed.detail


def test_407_to_a_plain_request_is_the_proxys() -> None:
    with RawServer(answering(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")) as proxy:
        failed = fetch("http://shop.invalid/", proxy_url(proxy))
    assert isinstance(failed, FetchFailed)
    assert failed.reason is Reason.PROXY


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1/",
        "http://10.0.0.1/",
        "http://localhost/",
        "http://169.254.169.254/",
        "http://metadata.google.internal./",
    ],
)
def test_a_proxy_is_not_sent_from_a_public_name_to_a_private_address(target: str) -> None:
    answer = f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()
    with RawServer(answering(answer)) as proxy:
        failed = fetch("http://shop.invalid/", proxy_url(proxy))
        asked = len(proxy.received)
    assert isinstance(failed, FetchFailed)
    assert failed.reason is Reason.ADDRESS_REFUSED
    assert asked == 1
