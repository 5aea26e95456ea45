"""Proxies: how a route's proxy is written, and the two handshakes that ask one for a connection."""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import unquote, urlsplit

from crawlhealth.canary.failure import Failure
from crawlhealth.canary.wire import Line
from crawlhealth.outcome import Reason

_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_HEAD_BYTES: Final = 16_384
_SOCKS_REPLIES: Final = {
    1: "general failure",
    2: "not allowed",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time to live expired",
    7: "command not supported",
    8: "address type not supported",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A proxy as its URL says. Nothing of it is shown: the whole URL is a secret."""

    scheme: str = field(repr=False)
    host: str = field(repr=False)
    port: int = field(repr=False)
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @property
    def is_socks(self) -> bool:
        """Whether it speaks SOCKS5; names are resolved by the proxy for `socks5` and `socks5h` alike."""
        return self.scheme.startswith("socks5")

    @property
    def authorization(self) -> str | None:
        """The value of Proxy-Authorization, None without user and password."""
        if not self.user and not self.password:
            return None
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")


def parse_proxy(url: str) -> Proxy:
    """The proxy that a URL names. Raises Failure (proxy) without repeating it."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        port = _DEFAULT_PORTS[scheme] if parts.port is None else parts.port
        if not parts.hostname or scheme not in _DEFAULT_PORTS:
            raise ValueError
    except (ValueError, KeyError):
        raise Failure(Reason.PROXY, "the route's proxy is not an http, https, socks5 or socks5h URL") from None
    return Proxy(
        scheme=scheme,
        host=parts.hostname,
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


@contextmanager
def blamed_on_proxy() -> Iterator[None]:
    """Whatever fails inside is the proxy's failure: the route's matter and not the site's."""
    try:
        yield
    except Failure as failure:
        raise Failure(Reason.PROXY, f"the route's proxy failed: {_without_names(failure)}") from None
    except (OSError, ssl.SSLError, ValueError):
        raise Failure(Reason.PROXY, "the route's proxy failed") from None


def _without_names(failure: Failure) -> str:
    """The failure without the proxy's host, which the detail of a lookup or an address would tell."""
    if failure.reason in (Reason.DNS, Reason.ADDRESS_REFUSED, Reason.TLS):
        return failure.reason.value
    return failure.detail


def http_connect(line: Line, proxy: Proxy, host: str, port: int) -> None:
    """Ask an HTTP proxy for a tunnel (CONNECT). Raises Failure."""
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.authorization is not None:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    line.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))
    head = b""
    while b"\r\n\r\n" not in head:
        head += line.exactly(1)
        if len(head) > _HEAD_BYTES:
            raise Failure(Reason.PROXY, "its answer is too long")
    words = head.split(b"\r\n", 1)[0].split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise Failure(Reason.PROXY, "its answer is not HTTP")
    status = int(words[1][:3])
    if not 200 <= status < 300:
        raise Failure(Reason.PROXY, f"it answered {status} to CONNECT")


def socks5_connect(line: Line, proxy: Proxy, host: str, port: int) -> None:
    """Ask a SOCKS5 proxy for a connection to a name that it resolves (RFC 1928, 1929). Raises Failure."""
    user, password = proxy.user.encode(), proxy.password.encode()
    with_password = bool(user or password)
    line.sendall(b"\x05\x02\x00\x02" if with_password else b"\x05\x01\x00")
    version, method = line.exactly(2)
    if version != 5 or method not in ((0, 2) if with_password else (0,)):
        raise Failure(Reason.PROXY, "it accepts no way to sign in that the route has" if version == 5 else "not SOCKS5")
    if method == 2:
        line.sendall(bytes([1, len(user[:255])]) + user[:255] + bytes([len(password[:255])]) + password[:255])
        if line.exactly(2)[1] != 0:
            raise Failure(Reason.PROXY, "it refused user and password")
    line.sendall(b"\x05\x01\x00" + _socks_address(host) + port.to_bytes(2, "big"))
    version, reply, _, kind = line.exactly(4)
    if version != 5 or reply != 0:
        raise Failure(Reason.PROXY, f"it answered: {_SOCKS_REPLIES.get(reply, 'unknown')}")
    sizes = {1: 4, 4: 16}
    if kind != 3 and kind not in sizes:
        raise Failure(Reason.PROXY, "its answer is not SOCKS5")
    line.exactly((line.exactly(1)[0] if kind == 3 else sizes[kind]) + 2)


def _socks_address(host: str) -> bytes:
    try:
        address = ip_address(host)
    except ValueError:
        name = host.encode("idna") if not host.isascii() else host.encode()
        if len(name) > 255:
            raise Failure(Reason.INVALID_RESPONSE, "the host name is too long") from None
        return bytes([3, len(name)]) + name
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    return (b"\x01" if address.version == 4 else b"\x04") + socket.inet_pton(family, host)
