"""Which addresses may be connected to, decided on the address itself."""

from __future__ import annotations

import ipaddress
import socket

import pytest

from crawlhealth.canary.addresses import Endpoint, Resolver, literal, permitted
from crawlhealth.canary.failure import Failure
from crawlhealth.outcome import Reason


def endpoints(*addresses: str) -> list[Endpoint]:
    return [
        Endpoint(socket.AF_INET6, (address, 80, 0, 0)) if ":" in address else Endpoint(socket.AF_INET, (address, 80))
        for address in addresses
    ]


@pytest.mark.parametrize(
    ("found", "from_public", "left"),
    [
        pytest.param(["127.0.0.1"], False, ["127.0.0.1"], id="loopback is allowed"),
        pytest.param(["10.0.0.1", "192.168.1.1"], False, ["10.0.0.1", "192.168.1.1"], id="private is allowed"),
        pytest.param(["8.8.8.8"], True, ["8.8.8.8"], id="public after public"),
        pytest.param(["10.0.0.1", "8.8.8.8"], False, ["8.8.8.8"], id="of mixed answers the public"),
        pytest.param(["169.254.169.254", "8.8.8.8"], False, ["8.8.8.8"], id="without the metadata service"),
        pytest.param(["10.0.0.1"], True, [], id="private after public"),
        pytest.param(["127.0.0.1"], True, [], id="loopback after public"),
        pytest.param(["100.64.0.1"], True, [], id="shared address space after public"),
        pytest.param(["::1"], True, [], id="loopback of version 6 after public"),
        pytest.param(["fd12::1"], True, [], id="unique local after public"),
        pytest.param(["::ffff:10.0.0.1"], True, [], id="a mapped private one after public"),
        pytest.param(["2002:7f00:1::"], True, [], id="loopback as 6to4 after public"),
        pytest.param(["fd00:ec2::254"], False, [], id="the metadata service of version 6"),
        pytest.param(["168.63.129.16"], False, [], id="the metadata service on a public address"),
        pytest.param(["0.1.2.3"], False, [], id="this network"),
        pytest.param(["255.255.255.255"], False, [], id="broadcast"),
        pytest.param([], False, [], id="no address"),
    ],
)
def test_permitted(found: list[str], from_public: bool, left: list[str]) -> None:
    if left:
        assert [endpoint.sockaddr[0] for endpoint in permitted(endpoints(*found), from_public=from_public)] == left
    else:
        with pytest.raises(Failure) as raised:
            permitted(endpoints(*found), from_public=from_public)
        assert raised.value.reason is Reason.ADDRESS_REFUSED


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("0x7f000001", "127.0.0.1"), ("2130706433", "127.0.0.1"),
        ("localhost", "127.0.0.1"), ("a.localhost.", "127.0.0.1"), ("::1", "::1"),
        ("169.254.169.254.", "169.254.169.254"), ("0xa9fea9fe.", "169.254.169.254"), ("fe80::1%lo", "fe80::1"),
        ("example.com", None), ("", None),
    ],
)  # fmt: skip
def test_literal(host: str, address: str | None) -> None:
    assert literal(host) == (None if address is None else ipaddress.ip_address(address))


def test_names_are_looked_up() -> None:
    found = Resolver().lookup("localhost", 80, 5.0)
    assert {endpoint.sockaddr[0] for endpoint in found} <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".invalid", "..", "a..b", "x\x00y"])
def test_names_that_are_none(host: str) -> None:
    with pytest.raises(Failure) as raised:
        Resolver().lookup(host, 80, 10.0)
    assert raised.value.reason is Reason.DNS
