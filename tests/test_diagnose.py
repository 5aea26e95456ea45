"""Where a fault lies, from the evidence of traffic and canaries."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from crawlhealth.diagnose import diagnose
from crawlhealth.model import CanaryRun, CheckFailure, Classification, Evidence, ValueResult
from crawlhealth.outcome import Outcome, Reason
from crawlhealth.verdict import Band, BandState, Baseline, Diagnosis, Rates, Verdict, Window  # fmt: skip
from samples import NOW

NORMAL = Rates(hard_block=0.01, challenge=0.02, soft_block=0.0)
Seen = Mapping[str, tuple[int, float, float]]
"""Requests, refused share and error share by route."""

WRONG = (
    ValueResult(
        name="price", ok=False, missing=False, seen="1",
        failures=(CheckFailure(check="equals", expected="2", seen="1", where="p"),),
    ),
)  # fmt: skip


def verdict(
    routes: Seen | None = None, *, score: int | None = 100, parser: int | None = 100, held: bool = False
) -> Verdict:
    routes = routes or {}
    requests = sum(n for n, _, _ in routes.values())
    refused = sum(n * share for n, share, _ in routes.values()) / requests if requests else 0.0
    rates = replace(NORMAL, hard_block=refused, challenge=0.0)
    return Verdict(
        site="books",
        at=NOW,
        state=BandState(band=Band.DEGRADING if held else Band.NORMAL, held=held),
        score=score,
        parser_score=parser,
        window=Window(seconds=3600, requests=requests, extractions=0, rates=rates) if requests else None,
        baseline=Baseline(hours=300, newest=NOW, rates=NORMAL),
        route_requests={route: n for route, (n, _, _) in routes.items()},
        route_refused={route: share for route, (_, share, _) in routes.items()},
        route_error={route: share for route, (_, _, share) in routes.items()},
    )


def run(
    route: str = "direct",
    outcome: Outcome = Outcome.OK,
    reason: Reason = Reason.SERVED,
    *,
    site: str = "books",
    age: float = 60.0,
    values: tuple[ValueResult, ...] = (),
) -> CanaryRun:
    classification = Classification(outcome=outcome, reason=reason, evidence=Evidence())
    return CanaryRun(site=site, canary="front", route=route, at=NOW - age, classification=classification, values=values)


DNS = (Outcome.ERROR, Reason.DNS)
REFUSED = (Outcome.HARD_BLOCK, Reason.HTTP_403)


@pytest.mark.parametrize(
    ("judged", "runs", "diagnosis"),
    [
        pytest.param(verdict(), [], Diagnosis.NONE, id="nothing is known: nothing is wrong"),
        pytest.param(
            verdict({"direct": (500, 0.03, 0.01), "dc": (300, 0.05, 0.0)}), [run()], Diagnosis.NONE, id="all is well"
        ),
        pytest.param(
            verdict({"direct": (500, 0.5, 0.0), "dc": (300, 0.6, 0.0)}, score=30), [], Diagnosis.SITE,
            id="refusals have risen on all routes: the site",
        ),
        pytest.param(
            verdict({"direct": (500, 0.02, 0.0), "dc": (300, 0.6, 0.0)}, score=70), [], Diagnosis.ROUTE,
            id="one route is refused while the other serves: the route",
        ),
        pytest.param(
            verdict({"direct": (500, 0.02, 0.0), "dc": (300, 0.0, 1.0)}), [], Diagnosis.ROUTE,
            id="a dead proxy costs no health and is the route's",
        ),
        pytest.param(
            verdict({"direct": (500, 0.15, 0.0), "dc": (300, 0.6, 0.0)}, score=60), [], Diagnosis.SITE,
            id="one route fails and the other is on its way: the site",
        ),
        pytest.param(
            verdict({"direct": (500, 0.0, 0.9)}), [], Diagnosis.SITE, id="5xx on the only route: the site is broken"
        ),
        pytest.param(
            verdict({"direct": (500, 0.6, 0.0), "dc": (3, 0.0, 0.0)}, score=40), [run("dc")], Diagnosis.ROUTE,
            id="a canary serves over a route that traffic hardly uses: the other route",
        ),
        pytest.param(
            verdict({"direct": (500, 0.6, 0.0)}, score=40), [run("dc", *REFUSED)], Diagnosis.SITE,
            id="a canary is refused over the other route as well: the site",
        ),
        pytest.param(
            verdict({"direct": (500, 0.6, 0.0)}, score=40), [run("dc", age=7200)], Diagnosis.SITE,
            id="what a canary saw two hours ago proves nothing",
        ),
        pytest.param(
            verdict(score=None), [run("direct", *REFUSED), run("dc")], Diagnosis.ROUTE,
            id="canaries alone can tell a route",
        ),
        pytest.param(
            verdict({"direct": (500, 0.13, 0.0)}, score=75), [], Diagnosis.SITE,
            id="a low score without a failing route is the site's",
        ),
        pytest.param(verdict(score=None, held=True), [], Diagnosis.SITE, id="a held band is the site's"),
        pytest.param(
            verdict({"direct": (500, 0.03, 0.0)}, parser=40), [run()], Diagnosis.PARSER,
            id="extraction alone: the parser",
        ),
        pytest.param(
            verdict({"direct": (500, 0.6, 0.0)}, score=40, parser=0), [], Diagnosis.SITE,
            id="hostility is read before extraction",
        ),
        pytest.param(
            verdict({"direct": (500, 0.03, 0.0)}, parser=40), [run(values=WRONG)], Diagnosis.DECOY,
            id="a wrong value on a page that looks normal: a decoy",
        ),
    ],
)  # fmt: skip
def test_the_diagnosis_follows_the_evidence(judged: Verdict, runs: list[CanaryRun], diagnosis: Diagnosis) -> None:
    assert diagnose(judged, runs, degrading=80, uplink_up=True, fails_elsewhere=lambda _: 0) is diagnosis


@pytest.mark.parametrize(
    ("routes", "elsewhere", "diagnosis"),
    [
        pytest.param({"dc": (500, 0.0, 1.0)}, 2, Diagnosis.ROUTE, id="the only route fails on two other sites too"),
        pytest.param({"dc": (500, 0.0, 1.0)}, 1, Diagnosis.SITE, id="one other site may be chance"),
        pytest.param(
            {"dc": (500, 0.0, 1.0), "direct": (500, 0.0, 1.0)}, 2, Diagnosis.SITE, id="both of two routes fail"
        ),
    ],
)
def test_a_sites_only_route_is_judged_by_other_sites(routes: Seen, elsewhere: int, diagnosis: Diagnosis) -> None:
    found = diagnose(verdict(routes), [], degrading=80, uplink_up=True, fails_elsewhere=lambda _: elsewhere)
    assert found is diagnosis


@pytest.mark.parametrize(
    ("judged", "runs", "diagnosis"),
    [
        pytest.param(verdict({"direct": (50, 0.0, 0.6)}), [], Diagnosis.SELF, id="requests are lost: ours"),
        pytest.param(verdict(), [run("direct", *DNS), run("dc", *DNS)], Diagnosis.SELF, id="no canary gets out: ours"),
        pytest.param(verdict({"direct": (50, 0.0, 0.0)}), [], Diagnosis.NONE, id="a site whose traffic goes on"),
        pytest.param(
            verdict({"direct": (50, 0.6, 0.3)}, score=30), [run("direct", *DNS)], Diagnosis.SITE,
            id="a site that refused before the uplink went down",
        ),
    ],
)  # fmt: skip
def test_no_site_is_blamed_for_our_own_uplink(judged: Verdict, runs: list[CanaryRun], diagnosis: Diagnosis) -> None:
    assert diagnose(judged, runs, degrading=80, uplink_up=False, fails_elsewhere=lambda _: 9) is diagnosis
