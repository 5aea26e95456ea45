"""The pages for people, as a client without a browser gets them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import NoReturn

import pytest
import requests
from starlette.applications import Starlette
from starlette.routing import Route

from crawlhealth.history import HistoryError
from crawlhealth.web.pages import site_endpoint
from running import Exporter, plain_session
from web import sample
from web.served import pages, served


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with pages(hostile=True, more=300) as served_at:
        yield served_at


def get(address: str) -> requests.Response:
    with plain_session() as session:
        return session.get(address, timeout=20)


@pytest.mark.parametrize("path", ["/", "/sites/quotes", "/sites/books", "/sites/shop", "/sites/maps"])
def test_a_page_loads_nothing_and_runs_nothing(url: str, path: str) -> None:
    page = get(url + path)
    assert page.status_code == 200
    assert not re.search(r"<(script|img|link|iframe|object|embed|base)\b", page.text, re.IGNORECASE)
    assert not re.search(r"""(src|href|action)=["']?\s*(https?:|//|javascript:|data:)""", page.text, re.IGNORECASE)
    assert not re.search(r"\son\w+\s*=", re.sub(r"&lt;.*?&gt;", "", page.text))
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy


def test_text_of_pages_stays_text(url: str) -> None:
    page = get(url + "/sites/shop").text
    assert "&lt;script&gt;document.title=&#34;owned&#34;&lt;/script&gt;" in page
    assert sample.HOSTILE not in page
    assert sample.HOSTILE not in get(url + "/").text


def test_a_name_that_is_no_site_is_told_so_and_not_believed(url: str) -> None:
    page = get(url + "/sites/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert page.status_code == 404
    plain = get(url + "/sites/%3Cb%3Enone")
    assert plain.status_code == 404
    assert "&lt;b&gt;none" in plain.text


def test_sites_that_need_a_person_stand_first_and_the_rest_is_bounded(url: str) -> None:
    page = get(url + "/").text
    places = [page.index(f'href="sites/{name}"') for name in ("shop", "books", "maps", "quotes")]
    assert places == sorted(places)
    assert page.count('href="sites/') == 2 + 200
    assert "102 more sites are not shown" in page


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("band=resisting", ["shop"], id="a band"),
        pytest.param("q=STORE-029", [f"store-029{digit}" for digit in range(10)], id="part of a name, in any case"),
        pytest.param("band=normal&q=store-0299", ["store-0299"], id="both"),
        pytest.param("band=resisting&q=store", [], id="both, and nothing fits"),
        pytest.param("band=%3Cb%3E&q=maps", ["maps"], id="a band that does not exist is none"),
    ],
)
def test_sites_are_found_by_band_and_name(url: str, query: str, names: list[str]) -> None:
    page = get(f"{url}/?{query}").text
    assert re.findall(r'href="sites/([^"]+)"', page) == names
    assert names or "No site matches." in page


def test_a_page_loads_itself_again_only_when_asked(url: str) -> None:
    assert 'http-equiv="refresh"' not in get(url + "/sites/quotes").text
    assert 'http-equiv="refresh" content="30"' in get(url + "/sites/quotes?refresh=1").text


def test_what_a_person_on_call_needs_is_on_the_page(url: str) -> None:
    page = get(url + "/sites/books").text
    for text in (
        "66<small> of 100",
        "challenge: 24.0% now, 2.0% normally (−25\u00a0points)",
        "It is the site: every route with traffic shows it.",
        "65% of the usual",
        "number equals 51.77, the same on direct, dc-us",
        "cf-mitigated: challenge in header",
        "cloudflare challenge, canary listing through dc-us",
        "score from 9",
        "Accepted as normal since 2026-10-30 12:00:00 UTC by anna: &lt;script&gt;",
        "take back what was accepted 30 d ago",
        "by ben: ",
        "(taken back 2026-10-26 12:00:00 UTC)",
    ):
        assert text in page, text


def test_a_history_that_cannot_be_read_costs_the_page_its_past_only() -> None:
    def broken(_site: str, _now: float) -> NoReturn:
        raise HistoryError("the disk is gone")

    route = Route("/sites/{name}", site_endpoint(sample.exposition, broken))
    with served(Starlette(routes=[route])) as url:
        page = get(url + "/sites/shop")
    assert page.status_code == 200
    assert "17<small> of 100" in page.text


def test_the_exporter_serves_the_page_of_its_site(tmp_path_factory: pytest.TempPathFactory) -> None:
    refusing = Starlette(routes=[])  # everything is a 404
    with served(refusing) as shop:
        port = shop.rpartition(":")[2]
        config = f"""
        sites: {{shop: {{hosts: ["127.0.0.1:{port}"], refusal_status: [404]}}}}
        canaries: [canary.yml]
        history: {{commit_every: 100ms}}
        """
        folder = tmp_path_factory.mktemp("page")
        (folder / "canary.yml").write_text(
            f"site: shop\nevery: 1s\ntimeout: 500ms\ncanaries: [{{name: front, url: 'http://127.0.0.1:{port}/<b>'}}]\n"
        )
        with Exporter(folder, config) as exporter:
            exporter.wait_for("crawlhealth_requests_total", 1, outcome="hard_block")
            page = exporter.get("/sites/shop")
            assert page.status_code == 200
            assert "canary front through direct" in page.text
            assert "&lt;b&gt;" in page.text
            pushed = {
                "url": f"http://127.0.0.1:{port}/item?<i>", "status": 403, "headers": {"cf-mitigated": "challenge"},
                "body": "<title>Just a moment... <u></title>", "at": time.time(),
            }  # fmt: skip
            assert exporter.post("/api/v1/observations", json=[pushed]).json()["accepted"] == 1
            page = exporter.get("/sites/shop")
            assert "cloudflare challenge, traffic through direct" in page.text
            assert "Just a moment..." in page.text
            assert "<u>" not in page.text
            assert 'href="sites/shop"' in exporter.get("/").text
            assert exporter.get("/sites/none").status_code == 404
