"""Route checks: which canary goes over which routes, politely, and what they tell when a site turns bad."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from crawlhealth.canary import Engine
from crawlhealth.canary.routecheck import RouteChecks, chosen
from crawlhealth.config import Canary, Config, Route, Site
from crawlhealth.demo.site import PracticeSite
from crawlhealth.model import CanaryRun
from crawlhealth.outcome import Outcome
from crawlhealth.secret import Secret
from waiting import until

ROUTES = {name: Route(name=name) for name in ("direct", "a", "b")}
BOOKS = Site(name="books", hosts=("127.0.0.1",), routes=("direct", "a"), min_gap=timedelta(0))
FRONT = Canary(name="front", site="books", url="http://127.0.0.1/")
DEEP = replace(FRONT, name="deep", routes=("direct", "b"))
CONFIG = Config(routes=ROUTES, sites={"books": BOOKS}, canaries=(FRONT, DEEP))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(CONFIG, ("deep", ("direct", "a", "b")), id="the canary with the most routes, over all routes"),
        pytest.param(replace(CONFIG, canaries=(FRONT,)), ("front", ("direct", "a")), id="the routes of the site"),
        pytest.param(replace(CONFIG, canaries=()), None, id="a site without a canary"),
        pytest.param(replace(CONFIG, canaries=(replace(FRONT, fetch="push"),)), None, id="one that only others fetch"),
        pytest.param(
            replace(CONFIG, canaries=(FRONT,), sites={"books": replace(BOOKS, routes=("direct",))}), None,
            id="one route has nothing to be compared with",
        ),
        pytest.param(replace(CONFIG, sites={}), None, id="a site that left the configuration"),
    ],
)  # fmt: skip
def test_what_is_checked(config: Config, expected: tuple[str, tuple[str, ...]] | None) -> None:
    found = chosen("books", config)
    assert (found and (found[0].name, found[1])) == expected


@contextmanager
def checks(answers: dict[str, float | None]) -> Iterator[tuple[RouteChecks, list[str]]]:
    """Route checks that note the routes they go, and get these requests to stay away."""
    tried: list[str] = []

    def run(_: Canary, routes: tuple[str, ...]) -> float | None:
        tried.extend(routes)
        if routes[0] not in answers:
            raise RuntimeError("no such way")
        return answers[routes[0]]

    made = RouteChecks(run)
    yield made, tried
    made.stop()


def test_every_route_is_tried_by_itself() -> None:
    with checks({"direct": None, "a": None, "b": None}) as (made, tried):
        assert made.begin("books", CONFIG)
        until(lambda: tried == ["direct", "a", "b"], 5)


def test_a_route_that_cannot_be_tried_does_not_end_the_check() -> None:
    with checks({"direct": None, "b": None}) as (made, tried):
        made.begin("books", CONFIG)
        until(lambda: tried == ["direct", "a", "b"], 5)


def test_a_site_that_asks_to_stay_away_is_left_alone() -> None:
    with checks({"direct": 30.0, "a": None, "b": None}) as (made, tried):
        made.begin("books", CONFIG)
        made.begin("books", replace(CONFIG, canaries=(FRONT,)))
        until(lambda: tried == ["direct", "direct"], 5, "each check ends with its first route")


def test_nothing_is_begun_once_it_is_stopped() -> None:
    with checks({}) as (made, tried):
        made.stop()
        assert not made.begin("books", CONFIG)
        assert tried == []


def test_the_engine_records_what_a_check_saw() -> None:
    """A real site over a good route and a dead proxy: the runs tell them apart."""
    seen: dict[str, Outcome] = {}

    def record(run: CanaryRun) -> None:
        seen[run.route] = run.classification.outcome

    with PracticeSite() as site:
        routes = {**ROUTES, "a": Route(name="a", proxy=Secret("http://127.0.0.1:9"))}
        canary = replace(FRONT, url=site.url("/"), every=timedelta(days=1))
        config = replace(CONFIG, routes=routes, canaries=(canary,))
        engine = Engine(config, record=record)
        try:
            assert engine.check_routes("books")
            until(lambda: seen == {"direct": Outcome.OK, "a": Outcome.ERROR}, 20, explain=lambda: str(seen))
        finally:
            engine.stop()
