"""The practice site answers as it is told: every test and the demo lean on it."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import parsel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.demo.behaviour import Behaviour, Kind, Stack, of_prefix, parse
from crawlhealth.demo.certificates import Flaw, identity
from crawlhealth.demo.hostile import BOMB_BYTES, LARGE_BYTES
from crawlhealth.demo.processes import Patience, Process
from crawlhealth.demo.refusals import VENDORS
from crawlhealth.demo.site import PracticeSite


@pytest.fixture(scope="module")
def shared() -> Iterator[PracticeSite]:
    with PracticeSite() as site:
        yield site


@pytest.fixture
def site(shared: PracticeSite) -> PracticeSite:
    shared.behave()
    shared.forget()
    return shared


def ask(site: PracticeSite, path: str, method: str = "GET", body: str | None = None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=5)
    connection.request(method, path, body=body, headers={"Connection": "close"})
    return connection.getresponse()


def page(site: PracticeSite, path: str) -> parsel.Selector:
    return parsel.Selector(ask(site, path).read().decode())


def raw(site: PracticeSite, path: str) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", site.port), timeout=5)
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: shop\r\n\r\n".encode())
    return sock


def test_the_listing_shows_twenty_products_with_their_prices(site: PracticeSite) -> None:
    listing = page(site, "/")
    assert len(listing.css("article.product")) == 20
    assert listing.css("article.product p.price::text").get() == "£48.50"


def test_a_product_shows_one_price_in_its_markup_its_json_ld_and_the_api(site: PracticeSite) -> None:
    product = page(site, "/product/7")
    offer = json.loads(product.css('script[type="application/ld+json"]::text').get(""))["offers"]
    api = json.loads(ask(site, "/api/products.json").read())
    assert product.css("p.price::text").get() == "£119.00"
    assert offer["price"] == "119.00"
    assert api["products"][6]["price"] == 119.0


@pytest.mark.parametrize(
    ("kind", "price"),
    [
        pytest.param(Kind.DECOY, "£139.23", id="a decoy price stands in the usual markup"),
        pytest.param(Kind.REDESIGN, None, id="a redesign leaves nothing where the price was"),
        pytest.param(Kind.BLANK_VALUES, None, id="blank values keep the markup and drop the text"),
    ],
)
def test_changes_of_a_page(site: PracticeSite, kind: Kind, price: str | None) -> None:
    site.behave(Behaviour(kind=kind))
    assert page(site, "/product/7").css("p.price::text").get() == price


def test_a_redesign_keeps_content_and_size(site: PracticeSite) -> None:
    before = ask(site, "/").read()
    after = ask(site, "/~redesign/").read()
    assert b"\xc2\xa348.50" in after
    assert 0.8 < len(after) / len(before) < 1.25


def test_a_shrunken_page_and_an_empty_listing_are_smaller_than_half_and_bare(site: PracticeSite) -> None:
    usual = len(ask(site, "/").read())
    assert len(ask(site, "/~shrunken/").read()) < usual / 4
    assert page(site, "/~empty_listing/").css("article.product").get() is None


@pytest.mark.parametrize(
    ("path", "status", "header"),
    [
        pytest.param("/~status:403/", 403, None, id="403"),
        pytest.param("/~status:503/", 503, None, id="503"),
        pytest.param("/~challenge/", 403, ("cf-mitigated", "challenge"), id="a challenge comes with 403"),
        pytest.param("/~block_page/", 200, None, id="a block page comes with 200"),
        pytest.param("/~block_page:403/", 403, None, id="a block page may come with 403"),
        pytest.param("/~redirect_login/product/1", 302, ("location", "/login?next=/product/1"), id="to the login"),
        pytest.param("/~redirect_home/product/1", 302, ("location", "/"), id="to the home page"),
        pytest.param("/~redirects:2/?hop=1", 302, ("location", "?hop=2"), id="redirects count their hops"),
        pytest.param("/~redirects:2/?hop=2", 200, None, id="redirects end at a page"),
        pytest.param("/~endless_redirects/?hop=999", 302, ("location", "?hop=1000"), id="endless redirects do not end"),
        pytest.param("/~nonsense/", 400, None, id="an unknown behaviour is said to be one"),
        pytest.param("/product/21", 404, None, id="there is no product 21"),
        pytest.param("/product/²", 404, None, id="a superscript is no number"),
    ],
)
def test_status_and_header(site: PracticeSite, path: str, status: int, header: tuple[str, str] | None) -> None:
    response = ask(site, path.replace("²", "%C2%B2"))
    assert response.status == status
    if header is not None:
        assert response.getheader(header[0]) == header[1]


def test_a_429_carries_its_retry_after(site: PracticeSite) -> None:
    site.behave(Behaviour(kind=Kind.STATUS, status=429, retry_after=7))
    assert ask(site, "/").getheader("retry-after") == "7"


@pytest.mark.parametrize("vendor", sorted(VENDORS))
def test_every_vendor_challenges_in_its_own_way(site: PracticeSite, vendor: str) -> None:
    site.behave(Behaviour(kind=Kind.CHALLENGE, vendor=vendor))
    response = ask(site, "/")
    assert response.status == VENDORS[vendor].status
    assert response.read().decode() == VENDORS[vendor].body


def test_a_reset_is_a_reset_and_a_close_is_an_end(site: PracticeSite) -> None:
    with pytest.raises(ConnectionResetError), raw(site, "/~reset/") as sock:
        sock.recv(1)
    with raw(site, "/~close/") as sock:
        assert sock.recv(1) == b""


def test_a_hanging_request_holds_up_no_other(site: PracticeSite) -> None:
    with raw(site, "/~hang/") as sock:
        assert ask(site, "/").status == 200
        sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            sock.recv(1)


def test_a_truncated_body_ends_before_its_length(site: PracticeSite) -> None:
    with pytest.raises(http.client.IncompleteRead):
        ask(site, "/~truncated/").read()


def test_a_drip_comes_byte_by_byte(site: PracticeSite) -> None:
    with raw(site, "/~drip_head:0.01/") as sock:
        assert sock.recv(1000) == b"H"
        assert sock.recv(1000) == b"T"


def test_the_large_body_is_as_long_as_it_says_and_the_endless_one_says_no_length(site: PracticeSite) -> None:
    assert ask(site, "/~large/").getheader("content-length") == str(LARGE_BYTES)
    endless = ask(site, "/~endless/")
    assert endless.getheader("content-length") is None
    assert len(endless.read(3_000_000)) == 3_000_000
    endless.close()


def test_a_bomb_is_small_until_it_is_unpacked(site: PracticeSite) -> None:
    body = ask(site, "/~bomb:gzip/").read()
    unpacker = zlib.decompressobj(wbits=31)
    assert len(body) < BOMB_BYTES / 500
    assert len(unpacker.decompress(body, 10_000_000)) == 10_000_000
    assert not unpacker.eof


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        pytest.param(Kind.NESTED_TAGS, 3_000_000, id="a million nested tags"),
        pytest.param(Kind.MANY_ATTRIBUTES, 700_000, id="100,000 attributes"),
        pytest.param(Kind.NESTED_DIVS, 160_000, id="20,000 paragraphs within 240 divs"),
        pytest.param(Kind.CATASTROPHIC, 80_000, id="text for backtracking"),
        pytest.param(Kind.BAD_ENCODING, 4_000, id="invalid encoding"),
        pytest.param(Kind.NUL_BYTES, 7_000, id="NUL bytes"),
    ],
)
def test_hostile_bodies_come_whole(site: PracticeSite, kind: Kind, least: int) -> None:
    response = ask(site, f"/~{kind}/")
    assert response.status == 200
    assert len(response.read()) >= least


def test_shares_are_exact_and_stack(site: PracticeSite) -> None:
    site.behave(
        Behaviour(kind=Kind.CHALLENGE, share=0.30),
        Behaviour(kind=Kind.STATUS, share=0.25),
        Behaviour(kind=Kind.SLOW, share=0.5, seconds=0.0),
    )
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=5)
    for _ in range(200):
        connection.request("GET", "/")
        connection.getresponse().read()
    kinds = Counter(kind for logged in site.requests() for kind in logged.behaviours)
    assert 59 <= kinds[Kind.CHALLENGE] <= 60
    assert 49 <= kinds[Kind.STATUS] <= 50
    assert kinds[Kind.SLOW] == 100


@given(st.lists(st.integers(0, 100), min_size=1, max_size=5).filter(lambda shares: sum(shares) <= 100))
def test_replacing_behaviours_get_their_shares_of_all_requests(shares: list[int]) -> None:
    stack = Stack()
    stack.replace(
        Behaviour(kind=Kind.STATUS, status=400 + index, share=share / 100) for index, share in enumerate(shares)
    )
    seen = Counter(one.status for _ in range(1000) for one in stack.pick("/", "shop", False))
    for index, share in enumerate(shares):
        assert abs(seen[400 + index] - 10 * share) <= len(shares) + 1


def test_a_behaviour_keeps_to_its_path_host_and_way(site: PracticeSite) -> None:
    site.behave(
        Behaviour(kind=Kind.STATUS, status=401, path="/product/1"),
        Behaviour(kind=Kind.STATUS, status=403, host="other"),
        Behaviour(kind=Kind.STATUS, status=429, via="proxy"),
    )
    assert ask(site, "/product/1").status == 401
    assert ask(site, "/product/2").status == 200
    assert ask(site, "http://shop.invalid:80/product/2").status == 429
    assert ask(site, "http://other:80/product/2").status == 403


def test_behaviour_is_switched_and_reported_over_http(site: PracticeSite) -> None:
    assert ask(site, "/-/behaviour", "PUT", '{"kind": "status", "status": 451}').status == 200
    assert ask(site, "/").status == 451
    assert json.loads(ask(site, "/-/behaviour").read())[0]["status"] == 451
    ask(site, "/-/behaviour", "DELETE")
    assert ask(site, "/").status == 200


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        pytest.param([{"kind": "statuss"}], "statuss", id="an unknown kind"),
        pytest.param([{"kind": "slow", "second": 1}], "second", id="an unknown key"),
        pytest.param({"kind": "slow", "share": 2}, "share", id="a share over one"),
        pytest.param([3], "int", id="no object"),
    ],
)
def test_a_wrong_behaviour_is_refused_with_its_reason(written: object, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse(written)


def test_a_path_names_its_own_behaviour() -> None:
    assert of_prefix("~slow:0.25") == Behaviour(kind=Kind.SLOW, seconds=0.25)
    assert of_prefix("product") is None
    with pytest.raises(ValueError, match="no argument"):
        of_prefix("~reset:3")


def test_the_log_tells_what_was_asked_and_how_it_was_answered(site: PracticeSite) -> None:
    ask(site, "/~status:503/product/4?x=1").read()
    (logged,) = site.requests()
    assert (logged.path, logged.query, logged.behaviours) == ("/product/4", "x=1", (Kind.STATUS,))
    assert json.loads(ask(site, "/-/requests").read())[0]["path"] == "/product/4"


def test_one_port_serves_many_addresses() -> None:
    with PracticeSite(addresses=[f"127.0.9.{n}" for n in range(1, 40)]) as many:
        connection = http.client.HTTPConnection("127.0.9.33", many.port, timeout=5)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200


def test_a_port_that_is_taken_is_an_error(site: PracticeSite) -> None:
    with pytest.raises(OSError, match="in use"), PracticeSite(port=site.port):
        pass


def test_leaving_ends_open_connections_and_the_thread() -> None:
    before = threading.active_count()
    with PracticeSite() as short:
        sock = raw(short, "/~hang/")
        assert ask(short, "/").status == 200
    with sock:
        assert sock.recv(1) == b""
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("flaw", "problem"),
    [
        pytest.param(Flaw.NONE, None, id="a good certificate verifies"),
        pytest.param(Flaw.EXPIRED, "expired", id="an expired one does not"),
        pytest.param(Flaw.WRONG_HOST, "not valid for", id="one of another host does not"),
        pytest.param(Flaw.SELF_SIGNED, "self.signed", id="one that signed itself does not"),
    ],
)
def test_certificates_are_as_good_as_they_say(tmp_path: Path, flaw: Flaw, problem: str | None) -> None:
    made = identity(flaw, tmp_path, now=datetime.now(UTC))
    client = ssl.create_default_context(cafile=str(made.ca_file))
    with PracticeSite(tls=made.context) as site:
        connection = http.client.HTTPSConnection("127.0.0.1", site.port, context=client, timeout=5)
        if problem is None:
            connection.request("GET", "/")
            assert connection.getresponse().status == 200
        else:
            with pytest.raises(ssl.SSLCertVerificationError, match=problem):
                connection.connect()
    assert (made.not_after < datetime.now(UTC).timestamp()) is (flaw is Flaw.EXPIRED)


def test_the_site_alone_runs_until_a_signal_and_says_where_it_is(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from crawlhealth.demo import site; site.main(0)"]
    with Patience() as patience, Process("site", command, tmp_path) as process:
        patience.until(lambda: "practice site at" in process.log(), 20, "the site says where it is")
        assert process.answers(process.log().split()[3])
    assert process.status() == 0


def test_a_taken_port_is_said_in_one_line(site: PracticeSite, tmp_path: Path) -> None:
    command = [sys.executable, "-c", f"from crawlhealth.demo import site; site.main({site.port})"]
    with Patience() as patience, Process("site", command, tmp_path) as process:
        patience.until(lambda: process.status() is not None, 20, "it gives up")
    (line,) = process.log().splitlines()
    assert line.startswith(f"cannot listen on port {site.port}: ")
    assert process.status() == 1
