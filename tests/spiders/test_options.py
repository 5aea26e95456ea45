"""Settings as people write them, and the site and route of a request."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings

from crawlhealth.scrapy.options import Naming, Options


def options(**written: Any) -> Options:
    found = Options.read(Settings({"CRAWLHEALTH_URL": "http://exporter:9877", **written}))
    assert found is not None
    return found


def test_without_an_exporter_there_is_nothing_to_do() -> None:
    assert Options.read(Settings({"CRAWLHEALTH_SITES": {"shop": "shop.example"}})) is None


@pytest.mark.parametrize(
    ("written", "message"),
    [
        pytest.param({"CRAWLHEALTH_BODIES": "some"}, "refused, all, none", id="a choice that is none"),
        pytest.param({"CRAWLHEALTH_SITES": {"shop": "http://shop.example/"}}, "is a URL", id="a URL for a host"),
    ],
)
def test_a_wrong_setting_is_said(written: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        options(**written)


def test_required_fields_are_of_all_items_or_by_class() -> None:
    assert options(CRAWLHEALTH_REQUIRED_FIELDS="name,price").required == {"*": ("name", "price")}
    assert options(CRAWLHEALTH_REQUIRED_FIELDS={"Product": ["price"]}).required == {"Product": ("price",)}


SITES = {"books": ["books.example", ".books.example"], "shoes": "shoes.example:8080"}


@pytest.mark.parametrize(
    ("url", "meta", "own", "site"),
    [
        pytest.param("https://books.example/x", {}, None, "books", id="by its host"),
        pytest.param("https://www.books.example/x", {}, None, "books", id="by a name below"),
        pytest.param("http://shoes.example:8080/", {}, None, "shoes", id="by host and port"),
        pytest.param("http://shoes.example/", {}, None, None, id="another port is another site"),
        pytest.param("https://cdn.example/", {}, None, None, id="a host of nobody"),
        pytest.param("https://cdn.example/", {}, "books", "books", id="the spider's own"),
        pytest.param("https://cdn.example/", {"crawlhealth_site": "shoes"}, "books", "shoes", id="as the meta says"),
    ],
)
def test_site(url: str, meta: dict[str, Any], own: str | None, site: str | None) -> None:
    assert Naming(options(CRAWLHEALTH_SITES=SITES), own).site(Request(url, meta=meta)) == site


@pytest.mark.parametrize(
    ("meta", "route"),
    [
        pytest.param({}, "direct", id="no proxy"),
        pytest.param({"proxy": None}, "direct", id="a proxy that was taken away"),
        pytest.param({"proxy": "http://us.proxy.example:8000"}, "dc-us", id="by its proxy"),
        pytest.param({"proxy": "http://user:pass@US.proxy.example:8000/"}, "dc-us", id="with who uses it"),
        pytest.param({"proxy": "http://other.example:8000"}, None, id="a proxy without a name"),
        pytest.param({"proxy": "http://other.example:8000", "crawlhealth_route": "res"}, "res", id="as the meta says"),
    ],
)
def test_route(meta: dict[str, Any], route: str | None) -> None:
    naming = Naming(options(CRAWLHEALTH_ROUTES={"http://bot:pw@us.proxy.example:8000": "dc-us"}), None)
    assert naming.route(Request("https://books.example/", meta=meta)) == route


def test_a_star_names_all_other_proxies() -> None:
    naming = Naming(options(CRAWLHEALTH_ROUTES={"*": "pool"}), None)
    assert naming.route(Request("https://books.example/", meta={"proxy": "http://x.example:1"})) == "pool"
