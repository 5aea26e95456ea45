"""Files of published ranges: what is read of them, and what makes one no good as a whole."""

from __future__ import annotations

import ipaddress
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.searchbots.bots import BOTS
from crawlhealth.searchbots.names import canonical, derived, fits, network
from crawlhealth.searchbots.rangefolder import RangeFolder
from crawlhealth.searchbots.ranges import RangesError, parse
from crawlhealth.searchbotsettings import RangeSource
from searchbots.verifying import NOW, bot

GOOGLE = {"creationTime": "2026", "prefixes": [{"ipv4Prefix": "66.249.64.0/27"}, {"ipv6Prefix": "2001:4860::/64"}]}


def text(*prefixes: str) -> str:
    return json.dumps({"prefixes": [{"ipv4Prefix": prefix} for prefix in prefixes]})


@pytest.mark.parametrize(
    ("document", "prefixes"),
    [
        pytest.param(GOOGLE, 2, id="Google's, Bing's, OpenAI's form"),
        pytest.param({"syncToken": "1", "prefixes": [{"ip_prefix": "1.2.3.0/24", "region": "eu"}]}, 1, id="Amazon's"),
        pytest.param({"prefixes": [{"ipv4Prefix": "1.2.3.0/24", "ipv6Prefix": ""}]}, 1, id="one of two left empty"),
        pytest.param(["1.2.3.0/24", "2001:db8::/32"], 2, id="a bare list"),
        pytest.param({"prefixes": ["1.2.3.4"]}, 1, id="a bare address"),
    ],
)
def test_what_is_read(document: object, prefixes: int) -> None:
    assert parse("a.json", json.dumps(document).encode(), at=NOW).prefixes == prefixes


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b'{"prefixes": [{"ipv4Prefix": "1.2', "is not JSON", id="cut off"),
        pytest.param(b"[" * 100_000, "is not JSON", id="endless brackets"),
        pytest.param(b"\xff", "is not JSON", id="bytes"),
        pytest.param(b'{"prefixes": []}', "names no prefix", id="empty: all would be fake"),
        pytest.param(b'{"prefixes": [{"ipv4Prefix": "1.2.3.0/24"}, {"ipv4Prefix": "1.2"}]}', "is none", id="a bad one"),
        pytest.param(b'{"prefixes": [{"ipv4Prefix": "0.0.0.0/0"}]}', "too wide", id="everybody would be verified"),
    ],
)  # fmt: skip
def test_what_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(RangesError, match=problem):
        parse("a.json", data, at=NOW)


@pytest.mark.parametrize(
    "prefixes",
    [
        pytest.param([f"{number}.0.0.0/8" for number in range(256)], id="the whole of IPv4 in pieces"),
        pytest.param(["1.0.0.0/8", "3.0.0.0/8", "5.0.0.0/32"], id="one address more than two of the widest"),
        pytest.param([f"{number:x}::/16" for number in range(0x2000, 0x2003)], id="three of the widest of IPv6"),
    ],
)
def test_a_file_that_names_half_the_world_is_refused(prefixes: list[str]) -> None:
    with pytest.raises(RangesError, match="too many addresses"):
        parse("a.json", text(*prefixes).encode(), at=NOW)


def test_a_file_may_name_the_same_addresses_more_than_once() -> None:
    whole = ["17.0.0.0/8", "17.0.0.0/9", "17.128.0.0/9", "144.178.0.0/18", "2620:149::/32", "2620:149::/48"]
    file = parse("applebot.json", text(*whole * 3).encode(), at=NOW)
    assert file.prefixes == 18
    assert file.span.addresses(4) == 2**24 + 2**14
    assert file.span.addresses(6) == 2**96


@given(
    st.lists(st.tuples(st.integers(0, 2**16), st.integers(24, 32)), min_size=1, max_size=20),
    st.integers(0, 2**16 + 300),
)
def test_an_address_is_in_the_file_when_it_is_in_a_prefix(written: list[tuple[int, int]], number: int) -> None:
    base = int(ipaddress.IPv4Address("60.0.0.0"))
    networks = [ipaddress.ip_network((base + start, length), strict=False) for start, length in written]
    file = parse("a.json", text(*map(str, networks)).encode(), at=NOW)
    ip = ipaddress.IPv4Address(base + number)
    assert file.span.has(ip) == any(ip in network for network in networks)
    assert not file.span.has(ipaddress.IPv6Address(int(ip)))


def test_a_file_is_fetched_anew_when_it_is_due_and_only_a_good_one_replaces_it(tmp_path: Path) -> None:
    folder, got = RangeFolder(BOTS), []
    answers = [text("1.2.3.0/24").encode(), b"<html>", text("1.2.4.0/24").encode()]
    sources = {"duckduckbot.json": RangeSource(url="https://duck.example/bot.json")}

    def get(url: str) -> bytes:
        got.append(url)
        return answers.pop(0)

    def step(now: float) -> bool | None:
        folder.read(tmp_path)
        folder.refresh(sources, get, now)
        folder.read(tmp_path)
        ip = canonical("1.2.3.4")
        assert ip is not None
        return folder.ranges.holds(bot("DuckDuckBot"), ip, now)[0]

    assert step(NOW) is True
    assert step(NOW + 80_000) is True
    assert len(got) == 1
    assert step(NOW + 86_401) is True, "a page of HTML changes nothing"
    assert folder.problems == {"duckduckbot.json": "could not be fetched anew: is not JSON"}
    assert step(NOW + 86_500) is True
    assert len(got) == 2, "tried again after an hour, not before"
    assert step(NOW + 90_100) is False
    assert folder.problems == {}
    assert [path.name for path in tmp_path.iterdir()] == ["duckduckbot.json"]


