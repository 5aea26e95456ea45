"""Windows that are pushed: added to what is known, not put in its place."""

from __future__ import annotations

import json

import pytest

from crawlhealth.config import Config, PushSettings, Route, Site
from crawlhealth.outcome import Source
from crawlhealth.tally import Tally
from crawlhealth.traffic.minutes import WindowGathering
from crawlhealth.traffic.norms import Norms
from crawlhealth.traffic.terms import Terms
from samples import NOW

CONFIG = Config(
    routes={"direct": Route(name="direct")},
    sites={"books": Site(name="books", hosts=("books.example",)), "quotes": Site(name="quotes", hosts=("q.example",))},
    push=PushSettings(),
)


def gathered(*windows: dict[str, object]) -> WindowGathering:
    terms = Terms(config=CONFIG, now=NOW, width=60.0, sites=frozenset({"books"}))
    gathering = WindowGathering(terms, Norms())
    gathering.take([json.dumps(window).encode() for window in windows])
    return gathering


def window(**fields: object) -> dict[str, object]:
    return {"site": "books", "start": NOW - 60, "requests": 100, **fields}


def test_windows_add_up_in_their_slots() -> None:
    first = window(hard_block=3, challenge=20, bytes=5000, latency_seconds={"buckets": {"0.25": 40, "0.5": 77}})
    gathering = gathered(first, window(error=1, records_valid=7), window(start="2026-11-30T11:00:00Z"))
    assert (gathering.report.accepted, gathering.report.rejected) == (3, [])
    batch = gathering.batch()
    minute = batch.slots["books", "direct", Source.TRAFFIC, NOW - 60]
    assert sum(minute.latency.values()) == 77
    minute.latency, minute.latency_sum = {}, 0.0
    assert minute == Tally(ok=176, hard_block=3, challenge=20, error=1, bytes=5000, records_valid=7)
    assert batch.slots["books", "direct", Source.TRAFFIC, NOW - 3600] == Tally(ok=100)
    assert batch.last == {("books", Source.TRAFFIC): NOW}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"challenge": 101}, "fewer than the outcomes named together", id="more outcomes than requests"),
        pytest.param({"site": "nobody"}, "unknown site", id="an unknown site"),
        pytest.param({"site": "quotes"}, "the token may not push the site 'quotes'", id="a site of another token"),
        pytest.param({"source": "canary"}, "source must be traffic", id="canaries are not pushed so"),
        pytest.param({"window_seconds": 3600, "start": NOW - 3600}, "push minutes", id="an hour"),
        pytest.param({"start": NOW - 7 * 3600}, "longer ago than push.max_age", id="too late"),
        pytest.param({"start": NOW + 120}, "in the future", id="too early"),
        pytest.param({"start": NOW - 59}, "not a multiple", id="between two minutes"),
        pytest.param({"latency_seconds": {"p95": 1.0}}, "must have buckets", id="quantiles are for import"),
    ],
)
def test_a_window_that_is_not_taken_is_named(fields: dict[str, object], reason: str) -> None:
    gathering = gathered(window(), window(**fields))
    ((rejected),) = gathering.report.rejected
    assert rejected.index == 1
    assert reason in rejected.reason
    assert [tally.ok for tally in gathering.batch().slots.values()] == [100]
