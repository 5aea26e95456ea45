"""A crawler that asks the wrong shard: the advice it had holds on for a while, and its log says what is wrong."""

from __future__ import annotations

import json
import logging

import pytest

from crawlhealth.client import Advice, SiteAdvice
from crawlhealth.client.misdirected import SAY_AGAIN, Misdirected, Owner
from pushserver import PushServer
from waiting import until


def test_it_is_said_once_and_again_after_a_time_and_for_every_new_site(caplog: pytest.LogCaptureFixture) -> None:
    sites = Misdirected("http://one")
    sites.complain(0)
    sites.note("books", Owner(2, 3))
    for now in (0, 1, SAY_AGAIN - 1, SAY_AGAIN, SAY_AGAIN + 1):
        sites.complain(now)
    assert len(caplog.records) == 2
    sites.note("shoes", Owner(3, 3))
    sites.complain(SAY_AGAIN + 2)
    assert "http://one, which is another shard: books is of shard 2 of 3, shoes is of shard 3 of 3;" in caplog.text
    sites.note("books", None)
    sites.note("shoes", None)
    sites.complain(SAY_AGAIN + 3)
    assert len(caplog.records) == 3
    sites.note("books", Owner(2, 3))
    sites.complain(SAY_AGAIN + 4)
    assert len(caplog.records) == 4
    assert {record.levelno for record in caplog.records} == {logging.ERROR}


def test_many_sites_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    sites = Misdirected("http://one")
    for number in range(1000):
        sites.note(f"shop{number:04}", Owner(2, 3))
    sites.complain(0)
    [record] = caplog.records
    assert "shop0004 is of shard 2 of 3, and 995 sites more are of others;" in record.getMessage()
    assert len(record.getMessage()) < 500


def test_an_answer_of_another_shard_takes_no_pause_back_before_it_is_stale(caplog: pytest.LogCaptureFixture) -> None:
    with PushServer() as server, Advice(server.url, ["books"], every=0.02, stale_after=1.0) as advice:
        server.advise("books", '"1"', paused=True, concurrency_ratio=0)
        until(lambda: advice.of("books").paused, 10, "the pause is known")
        neutral = {"concurrency_ratio": 1.0, "paused": False}
        moved = {"error": "elsewhere", "advice": neutral, "shard": {"number": 2, "count": 3}}
        server.advice["books"] = ("", json.dumps(moved).encode())
        until(lambda: "books is of shard 2 of 3" in caplog.text, 10, "it is said")
        assert advice.of("books").paused
        until(lambda: advice.of("books") == SiteAdvice(), 10, "it has been too long")
        server.advise("books", '"2"', concurrency_ratio=0.5)
        until(lambda: advice.of("books").concurrency_ratio == 0.5, 10, "the exporter has it again")
