"""Who a visitor really is: every verdict, against a real DNS server, and never harsher than the evidence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlhealth.searchbots.model import Identity
from searchbots.dnsserver import LAME_NOTHING, LAME_NXDOMAIN, SERVFAIL, SILENT, Zone, nameless, serving
from searchbots.verifying import NOW, Bench, Clock, bot, verifying
from waiting import until

GOOD, GOOD6 = "66.249.66.1", "2001:4860:4801:10::1"


@pytest.fixture(scope="module")
def zone() -> Zone:
    """Every case of an address at once; each has a number of its own."""
    zone = Zone()
    zone.names(GOOD, "crawl-66-249-66-1.googlebot.com")
    zone.put("crawl-66-249-66-1.googlebot.com", "A", GOOD)
    zone.names(GOOD6, "crawl-2001-4860-4801-10--1.googlebot.com")
    zone.put("crawl-2001-4860-4801-10--1.googlebot.com", "AAAA", "2001:4860:4801:0010:0::1")
    zone.names("11.0.0.1", "vm1.cloud.example", "other.example", "crawl-11.googlebot.com")
    zone.put("crawl-11.googlebot.com", "A", "11.9.9.9", "11.0.0.1")
    zone.names("11.0.0.2", "crawl-11-0-0-2.googlebot.com")  # no forward record at all
    zone.names("11.0.0.3", "host3.broadband.example")
    zone.names("11.0.0.4", "crawl-11-0-0-4.googlebot.com.evil.tld")
    zone.put("crawl-11-0-0-4.googlebot.com.evil.tld", "A", "11.0.0.4")
    zone.names("11.0.0.5", "evilgooglebot.com")
    zone.put("evilgooglebot.com", "A", "11.0.0.5")
    zone.names("11.0.0.6", SERVFAIL)
    zone.names("11.0.0.7", SILENT)
    zone.names("11.0.0.8")  # the place exists, without a name
    zone.names("11.0.0.10", "crawl-10.googlebot.com")
    zone.put("crawl-10.googlebot.com", "A", SERVFAIL)
    zone.names("11.0.0.12", "crawl-12.googlebot.com")
    zone.put("crawl-12.googlebot.com", "CNAME", "c12.googlebot.com.")
    zone.put("c12.googlebot.com", "A", "11.0.0.12")
    zone.put("13.0.0.11.in-addr.arpa", "CNAME", "13.sub.0.0.11.in-addr.arpa.")
    zone.put("13.sub.0.0.11.in-addr.arpa", "PTR", "crawl-13.googlebot.com.")
    zone.put("crawl-13.googlebot.com", "A", "11.0.0.13")
    zone.names("11.0.0.14", "crawl-14.googlebot.com")
    zone.put("crawl-14.googlebot.com", "A", "66.249.66.1")  # leads to somebody else
    zone.names(
        "11.0.0.15", *(f"host-{number}.a-long-name-of-a-customer.example" for number in range(40)), "c15.googlebot.com"
    )
    zone.put("c15.googlebot.com", "A", "11.0.0.15")
    zone.names("11.0.0.16", "baiduspider-11-0-0-16.crawl.baidu.com")  # has none, as some of Baidu's
    zone.names("11.0.0.17", "baiduspider-17.crawl.baidu.com")
    zone.put("baiduspider-17.crawl.baidu.com", "A", "66.249.66.1")
    zone.names("11.0.0.18", "Rate-Limited-Proxy-18.GOOGLE.com")
    zone.put("rate-limited-proxy-18.google.com", "A", "11.0.0.18")
    zone.names("11.0.0.19", "rate-limited-proxy-1.evil.google.com")
    zone.put("rate-limited-proxy-1.evil.google.com", "A", "11.0.0.19")
    zone.names("11.0.0.20", "crawl-20.googlebot.com", "crawl-21.googlebot.com")
    zone.put("crawl-20.googlebot.com", "A", SILENT)
    zone.put("crawl-21.googlebot.com", "A", "11.7.7.7")
    zone.names("11.0.0.22", "googlebot.com")
    zone.put("googlebot.com", "A", "11.0.0.22")
    zone.put("23.0.0.11.in-addr.arpa", "CNAME", "23.0-127.broken.example.")  # leads nowhere
    zone.names("11.0.0.24", LAME_NXDOMAIN)
    zone.names("11.0.0.25", "crawl-25.googlebot.com")
    zone.put("crawl-25.googlebot.com", "CNAME", "gone.googlebot.com.")
    zone.names("11.0.0.26", "crawl-26.googlebot.com")
    zone.put("crawl-26.googlebot.com", "A", LAME_NXDOMAIN)
    zone.names("11.0.0.27", "crawl-27.googlebot.com")
    zone.put("crawl-27.googlebot.com", "A", LAME_NOTHING)
    zone.put("crawl-27.googlebot.com", "AAAA")
    return zone


@pytest.fixture(scope="module")
def bench(zone: Zone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with serving(zone) as server, verifying(server, tmp_path_factory.mktemp("data")) as bench:
        yield bench


@pytest.mark.parametrize(
    ("address", "name", "identity"),
    [
        pytest.param(GOOD, "Googlebot", "verified", id="a name that leads back is proof"),
        pytest.param(GOOD6, "Googlebot", "verified", id="so is one of IPv6"),
        pytest.param(f"::ffff:{GOOD}", "Googlebot", "verified", id="IPv4 written as IPv6 is IPv4"),
        pytest.param(GOOD, "bingbot", "fake", id="one operator's machine is not another's bot"),
        pytest.param("11.0.0.1", "Googlebot", "verified", id="every PTR is tried, and every address"),
        pytest.param("11.0.0.2", "Googlebot", "fake", id="a name without any forward record is fake"),
        pytest.param("11.0.0.3", "Googlebot", "fake", id="a foreign domain is fake"),
        pytest.param("11.0.0.4", "Googlebot", "fake", id="googlebot.com.evil.tld is fake though it leads back"),
        pytest.param("11.0.0.5", "Googlebot", "fake", id="evilgooglebot.com does not end on a label boundary"),
        pytest.param("11.0.0.22", "Googlebot", "fake", id="the bare domain is no machine of its"),
        pytest.param("11.0.0.6", "Googlebot", "unverified", id="SERVFAIL proves nothing"),
        pytest.param("11.0.0.7", "Googlebot", "unverified", id="a timeout proves nothing"),
        pytest.param("11.0.0.8", "Googlebot", "unverified", id="an empty answer is no clean NXDOMAIN"),
        pytest.param("11.0.0.9", "Googlebot", "fake", id="a clean NXDOMAIN is fake"),
        pytest.param("11.0.0.10", "Googlebot", "unverified", id="SERVFAIL on the way back proves nothing"),
        pytest.param("11.0.0.12", "Googlebot", "verified", id="a CNAME on the way back is followed"),
        pytest.param("11.0.0.13", "Googlebot", "verified", id="so is one of the address"),
        pytest.param("11.0.0.14", "Googlebot", "fake", id="a name that leads elsewhere is fake"),
        pytest.param("11.0.0.15", "Googlebot", "verified", id="an answer too large for UDP is asked over TCP"),
        pytest.param("11.0.0.20", "Googlebot", "unverified", id="one name unanswered, another wrong: proves nothing"),
        pytest.param("11.0.0.23", "Googlebot", "unverified", id="NXDOMAIN behind a CNAME is no clean one"),
        pytest.param("11.0.0.24", "Googlebot", "unverified", id="nor is one of a server that cannot know"),
        pytest.param("11.0.0.25", "Googlebot", "unverified", id="a name that is an alias of nothing proves nothing"),
        pytest.param("11.0.0.26", "Googlebot", "unverified", id="NXDOMAIN of a lame server on the way back neither"),
        pytest.param("11.0.0.27", "Googlebot", "unverified", id="nor does its empty answer"),
        pytest.param("11.0.0.16", "Baiduspider", "unverified", id="Baidu's names may lack a forward record"),
        pytest.param("11.0.0.17", "Baiduspider", "fake", id="but may not lead elsewhere"),
        pytest.param("11.0.0.9", "Baiduspider", "fake", id="nor be missing"),
        pytest.param("11.0.0.18", "AdsBot-Google", "verified", id="case does not count in names"),
        pytest.param("11.0.0.19", "AdsBot-Google", "fake", id="a pattern's star stays within its label"),
        pytest.param("11.0.0.3", "360Spider", "unverifiable", id="nobody can tell 360Spider"),
        pytest.param("11.0.0.3", "DuckDuckBot", "unverified", id="ranges that are not there prove nothing"),
        pytest.param("10.0.0.1", "Googlebot", "unverified", id="a private address is a proxy's, whoever stands behind"),
        pytest.param("not an address", "Googlebot", "unverified", id="what is no address proves nothing"),
    ],
)  # fmt: skip
def test_identity(bench: Bench, address: str, name: str, identity: str) -> None:
    assert bench.who(address, name) == identity


def test_a_proof_serves_its_network_only_where_names_are_made_from_addresses(tmp_path: Path) -> None:
    zone = Zone()
    zone.names(GOOD, "crawl-66-249-66-1.googlebot.com")
    zone.put("crawl-66-249-66-1.googlebot.com", "A", GOOD)
    zone.names("11.0.0.1", "crawl.googlebot.com")  # is not made from the address
    zone.put("crawl.googlebot.com", "A", "11.0.0.1")
    with serving(zone) as server, verifying(server, tmp_path) as bench:
        assert bench.who(GOOD, "Googlebot") is Identity.VERIFIED
        assert bench.who("11.0.0.1", "Googlebot") is Identity.VERIFIED
        assert bench.verifier.identify("66.249.66.99", bot("Googlebot")) is Identity.VERIFIED
        assert bench.verifier.identify("66.249.67.1", bot("Googlebot")) is None
        assert bench.verifier.identify("11.0.0.2", bot("Googlebot")) is None
        assert bench.verifier.identify("66.249.66.98", bot("bingbot")) is None


@pytest.mark.parametrize(
    ("name", "address", "host", "neighbour", "stranger"),
    [
        pytest.param(
            "CCBot", "18.97.9.168", "18-97-9-168.crawl.commoncrawl.org",
            "18.97.9.10", "ec2-18-97-9-10.compute-1.amazonaws.com", id="CCBot rents",
        ),
        pytest.param(
            "Amazonbot", "54.156.248.117", "54-156-248-117.crawl.amazonbot.amazon", "54.156.248.5", "",
            id="so does Amazonbot",
        ),
        pytest.param(
            "bingbot", "20.79.107.241", "msnbot-20-79-107-241.search.msn.com", "20.79.107.9", "",
            id="bingbot is in Azure too",
        ),
        pytest.param(
            "Googlebot", "35.247.243.240", "geo-crawl-35-247-243-240.geo.googlebot.com",
            "35.247.243.9", "9.243.247.35.bc.googleusercontent.com", id="Googlebot is in Google's cloud too",
        ),
        pytest.param(
            "Bytespider", "47.128.1.2", "bytespider-47-128-1-2.crawl.bytedance.com", "47.128.1.9", "",
            id="Bytespider rents",
        ),
        pytest.param(
            "Baiduspider", "116.179.32.2", "baiduspider-116-179-32-2.crawl.baidu.com", "116.179.32.9", "",
            id="carriers' halls",
        ),
        pytest.param(
            "PetalBot", "114.119.130.2", "petalbot-114-119-130-2.petalsearch.com", "114.119.130.9", "",
            id="Huawei's cloud",
        ),
    ],
)  # fmt: skip
def test_nobody_is_verified_by_a_neighbour_in_a_rented_network(
    tmp_path: Path, name: str, address: str, host: str, neighbour: str, stranger: str
) -> None:
    zone = Zone()
    zone.names(address, host)
    zone.put(host, "A", address)
    if stranger:
        zone.names(neighbour, stranger)
        zone.put(stranger, "A", neighbour)
    with serving(zone) as server, verifying(server, tmp_path) as bench:
        assert bench.who(address, name) is Identity.VERIFIED
        assert bench.verifier.identify(neighbour, bot(name)) is None, "it is looked up itself"
        assert bench.who(neighbour, name) is Identity.FAKE


def test_with_the_dns_dead_for_an_hour_nobody_becomes_fake_and_proof_stays_proof(tmp_path: Path) -> None:
    zone = Zone()
    zone.names(GOOD, "crawl-66-249-66-1.googlebot.com")
    zone.put("crawl-66-249-66-1.googlebot.com", "A", GOOD)
    clock = Clock()
    with serving(zone) as server, verifying(server, tmp_path, clock=clock, timeout=0.1) as bench:
        assert bench.who(GOOD, "Googlebot") is Identity.VERIFIED
        assert bench.who("11.0.0.9", "Googlebot") is Identity.FAKE
        for minute in range(180):  # answers are good for two hours at most: all have to be asked for again
            clock.now += 60
            zone.dead = SERVFAIL if minute % 2 else SILENT
            bench.verifier.tick()
            if minute % 20 == 0:
                bench.verifier.identify(f"11.0.1.{minute}", bot("Googlebot"))
                bench.verifier.identify(GOOD, bot("Googlebot"))
                bench.verifier.identify("11.0.0.9", bot("Googlebot"))
                bench.settle()
                assert bench.verifier.identify(f"11.0.1.{minute}", bot("Googlebot")) is Identity.UNVERIFIED
        assert bench.who(GOOD, "Googlebot") is Identity.VERIFIED
        assert bench.who("11.0.0.9", "Googlebot") is Identity.UNVERIFIED
        zone.dead = None
        for _ in range(61):
            clock.now += 60
            bench.verifier.tick()
            bench.settle()
        assert bench.verifier.identify("11.0.1.160", bot("Googlebot")) is Identity.FAKE, "asked again without a visit"
        assert bench.verifier.lookups["failed"] > 0


def test_answers_outlive_a_restart_and_end_after_two_hours(tmp_path: Path) -> None:
    zone = Zone()
    zone.names(GOOD, "crawl-66-249-66-1.googlebot.com")
    zone.put("crawl-66-249-66-1.googlebot.com", "A", GOOD)
    zone.names("11.0.0.6", SERVFAIL)
    with serving(zone) as server:
        with verifying(server, tmp_path) as bench:
            assert bench.who(GOOD, "Googlebot") is Identity.VERIFIED
            assert bench.who("11.0.0.9", "Googlebot") is Identity.FAKE
            assert bench.who("11.0.0.6", "Googlebot") is Identity.UNVERIFIED
        asked = zone.asked.total()
        with verifying(server, tmp_path, clock=Clock(NOW + 3500)) as bench:
            assert bench.verifier.identify(GOOD, bot("Googlebot")) is Identity.VERIFIED
            assert bench.verifier.identify("11.0.0.9", bot("Googlebot")) is Identity.FAKE
            assert bench.verifier.identify("11.0.0.6", bot("Googlebot")) is None, "a failure is not worth keeping"
            bench.settle()
        assert zone.asked.total() == asked + 1
        with verifying(server, tmp_path, clock=Clock(NOW + 7300)) as bench:
            bench.verifier.identify(GOOD, bot("Googlebot"))
            bench.settle()
        assert zone.asked.total() == asked + 3, "asked for again: its name, and back"


def test_a_damaged_file_of_answers_costs_look_ups_only(tmp_path: Path) -> None:
    (tmp_path / "lookups.db").write_bytes(b"no database" * 1000)
    zone = Zone()
    with serving(zone) as server, verifying(server, tmp_path) as bench:
        assert bench.who("11.0.0.9", "Googlebot") is Identity.FAKE


def test_five_thousand_new_addresses_stay_within_the_bounds(tmp_path: Path) -> None:
    with nameless() as server, verifying(server, tmp_path, concurrency=32, timeout=2.0) as bench:
        googlebot = bot("Googlebot")
        begin = time.perf_counter()
        for number in range(5000):
            assert bench.verifier.identify(f"12.{number >> 8}.{number & 255}.7", googlebot) is None
        reading = time.perf_counter() - begin
        bench.settle(60)
        fakes = sum(
            bench.verifier.identify(f"12.{number >> 8}.{number & 255}.7", googlebot) is Identity.FAKE
            for number in range(5000)
        )
        assert fakes == 5000
        assert bench.verifier.resolver.most_running <= 32
        assert bench.verifier.lookups.total() == 5000
        assert reading < 3.0, "a reader is not slowed down"


def test_a_flood_is_refused_and_not_piled_up(tmp_path: Path) -> None:
    zone = Zone()
    zone.dead = SILENT
    with serving(zone) as server, verifying(server, tmp_path, concurrency=4, timeout=0.5) as bench:
        for number in range(12_000):
            bench.verifier.identify(f"12.{number >> 8}.{number & 255}.7", bot("Googlebot"))
        assert bench.verifier.resolver.waiting <= 10_000 + 4
        assert bench.verifier.refused >= 1_900


def test_nothing_is_waited_for_while_a_look_up_hangs(tmp_path: Path) -> None:
    zone = Zone()
    zone.dead = SILENT
    with serving(zone) as server, verifying(server, tmp_path, timeout=5.0) as bench:
        begin = time.perf_counter()
        assert bench.verifier.identify(GOOD, bot("Googlebot")) is None
        assert time.perf_counter() - begin < 0.5
        until(lambda: zone.asked.total() > 0, 5, "it is asked")
