"""A run of a canary against the practice site: fetched, read, classified, compared between routes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import pytest

from crawlhealth.canary.extract import Extractor
from crawlhealth.canary.fetch import Fetcher
from crawlhealth.canary.runner import SIZES_KEPT, Runner, Sizes
from crawlhealth.checks import Check, Selector, ValueSpec
from crawlhealth.config import Canary, Config, Fetching, Route, Secret, Site
from crawlhealth.demo.site import PracticeSite
from crawlhealth.model import CanaryRun, Phase
from crawlhealth.outcome import Outcome, Reason
from rawserver import RawServer, answering

NOW = 1_796_040_000.0
TITLE = ValueSpec(
    name="title",
    selector=Selector(kind="css", expression="h1::text"),
    checks=(Check(name="equals", argument="Copper kettle"),),
    required=True,
)
PRICE = ValueSpec(
    name="price",
    selector=Selector(kind="css", expression=".price::text"),
    checks=(Check(name="number", argument={"equals": 89.9}),),
)
SAME = ValueSpec(name="price", selector=PRICE.selector, same_on=("direct", "dc"))


@pytest.fixture(scope="module")
def shop() -> Iterator[PracticeSite]:
    with PracticeSite() as site:
        yield site


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor(1.0) as extractor:
        yield extractor


def canary(
    url: str, *, seconds: float = 15.0, expect: tuple[ValueSpec, ...] = (TITLE, PRICE), **options: object
) -> Canary:
    return Canary(name="kettle", site="shop", url=url, timeout=timedelta(seconds=seconds), expect=expect, **options)  # type: ignore[arg-type]


def run(extractor: Extractor, page: Canary, *, sizes: Sizes | None = None, **routes: Route) -> tuple[CanaryRun, ...]:
    config = Config(
        sites={"shop": Site(name="shop", hosts=("127.0.0.1",))},
        routes={"direct": Route(name="direct"), **routes},
        canaries=(page,),
    )
    runner = Runner(
        config, fetcher=Fetcher(Fetching()), extractor=extractor, sizes=sizes or Sizes({}), clock=lambda: NOW
    )
    return runner.run(page, page.routes)


def test_a_page_that_is_right(shop: PracticeSite, extractor: Extractor) -> None:
    (result,) = run(extractor, canary(shop.url("/product/3"), page_type="product"))
    assert (result.classification.outcome, result.classification.reason) == (Outcome.OK, Reason.SERVED)
    assert result.success
    assert result.extracted is True
    assert [(value.name, value.ok) for value in result.values] == [("title", True), ("price", True)]
    assert (result.at, result.route, result.page_type, result.address) == (NOW, "direct", "product", "127.0.0.1")
    assert result.bytes > 1_000
    assert sum(result.phases.values()) == pytest.approx(result.seconds, abs=0.01)


@pytest.mark.parametrize(
    ("behaviour", "outcome", "reason"),
    [
        ("decoy", Outcome.OK, Reason.SERVED),
        ("redesign", Outcome.OK, Reason.SERVED),
        ("blank_values", Outcome.OK, Reason.SERVED),
        ("encoded:br", Outcome.OK, Reason.SERVED),
        ("encoded:zstd", Outcome.OK, Reason.SERVED),
        ("status:404", Outcome.OK, Reason.HTTP_404),
        ("status:403", Outcome.HARD_BLOCK, Reason.HTTP_403),
        ("status:429", Outcome.HARD_BLOCK, Reason.HTTP_429),
        ("status:503", Outcome.ERROR, Reason.HTTP_503),
        ("reset", Outcome.HARD_BLOCK, Reason.CONNECTION_RESET),
        ("challenge:cloudflare", Outcome.CHALLENGE, Reason.CLOUDFLARE_CHALLENGE),
        ("imperva_stub", Outcome.CHALLENGE, Reason.IMPERVA_CHALLENGE),
        ("redirect_home", Outcome.SOFT_BLOCK, Reason.REDIRECTED_HOME),
        ("endless_redirects", Outcome.ERROR, Reason.TOO_MANY_REDIRECTS),
        ("truncated", Outcome.ERROR, Reason.TRUNCATED_BODY),
        ("bomb:gzip", Outcome.ERROR, Reason.BODY_TOO_LARGE),
        ("big_header", Outcome.ERROR, Reason.INVALID_RESPONSE),
        ("many_attributes", Outcome.ERROR, Reason.PAGE_TOO_COMPLEX),
    ],
)
def test_outcomes(behaviour: str, outcome: Outcome, reason: Reason, shop: PracticeSite, extractor: Extractor) -> None:
    (result,) = run(extractor, canary(shop.url(f"/~{behaviour}/product/3")))
    classification = result.classification
    assert (classification.outcome, classification.reason) == (outcome, reason), classification
    assert (result.values != ()) is (outcome is Outcome.OK)


def test_a_decoy_price_is_suspect_and_a_redesign_is_not(shop: PracticeSite, extractor: Extractor) -> None:
    (decoy,) = run(extractor, canary(shop.url("/~decoy/product/3")))
    assert (decoy.success, decoy.decoy_suspect, decoy.extracted) == (False, True, True)
    (redesign,) = run(extractor, canary(shop.url("/~redesign/product/3")))
    assert (redesign.success, redesign.decoy_suspect, redesign.extracted) == (False, False, False)


def test_a_timeout_is_an_error_and_keeps_its_phases(shop: PracticeSite, extractor: Extractor) -> None:
    (result,) = run(extractor, canary(shop.url("/~hang/product/3"), seconds=0.5))
    assert result.classification.reason is Reason.TIMEOUT
    assert list(result.phases) == [Phase.DNS, Phase.CONNECT, Phase.FIRST_BYTE]
    assert result.seconds == pytest.approx(0.5, abs=0.4)


def test_a_refusal_that_breaks_off_is_a_refusal(extractor: Extractor) -> None:
    with RawServer(answering(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 500\r\n\r\nGo away")) as server:
        (result,) = run(extractor, canary(server.url()))
    assert (result.classification.outcome, result.classification.reason) == (Outcome.HARD_BLOCK, Reason.HTTP_403)


def test_an_empty_page_of_unusual_size_is_a_soft_block(extractor: Extractor) -> None:
    sizes = Sizes({("shop", "kettle", "direct"): [20_000] * SIZES_KEPT})
    page = b"<html><body><p>nothing to see</p></body></html>"
    with RawServer(answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(page) + page)) as server:
        (known,) = run(extractor, canary(server.url()), sizes=sizes)
        (new,) = run(extractor, canary(server.url()))
    assert (known.classification.outcome, known.classification.reason) == (Outcome.SOFT_BLOCK, Reason.SIZE_COLLAPSE)
    assert new.classification.outcome is Outcome.OK


def test_a_challenge_with_a_heading_and_without_errors_is_a_challenge(extractor: Extractor) -> None:
    expect = (
        TITLE,
        ValueSpec(
            name="heading",
            selector=Selector(kind="css", expression="h1"),
            checks=(Check(name="present", argument=True),),
        ),
        ValueSpec(
            name="errors",
            selector=Selector(kind="css", expression=".error"),
            checks=(Check(name="count", argument={"equals": 0}),),
        ),
    )
    page = b"<title>Just a moment...</title><h1>Checking</h1>"
    with RawServer(answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(page) + page)) as server:
        (result,) = run(extractor, canary(server.url(), expect=expect))
    assert result.classification.reason is Reason.CLOUDFLARE_CHALLENGE


def test_only_ok_bodies_make_the_usual_size(shop: PracticeSite, extractor: Extractor) -> None:
    sizes = Sizes({})
    key = ("shop", "kettle", "direct")
    run(extractor, canary(shop.url("/~status:403/product/3")), sizes=sizes)
    assert sizes.usual(key) is None
    run(extractor, canary(shop.url("/no-such-page")), sizes=sizes)
    assert sizes.usual(key) is None, "a 404 is ok, and no page of content"
    (result,) = run(extractor, canary(shop.url("/product/3")), sizes=sizes)
    assert sizes.usual(key) == result.bytes


def test_a_page_without_expectations_is_only_classified(shop: PracticeSite, extractor: Extractor) -> None:
    (result,) = run(extractor, canary(shop.url("/product/3"), expect=()))
    assert result.success
    assert (result.values, result.extracted) == ((), None)


def test_routes_that_disagree_are_all_suspect_and_failed_routes_take_no_part(extractor: Extractor) -> None:
    def site(price: str) -> RawServer:
        page = f"<h1>Kettle</h1><p class=price>{price}</p>".encode()
        return RawServer(answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(page) + page))

    with site("£89.90") as honest, site("£94.00") as decoy, site("89,90 £") as same:
        page = canary(honest.url(), expect=(SAME,), routes=("direct", "dc"))

        def via(server: RawServer) -> Route:
            return Route(name="dc", proxy=Secret(f"http://127.0.0.1:{server.port}"))

        disagreeing = run(extractor, page, dc=via(decoy))
        agreeing = run(extractor, page, dc=via(same))
        alone = run(extractor, page, dc=Route(name="dc", proxy=Secret("http://127.0.0.1:1")))
    assert [(run.route, run.success, run.decoy_suspect) for run in disagreeing] == [
        ("direct", False, True), ("dc", False, True),
    ]  # fmt: skip
    assert all(run.success for run in agreeing)
    assert [run.classification.reason for run in alone] == [Reason.SERVED, Reason.PROXY]
    assert alone[0].success


def test_routes_that_must_agree_are_fetched_together(extractor: Extractor) -> None:
    """Each server answers only once the other has been asked as well."""
    servers: list[RawServer] = []

    def script(connection: socket.socket, server: RawServer) -> None:
        server.head(connection)
        with suppress(TimeoutError):
            for other in servers:
                while not other.received and not server.over.wait(0.01):
                    pass
            page = b"<p class=price>1</p>"
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(page) + page)

    with RawServer(script) as one, RawServer(script) as two:
        servers += [one, two]
        page = canary(one.url(), expect=(SAME,), routes=("direct", "dc"))
        runs = run(extractor, page, dc=Route(name="dc", proxy=Secret(f"http://127.0.0.1:{two.port}")))
    assert [run.success for run in runs] == [True, True], runs
