"""What real Scrapy reports of the practice site, to a server that takes it down."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from crawlhealth.demo.behaviour import Behaviour, Kind
from crawlhealth.demo.site import PracticeSite
from crawling import Crawl
from pushserver import PushServer, no_tls


@pytest.fixture
def site() -> Iterator[PracticeSite]:
    with PracticeSite() as site:
        yield site


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def server() -> Iterator[PushServer]:
    with PushServer() as server:
        yield server


def crawled(folder: Path, server: PushServer, pages: list[Any], **settings: Any) -> list[dict[str, Any]]:
    """Crawl these pages to the end; returns what was reported, in the order of the addresses."""
    usual = {"CRAWLHEALTH_URL": server.url, "CRAWLHEALTH_SITES": {"shop": "127.0.0.1"}}
    Crawl(folder, pages, **{**usual, **settings}).wait()
    return sorted(server.items, key=lambda item: str(item.get("url")))


def test_every_request_is_reported_once_with_what_came_of_it(
    tmp_path: Path, site: PracticeSite, server: PushServer
) -> None:
    site.behave(
        Behaviour(kind=Kind.STATUS, status=403, path="/product/2"),
        Behaviour(kind=Kind.RESET, path="/product/3"),
        Behaviour(kind=Kind.REDIRECT_LOGIN, path="/product/4"),
        Behaviour(kind=Kind.CHALLENGE, status=200, path="/product/5"),
        Behaviour(kind=Kind.STATUS, status=404, path="/product/6"),
        Behaviour(kind=Kind.ENCODED, encoding="gzip", path="/product/7"),
    )
    pages = [site.url(f"/product/{number}") for number in range(1, 8)]
    served, refused, reset, login, challenge, gone, packed = crawled(tmp_path, server, pages)
    assert served.items() >= {"site": "shop", "status": 200, "page_type": "parse_product", "records_valid": 1}.items()
    assert 0 < served["seconds"] < 2
    assert served["bytes"] > 500
    assert "body_base64" not in served
    assert (refused["status"], "body_base64" in refused) == (403, True)
    assert (reset["reason"], "status" in reset, "seconds" in reset) == ("connection_reset", False, False)
    assert (login["url"], login["final_url"]) == (pages[3], site.url("/login?next=/product/4"))
    assert "body_base64" in login
    assert (challenge["status"], "body_base64" in challenge) == (200, True)
    assert (gone["status"], "records_valid" in gone, "body_base64" in gone) == (404, False, False)
    assert packed["records_valid"] == 1
    assert packed["bytes"] > 0.5 * served["bytes"]  # as decoded


def test_errors_have_their_reasons(tmp_path: Path, site: PracticeSite, server: PushServer, stack: ExitStack) -> None:
    site.behave(Behaviour(kind=Kind.HANG, path="/product/4"), Behaviour(kind=Kind.TRUNCATED, path="/product/5"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    plain = stack.enter_context(no_tls())
    pages = {
        f"http://127.0.0.1:{port}/product/1": "connection_refused",
        "http://nowhere.invalid/product/2": "dns",
        plain: "tls",
        site.url("/product/4"): "timeout",
        site.url("/product/5"): "truncated_body",
    }
    sites = {"shop": ["127.0.0.1", "nowhere.invalid"]}
    items = crawled(tmp_path, server, list(pages), CRAWLHEALTH_SITES=sites, DOWNLOAD_TIMEOUT=1)
    assert {item["url"]: item["reason"] for item in items} == pages


def test_a_dead_proxy_is_no_matter_of_the_site(tmp_path: Path, server: PushServer) -> None:
    proxy = "http://127.0.0.1:9"
    pages = [{"url": "http://shop.example/product/1", "meta": {"proxy": proxy}}]
    settings = {"CRAWLHEALTH_ROUTES": {proxy: "dc-us"}, "CRAWLHEALTH_SITES": {"shop": "shop.example"}}
    [item] = crawled(tmp_path, server, pages, **settings)
    assert (item["route"], item["reason"]) == ("dc-us", "proxy")


RECORDS: dict[str, dict[str, Any]] = {
    "parse_product": {"records_valid": 1},  # an item is a record
    "parse_nothing": {},  # a page of links has none
    "parse_and_drop": {"records_valid": 1, "records_invalid": 1},  # a dropped item is invalid
    "parse_empty": {"records_valid": 0, "records_invalid": 1, "fields_missing": ["price"]},  # a placeholder is no value
    "parse_badly": {"records_valid": 1},  # it fails half way
    "fail_at_once": {"records_valid": 0},
}


def test_records_are_what_comes_out_of_the_pipelines(tmp_path: Path, site: PracticeSite, server: PushServer) -> None:
    pages = [{"url": site.url("/product/1"), "callback": callback} for callback in RECORDS]
    items = crawled(tmp_path, server, pages, CRAWLHEALTH_REQUIRED_FIELDS=["name", "price"])
    found = {
        item["page_type"]: {name: item[name] for name in item if name.startswith(("records", "fields"))}
        for item in items
    }
    assert found == RECORDS


def test_a_page_that_must_give_records_and_gives_none_is_sent_along(
    tmp_path: Path, site: PracticeSite, server: PushServer
) -> None:
    pages = [{"url": site.url("/product/1"), "callback": "parse_nothing", "meta": {"crawlhealth_page_type": "product"}}]
    [item] = crawled(tmp_path, server, pages, CRAWLHEALTH_RECORD_PAGES=["product"])
    assert (item["page_type"], item["records_valid"], "body_base64" in item) == ("product", 0, True)


def test_each_try_is_a_request_of_its_own(tmp_path: Path, site: PracticeSite, server: PushServer) -> None:
    site.behave(Behaviour(kind=Kind.STATUS, status=503))
    items = crawled(tmp_path, server, [site.url("/product/1")], RETRY_TIMES=2)
    assert [item.get("retries", 0) for item in sorted(items, key=lambda item: item["at"])] == [0, 1, 1]
    assert len(site.requests("/product/1")) == 3


def test_redirects_that_were_followed_are_one_request_with_the_time_of_all(
    tmp_path: Path, site: PracticeSite, server: PushServer
) -> None:
    site.behave(
        Behaviour(kind=Kind.SLOW, seconds=0.3, path="/"), Behaviour(kind=Kind.REDIRECTS, count=2, path="/product/1")
    )
    [item] = crawled(tmp_path, server, [site.url("/product/1")])
    assert item["status"] == 200
    assert item["seconds"] >= 0.3 * len(site.requests())


def test_proxies_are_routes_and_one_without_a_name_is_not_guessed(
    tmp_path: Path, site: PracticeSite, server: PushServer
) -> None:
    proxy = site.url("").rstrip("/")
    pages: list[Any] = [
        {"url": "http://shop.example/product/1", "meta": {"proxy": proxy}},
        {"url": "http://shop.example/product/2", "meta": {"proxy": proxy.replace("127.0.0.1", "localhost")}},
    ]
    sites = {"shop": "shop.example"}
    [item] = crawled(tmp_path, server, pages, CRAWLHEALTH_ROUTES={proxy: "dc-us"}, CRAWLHEALTH_SITES=sites)
    assert (item["route"], item["url"]) == ("dc-us", "http://shop.example/product/1")
    assert "name its route in CRAWLHEALTH_ROUTES" in (tmp_path / "crawl.log").read_text()


def test_what_came_from_a_cache_was_no_request(tmp_path: Path, site: PracticeSite, server: PushServer) -> None:
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    assert len(crawled(tmp_path, server, [site.url("/product/1")], **settings)) == 1
    assert len(crawled(tmp_path, server, [site.url("/product/1")], **settings)) == 1


def test_other_hosts_are_nobodys_and_are_counted(tmp_path: Path, site: PracticeSite, server: PushServer) -> None:
    assert crawled(tmp_path, server, [site.url("/product/1")], CRAWLHEALTH_SITES={"else": "else.example"}) == []
    assert "'crawlhealth/without_site': 1" in (tmp_path / "crawl.log").read_text()


def test_robots_txt_is_a_request_too(tmp_path: Path, site: PracticeSite, server: PushServer) -> None:
    items = crawled(tmp_path, server, [site.url("/product/1")], ROBOTSTXT_OBEY=True)
    assert [item["url"] for item in items] == [site.url("/product/1"), site.url("/robots.txt")]


@pytest.mark.parametrize("bodies", ["all", "none"])
def test_pages_are_sent_as_wanted(bodies: str, tmp_path: Path, site: PracticeSite, server: PushServer) -> None:
    site.behave(Behaviour(kind=Kind.STATUS, status=403, path="/product/2"))
    pages = [site.url("/product/1"), site.url("/product/2")]
    served, refused = crawled(tmp_path, server, pages, CRAWLHEALTH_BODIES=bodies)
    assert ("body_base64" in served, "body_base64" in refused) == (bodies == "all", bodies == "all")
    assert (refused.get("outcome"), refused.get("reason")) == (
        (None, None) if bodies == "all" else ("hard_block", "http_403")
    )


def test_without_an_exporter_the_crawl_goes_on_and_says_what_was_lost(tmp_path: Path, site: PracticeSite) -> None:
    log = Crawl(
        tmp_path,
        [site.url("/product/1")],
        CRAWLHEALTH_URL="http://127.0.0.1:9",
        CRAWLHEALTH_SITES={"shop": "127.0.0.1"},
    ).wait()
    assert "'item_scraped_count': 1" in log
    assert "'crawlhealth/reports/dropped': 1" in log


def test_without_an_address_the_extension_is_off(tmp_path: Path, site: PracticeSite) -> None:
    log = Crawl(tmp_path, [site.url("/product/1")]).wait()
    assert "'item_scraped_count': 1" in log
    assert "CRAWLHEALTH_URL is not set" in log


def test_it_works_with_twisteds_own_reactor_too(tmp_path: Path, site: PracticeSite, server: PushServer) -> None:
    reactor = "twisted.internet.epollreactor.EPollReactor"
    items = crawled(tmp_path, server, [site.url("/product/1")], TWISTED_REACTOR=reactor)
    assert [item["records_valid"] for item in items] == [1]
