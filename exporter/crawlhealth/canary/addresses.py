"""Which addresses may be connected to, and names looked up within a deadline."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from crawlhealth.canary.crew import Crew
from crawlhealth.canary.failure import Failure
from crawlhealth.outcome import Reason

IP = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA: Final = frozenset(
    map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"))
)
"""Where clouds serve a machine's own credentials: AWS and most others, AWS over IPv6, Alibaba, Oracle, Azure."""
_NAMES_OF_METADATA: Final = frozenset({"metadata.google.internal", "metadata.goog"})
"""What such a service is called where a proxy would look it up."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_THIS_NETWORK: Final = ipaddress.IPv4Network("0.0.0.0/8")
_MOST_ADDRESSES: Final = 8
_LOOKUP_THREADS: Final = 64


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address to connect to, as the socket module takes it."""

    family: int
    sockaddr: tuple[str, int] | tuple[str, int, int, int]

    @property
    def ip(self) -> IP:
        """The bare address."""
        return _parsed(self.sockaddr[0])


@lru_cache(maxsize=4096)
def _parsed(address: str) -> IP:
    return ipaddress.ip_address(address.partition("%")[0])


@lru_cache(maxsize=4096)
def refusal(ip: IP) -> str | None:
    """Why an address is never connected to: link-local, metadata, unspecified, multicast; None if it may be."""
    bare = embedded(ip)
    if bare in _METADATA:
        return "a metadata service"
    if bare.is_link_local:
        return "link-local"
    if bare.is_unspecified or (bare.version == 4 and bare in _THIS_NETWORK):
        return "unspecified"
    if bare.is_multicast or (bare.version == 4 and int(bare) == 0xFFFFFFFF):
        return "multicast"
    return None


@lru_cache(maxsize=4096)
def is_public(ip: IP) -> bool:
    """Whether an address is reachable from everywhere: not loopback, private, shared or reserved."""
    return embedded(ip).is_global


def embedded(ip: IP) -> IP:
    """The IPv4 address that an IPv6 one stands for (mapped, 6to4, Teredo, NAT64), else the address itself."""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return ip.ipv4_mapped
        if ip.sixtofour is not None:
            return ip.sixtofour
        if ip.teredo is not None:
            return ip.teredo[1]
        if ip in _NAT64:
            return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip


def permitted(endpoints: Sequence[Endpoint], *, from_public: bool) -> list[Endpoint]:
    """The endpoints that may be connected to; raises Failure when none may.

    `from_public`: a public address was asked before, so that private ones are refused. A name that has public and
    private addresses is reached by the public ones only.
    """
    allowed, why = [], "no address"
    for endpoint in endpoints:
        problem = refusal(endpoint.ip)
        if problem is None and from_public and not is_public(endpoint.ip):
            problem = "not public, after a public one"
        if problem is None:
            allowed.append(endpoint)
        else:
            why = f"{endpoint.sockaddr[0]} is {problem}"
    if not allowed:
        raise Failure(Reason.ADDRESS_REFUSED, why)
    public = [endpoint for endpoint in allowed if is_public(endpoint.ip)]
    return (public or allowed)[:_MOST_ADDRESSES]


def literal(host: str) -> IP | None:
    """The address that a host is in any of the ways the system reads one (`127.1`, `0x7f000001`), None for a name.

    The few names that stand for such an address everywhere count as it.
    """
    name = host.rstrip(".").lower()
    try:
        return ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        pass
    if name in _NAMES_OF_METADATA:
        return ipaddress.IPv4Address("169.254.169.254")
    if name == "localhost" or name.endswith(".localhost"):
        return ipaddress.IPv4Address("127.0.0.1")
    try:
        return ipaddress.IPv4Address(socket.inet_aton(name))
    except OSError:
        return None


class Resolver:
    """The system's name lookup, given up at a deadline.

    A lookup cannot be interrupted: it goes on in one of a bounded number of threads, and whoever asks for the same
    name meanwhile shares it, so that a name server that never answers occupies one thread for each name.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int], _Lookup] = {}
        self._crew = Crew("lookup", _LOOKUP_THREADS)

    def lookup(self, host: str, port: int, seconds: float) -> list[Endpoint]:
        """All addresses of a host, in the system's order. Raises Failure (dns)."""
        if _is_plain_ipv4(host):
            return [Endpoint(socket.AF_INET, (host, port))]
        key = (host, port)
        with self._lock:
            lookup = self._running.get(key)
            fresh = lookup is None
            if lookup is None:
                lookup = self._running[key] = _Lookup(key)
        if fresh:
            self._crew.submit(partial(self._run, lookup))
        if not lookup.done.wait(seconds):
            raise Failure(Reason.DNS, f"no answer for {host} in time")
        if lookup.problem is not None:
            raise Failure(Reason.DNS, f"{host}: {lookup.problem}")
        return lookup.endpoints

    def _run(self, lookup: _Lookup) -> None:
        try:
            lookup.run()
        finally:
            with self._lock:
                del self._running[lookup.key]
            lookup.done.set()


class _Lookup:
    """One lookup on its way, and those who wait for it."""

    def __init__(self, key: tuple[str, int]) -> None:
        self.key = key
        self.done = threading.Event()
        self.endpoints: list[Endpoint] = []
        self.problem: str | None = "the lookup failed"

    def run(self) -> None:
        """Ask the system; never raises."""
        try:
            found = socket.getaddrinfo(*self.key, type=socket.SOCK_STREAM)
            self.endpoints = [Endpoint(row[0], row[4]) for row in found]  # type: ignore[arg-type]  # of SOCK_STREAM
            self.problem = None
        except OSError as error:
            self.problem = error.strerror or "cannot be resolved"
        except (UnicodeError, ValueError):
            self.problem = "not a valid name"


def _is_plain_ipv4(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET, host)
    except (OSError, ValueError, UnicodeError):
        return False
    return True
