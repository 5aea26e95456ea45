"""Which site a host belongs to."""

from __future__ import annotations

import pytest

from crawlhealth.config import Site, host_site
from crawlhealth.hosts import Host, parse

SITES = {
    name: Site(name=name, hosts=hosts)
    for name, hosts in {
        "books": ("books.example", "www.books.example"),
        "shop": (".shop.example", "shop.example"),
        "near": ("127.0.0.1:8001",),
        "far": ("127.0.0.1:8002", "[::1]:8002"),
        "umlaut": ("bücher.example",),
    }.items()
}


@pytest.mark.parametrize(
    ("host", "port", "site"),
    [
        pytest.param("books.example", 443, "books", id="an exact name on any port"),
        pytest.param("BOOKS.example.", 443, "books", id="case and a final dot do not count"),
        pytest.param("x.books.example", 443, None, id="an exact name is not a suffix"),
        pytest.param("a.b.shop.example", 80, "shop", id="a suffix has all names below it"),
        pytest.param("evilshop.example", 80, None, id="a suffix begins at a dot"),
        pytest.param("shop.example.evil.example", 80, None, id="a suffix stands at the end"),
        pytest.param("127.0.0.1", 8001, "near", id="a written port counts"),
        pytest.param("127.0.0.1", 8002, "far", id="another port may be another site"),
        pytest.param("127.0.0.1", 8003, None, id="a third port is nobody's"),
        pytest.param("::1", 8002, "far", id="an IPv6 address"),
        pytest.param("xn--bcher-kva.example", 443, "umlaut", id="a name written in its own script"),
        pytest.param("bücher.example", 443, "umlaut", id="and asked for in it"),
    ],
)
def test_host_site(host: str, port: int, site: str | None) -> None:
    assert host_site(SITES, host, port) == site


def test_parse_reads_name_and_port() -> None:
    assert parse("[::1]:80") == Host("::1", 80)
    assert parse("Books.Example:8080") == Host("books.example", 8080)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param("https://books.example/", "write only the host", id="a URL"),
        pytest.param("*.books.example", "write .example.com", id="a star"),
        pytest.param("me@books.example", "write only the host", id="a user name"),
        pytest.param("books example", "is not a host name", id="a blank"),
        pytest.param("books.example:99999", "not a number from 1 to 65535", id="a port out of range"),
        pytest.param("", "is not a host name", id="nothing"),
        pytest.param("." + "a" * 300, "is not a host name", id="too long"),
    ],
)
def test_no_host(written: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse(written)
