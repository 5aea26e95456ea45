"""Advice: followed in the background, answered from memory, and open when nothing is known."""

from __future__ import annotations

import time

import pytest

from crawlhealth.client import Advice, SiteAdvice
from pushserver import PushServer
from waiting import until

AS_USUAL = SiteAdvice()
SLOW = {"concurrency_ratio": 0.5, "revisit_multiplier": 2.5, "cost_multiplier": 1.5, "paused": False}


def test_advice_is_what_the_exporter_says() -> None:
    with PushServer() as server, Advice(server.url, ["books"]) as advice:
        server.advise("books", '"1"', **SLOW, band="degrading", score=65)
        wanted = SiteAdvice(
            concurrency_ratio=0.5, revisit_multiplier=2.5, cost_multiplier=1.5, band="degrading", score=65
        )
        until(lambda: advice.of("books") == wanted, 10, "the advice is known")


def test_a_change_is_seen_and_what_did_not_change_is_not_sent_again() -> None:
    with PushServer() as server, Advice(server.url, ["books", "shoes"], every=0.02) as advice:
        server.advise("books", '"1"', **SLOW)
        server.advise("shoes", '"1"', paused=False)
        until(lambda: advice.of("books").concurrency_ratio == 0.5, 10, "the advice is known")
        until(lambda: len(server.asked) > 20, 10, "it is asked again")
        assert [status for _, status in server.asked].count(200) == 2
        server.advise("books", '"2"', concurrency_ratio=0.0, paused=True)
        until(lambda: advice.of("books").paused, 10, "the pause is known")
        assert not advice.of("shoes").paused


def test_a_single_site_is_waited_for() -> None:
    with PushServer() as server, Advice(server.url, ["books"], every=0.02) as advice:
        server.advise("books", '"1"', **SLOW)
        until(lambda: advice.of("books") and len(server.asked) > 1, 10, "it is asked again")
        assert server.asked[1] == ("/api/v1/sites/books?wait=30s&etag=%221%22", 304)


def test_nothing_is_known_before_the_first_answer_and_nothing_waits_for_it() -> None:
    with PushServer() as server, Advice(server.url, ["books"]) as advice:
        server.gate.clear()
        began = time.monotonic()
        assert advice.of("books") == AS_USUAL
        assert time.monotonic() - began < 1


@pytest.mark.parametrize("site", ["unknown", "not followed"])
def test_a_site_that_is_not_known_is_crawled_as_usual(site: str) -> None:
    with PushServer() as server, Advice(server.url, ["unknown"], every=0.02) as advice:
        assert advice.of(site) == AS_USUAL
        until(lambda: len(server.asked) > 1, 10, "it was asked")
        assert advice.of(site) == AS_USUAL


def test_advice_outlives_a_short_silence_and_ends_with_a_long_one() -> None:
    with PushServer() as server, Advice(server.url, ["books"], every=0.02, stale_after=1.0) as advice:
        server.advise("books", '"1"', paused=True, concurrency_ratio=0)
        until(lambda: advice.of("books").paused, 10, "the pause is known")
        server.stop()
        assert advice.of("books").paused
        until(lambda: advice.of("books") == AS_USUAL, 10, "the silence has been too long")
        server.start()
        until(lambda: advice.of("books").paused, 10, "the exporter is back")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<html>welcome to the proxy", id="a page"),
        pytest.param(b"[1, 2]", id="a list"),
        pytest.param(b'{"advice": {"concurrency_ratio": "often"}}', id="a word for a number"),
        pytest.param(b'{"advice": null}', id="no advice"),
        pytest.param(b'{"band": "\xff"}', id="no text"),
        pytest.param(b" " * 1_000_001 + b"{}", id="more than any answer"),
    ],
)
def test_an_answer_that_is_none_changes_nothing(body: bytes) -> None:
    with PushServer() as server, Advice(server.url, ["books"], every=0.02) as advice:
        server.advise("books", '"1"', paused=True)
        until(lambda: advice.of("books").paused, 10, "the pause is known")
        server.advice["books"] = ('"2"', body)
        until(lambda: sum(status == 200 for _, status in server.asked) > 2, 10, "it is asked again")
        assert advice.of("books").paused


@pytest.mark.parametrize(
    ("given", "ratio"),
    [
        pytest.param(7.0, 1.0, id="never more than usual"),
        pytest.param(-1.0, 0.0, id="never less than nothing"),
    ],
)
def test_a_ratio_out_of_range_counts_as_the_nearest(given: float, ratio: float) -> None:
    with PushServer() as server, Advice(server.url, ["books"]) as advice:
        server.advise("books", '"1"', concurrency_ratio=given, band="degrading")
        until(lambda: advice.of("books").band == "degrading", 10, "the advice is known")
        assert advice.of("books").concurrency_ratio == ratio


def test_a_multiplier_that_is_no_number_stretches_nothing() -> None:
    with PushServer() as server, Advice(server.url, ["books"]) as advice:
        server.advise("books", '"1"', revisit_multiplier="inf", cost_multiplier="nan", band="degrading")
        until(lambda: advice.of("books").band == "degrading", 10, "the advice is known")
        assert (advice.of("books").revisit_multiplier, advice.of("books").cost_multiplier) == (1.0, 1.0)