def test_a_folder_that_cannot_be_read_leaves_what_was_known(tmp_path: Path) -> None:
    folder = RangeFolder(BOTS)
    place = tmp_path / "ranges"
    place.mkdir()
    (place / "duckduckbot.json").write_text(text("1.2.3.0/24"))
    (place / "unknown.json").write_text(text("1.2.3.0/24"))
    assert folder.read(place)
    place.rename(tmp_path / "gone")
    assert folder.read(place)
    assert not folder.read(place)
    assert list(folder.ranges.files) == ["duckduckbot.json"]
    assert folder.problems == {"": "cannot be read: No such file or directory"}
    (tmp_path / "gone").rename(place)
    assert folder.read(place)
    assert list(folder.ranges.files) == ["duckduckbot.json"]
    assert folder.problems == {}


def test_a_bad_entry_costs_itself_only(tmp_path: Path) -> None:
    folder = RangeFolder(BOTS)
    (tmp_path / "bingbot.json").symlink_to("bingbot.json")
    (tmp_path / "gptbot.json").symlink_to("nowhere.json")
    (tmp_path / "claudebot.json").mkdir()
    os.mkfifo(tmp_path / "searchbot.json")
    (tmp_path / "duckduckbot.json").write_text(text("1.2.3.0/24"))
    assert folder.read(tmp_path)
    assert list(folder.ranges.files) == ["duckduckbot.json"]
    assert folder.problems == {
        "bingbot.json": "cannot be read: Too many levels of symbolic links",
        "claudebot.json": "is no file",
        "gptbot.json": "cannot be read: No such file or directory",
        "searchbot.json": "is no file",
    }
    (tmp_path / "bingbot.json").unlink()
    (tmp_path / "bingbot.json").write_text(text("1.2.4.0/24"))
    assert folder.read(tmp_path)
    assert sorted(folder.ranges.files) == ["bingbot.json", "duckduckbot.json"]
    (tmp_path / "bingbot.json").unlink()
    (tmp_path / "bingbot.json").symlink_to("bingbot.json")
    folder.read(tmp_path)
    assert "bingbot.json" in folder.ranges.files, "the last good one holds"
    assert "bingbot.json" in folder.problems


def test_a_file_that_was_never_fetched_is_said_to_be_missing(tmp_path: Path) -> None:
    def get(url: str) -> bytes:
        raise OSError("refused")

    folder = RangeFolder(BOTS)
    folder.read(tmp_path)
    folder.refresh({"bingbot.json": RangeSource(url="https://bing.example/bot.json")}, get, NOW)
    folder.read(tmp_path)
    folder.read(tmp_path)
    assert folder.problems == {"bingbot.json": "could not be fetched anew: refused"}
    assert folder.ranges.unread_of(bot("bingbot"))
    folder.refresh({}, get, NOW)
    folder.read(tmp_path)
    assert folder.problems == {}, "nobody wants it any more"


def test_looking_an_address_up_takes_microseconds() -> None:
    file = parse(
        "a.json", text(*(f"60.{high}.{low}.0/24" for high in range(100) for low in range(0, 256, 2))).encode(), at=0.0
    )
    ip = ipaddress.IPv4Address("60.50.2.7")
    begin = time.process_time()
    for _ in range(10_000):
        assert file.span.has(ip)
    assert time.process_time() - begin < 0.5


@pytest.mark.parametrize(
    ("name", "whose", "yes"),
    [
        ("crawl-1.googlebot.com", "Googlebot", True),
        ("geo-crawl-35-247-243-240.geo.googlebot.com", "Googlebot", True),
        ("a.b.googlebot.com", "Googlebot", True),
        ("googlebot.com", "Googlebot", False),
        ("xgooglebot.com", "Googlebot", False),
        ("crawl.googlebot.com.evil.tld", "Googlebot", False),
        ("x\\.googlebot.com", "Googlebot", False),
        ("rate-limited-proxy-66-249-90-77.google.com", "AdsBot-Google", True),
        ("rate-limited-proxy-a.b.google.com", "AdsBot-Google", False),
        ("x.rate-limited-proxy-1.google.com", "AdsBot-Google", False),
        ("rate-limited-proxy-.google.com", "AdsBot-Google", False),
        ("www.google.com", "AdsBot-Google", False),
        ("a." * 130 + "googlebot.com", "Googlebot", False),
    ],
)
def test_fits(name: str, whose: str, yes: bool) -> None:
    assert fits(name, bot(whose)) is yes


@pytest.mark.parametrize(
    ("name", "address", "yes"),
    [
        ("crawl-66-249-66-1.googlebot.com", "66.249.66.1", True),
        ("baiduspider-180-076-015-005.crawl.baidu.com", "180.76.15.5", True),
        ("crawl-66-249-66-11.googlebot.com", "66.249.66.1", False),
        ("crawl.googlebot.com", "66.249.66.1", False),
        ("crawl-2001-4860-4801-10--1.googlebot.com", "2001:4860:4801:10::1", False),
        ("crawl-2001-4860-4801-10-0-0-0-1.googlebot.com", "2001:4860:4801:10::1", True),
    ],
)
def test_derived(name: str, address: str, yes: bool) -> None:
    ip = canonical(address)
    assert ip is not None
    assert derived(name, ip) is yes


@pytest.mark.parametrize(
    ("address", "form", "whole"),
    [
        ("66.249.66.1", "66.249.66.1", "66.249.66.0/24"),
        ("::ffff:66.249.66.1", "66.249.66.1", "66.249.66.0/24"),
        ("2001:DB8::1", "2001:db8::1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::1", "fe80::/64"),
    ],
)
def test_canonical(address: str, form: str, whole: str) -> None:
    ip = canonical(address)
    assert ip is not None
    assert (str(ip), network(ip)) == (form, whole)
