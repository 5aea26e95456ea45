"""Whether our own connection is down, from canaries and from traffic."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from crawlhealth.config import UplinkSettings
from crawlhealth.model import CanaryRun, Classification, Evidence
from crawlhealth.outcome import Outcome, Reason
from crawlhealth.uplink import TrafficWatch, canaries_get_out
from samples import NOW

DNS = (Outcome.ERROR, Reason.DNS)
REFUSED = (Outcome.HARD_BLOCK, Reason.HTTP_403)


def run(
    route: str = "direct", outcome: Outcome = Outcome.OK, reason: Reason = Reason.SERVED, *, site: str = "books",
    age: float = 60.0,
) -> CanaryRun:  # fmt: skip
    classification = Classification(outcome=outcome, reason=reason, evidence=Evidence())
    return CanaryRun(site=site, canary="front", route=route, at=NOW - age, classification=classification)


THREE = [run("direct", *DNS, site=site, age=40) for site in ("a", "b", "c")]


@pytest.mark.parametrize(
    ("runs", "works"),
    [
        pytest.param([], True, id="nothing was tried"),
        pytest.param(
            [replace(each, at=NOW - 1) for each in THREE], False,
            id="they fail again and again: the last success says since when",
        ),
        pytest.param(THREE, False, id="three sites at once, and nothing answers"),
        pytest.param(THREE[:2], True, id="two sites may be down"),
        pytest.param([*THREE[:2], run("dc", *DNS, site="b", age=40)], True, id="two routes of a site are one site"),
        pytest.param([*THREE, run(site="d", age=30)], True, id="another site answered since"),
        pytest.param([*THREE, run("direct", *REFUSED, site="d", age=30)], True, id="a refusal is an answer"),
        pytest.param([*THREE, run(site="d", age=300)], False, id="it answered, but before that"),
        pytest.param(
            [*THREE, run("dc", Outcome.ERROR, Reason.PROXY, site="d", age=30)], False,
            id="the error of a proxy proves no uplink",
        ),
        pytest.param(
            [*(replace(each, at=NOW - 5) for each in THREE), run(site="d", age=20)], True, id="it is not long enough"
        ),
        pytest.param(
            [run("direct", *DNS, site="a", age=9), *(run("direct", *REFUSED, site=s, age=40) for s in "bc")], True,
            id="three sites fail, but not all of them to connect",
        ),
    ],
)  # fmt: skip
def test_the_uplink_is_down_when_several_sites_fail_at_once_and_nothing_answers(
    runs: list[CanaryRun], works: bool
) -> None:
    settings = UplinkSettings(after=timedelta(seconds=30))
    assert canaries_get_out(runs, last_success=NOW - 60, now=NOW, settings=settings) is works


@pytest.mark.parametrize(
    ("last_success", "works"),
    [
        pytest.param(None, False, id="nothing ever succeeded"),
        pytest.param(NOW - 50, False, id="something did before"),
        pytest.param(NOW - 35, True, id="something did since"),
    ],
)
def test_a_success_since_then_proves_the_uplink(last_success: float | None, works: bool) -> None:
    settings = UplinkSettings(after=timedelta(seconds=30))
    assert canaries_get_out(THREE, last_success=last_success, now=NOW, settings=settings) is works


SETTINGS = UplinkSettings(sites=3, after=timedelta(seconds=30))
Step = tuple[dict[str, int], int]
"""Connection errors by site, and answers, since the step before; fifteen seconds pass."""
ALL = {"a": 5, "b": 5, "c": 5}


@pytest.mark.parametrize(
    ("steps", "ups"),
    [
        pytest.param([({}, 10), ({}, 10), ({}, 0)], [1, 1, 1], id="all is answered, or nobody asks"),
        pytest.param([({}, 10), (ALL, 0), (ALL, 0), (ALL, 0)], [1, 1, 1, 0], id="three sites and nothing answers"),
        pytest.param([({}, 10), (ALL, 0), ({}, 0), ({}, 0)], [1, 1, 1, 0], id="crawlers that gave up do not end it"),
        pytest.param([({}, 10), (ALL, 0), (ALL, 0), (ALL, 1)], [1, 1, 1, 1], id="one answer proves the connection"),
        pytest.param(
            [({}, 10), (ALL, 0), (ALL, 0), (ALL, 0), (ALL, 3), (ALL, 0)], [1, 1, 1, 0, 1, 1],
            id="an answer ends it, and it begins anew",
        ),
        pytest.param([({}, 10), *[({"a": 5, "b": 5}, 0)] * 4], [1, 1, 1, 1, 1], id="two sites may be down"),
        pytest.param(
            [({}, 10), ({"a": 5}, 0), ({"b": 5}, 0), ({"c": 1}, 0)], [1, 1, 1, 0], id="one site after another counts"
        ),
        pytest.param([({}, 10), *[(ALL, 2)] * 4], [1, 1, 1, 1, 1], id="lost ones beside one that serves"),
        pytest.param([(ALL, 0)], [1], id="what came before the start says nothing"),
    ],
)  # fmt: skip
def test_traffic_tells_when_nothing_gets_out(steps: list[Step], ups: list[int]) -> None:
    watch = TrafficWatch()
    lost: dict[tuple[str, Reason], float] = {}
    counts = {"requests": 0.0}
    found = []
    for number, (errors, answers) in enumerate(steps):
        for site, count in errors.items():
            lost[site, Reason.DNS] = lost.get((site, Reason.DNS), 0) + count
        counts["requests"] += sum(errors.values()) + answers
        now = NOW + 15 * number
        found.append(int(watch.gets_out(dict(lost), lambda: counts["requests"], now=now, settings=SETTINGS)))
    assert found == ups


def test_a_dead_proxy_says_nothing_of_our_uplink() -> None:
    watch = TrafficWatch()
    for number in range(5):
        lost = {(site, Reason.PROXY): 5.0 * number for site in "abc"}
        assert watch.gets_out(lost, lambda: 0.0, now=NOW + 15 * number, settings=SETTINGS)
