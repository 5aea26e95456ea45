"""What follows from a verdict: maintenance, overrides, and what other sites tell of a route."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawlhealth.conclude import Surroundings, conclude, left_behind
from crawlhealth.config import Config, Maintenance, Site
from crawlhealth.verdict import Advice, Band, BandState, Diagnosis, Override, OverrideKind, Verdict
from samples import HOUR, NOW

CONFIG = Config(sites={name: Site(name=name, hosts=(f"{name}.example",)) for name in ("books", "quotes")})
STOPPED = replace(
    CONFIG, maintenance=(Maintenance(start="2026-11-30T11:00:00Z", end="2026-11-30T13:00:00Z", sites=("books",)),)
)
BEFORE = Verdict(
    site="books", at=NOW - 15, state=BandState(band=Band.NORMAL, since=NOW - HOUR, under_degrading=NOW - 60), score=70
)
NOW_BAD = replace(BEFORE, at=NOW, state=BandState(band=Band.RESISTING, since=NOW, evidence_at=NOW), score=10)


def test_under_maintenance_a_band_stands_still_and_its_clocks_start_again() -> None:
    verdict = conclude(NOW_BAD, BEFORE, Surroundings(), STOPPED)
    assert verdict.state == BandState(band=Band.NORMAL, since=NOW - HOUR, evidence_at=NOW)
    assert (verdict.maintenance, verdict.score, verdict.advice) == (True, 10, Advice())


def test_a_site_that_is_not_under_maintenance_changes_its_band() -> None:
    verdict = conclude(replace(NOW_BAD, site="quotes"), BEFORE, Surroundings(), STOPPED)
    assert (verdict.maintenance, verdict.band, verdict.advice.paused) == (False, Band.RESISTING, True)


def test_a_bad_band_goes_on_after_maintenance_as_it_was() -> None:
    eased = BandState(band=Band.DEGRADING, since=NOW - HOUR, eased_at=NOW - 900, shown=1800.0, over_degrading=NOW - 60)
    verdict = conclude(NOW_BAD, replace(BEFORE, state=eased), Surroundings(), STOPPED)
    assert verdict.state == BandState(
        band=Band.DEGRADING, since=NOW - HOUR, evidence_at=NOW, eased_at=NOW - 900, shown=1800.0
    )


def test_the_first_look_after_maintenance_moves_no_band_and_the_second_does() -> None:
    resting = replace(BEFORE, maintenance=True)
    first = conclude(NOW_BAD, resting, Surroundings(), CONFIG)
    assert (first.band, first.maintenance) == (Band.NORMAL, False)
    assert conclude(replace(NOW_BAD, at=NOW + 15), first, Surroundings(), CONFIG).band is Band.RESISTING


@pytest.mark.parametrize(
    ("verdict", "previous", "expected"),
    [
        pytest.param(NOW_BAD, replace(BEFORE, maintenance=True), True, id="a bad score just after it"),
        pytest.param(
            replace(NOW_BAD, score=80), replace(BEFORE, maintenance=True), False, id="a score of 80 costs no band"
        ),
        pytest.param(replace(NOW_BAD, score=None), replace(BEFORE, maintenance=True), False, id="no score"),
        pytest.param(replace(NOW_BAD, maintenance=True), replace(BEFORE, maintenance=True), False, id="it goes on"),
        pytest.param(NOW_BAD, BEFORE, False, id="there was none"),
        pytest.param(NOW_BAD, None, False, id="nothing was before"),
    ],
)
def test_what_maintenance_leaves_in_the_windows(verdict: Verdict, previous: Verdict | None, expected: bool) -> None:
    assert left_behind(verdict, previous, CONFIG) is expected


@pytest.mark.parametrize(
    ("at", "until", "in_force"),
    [
        pytest.param(NOW - 1, NOW + 1, True, id="between its start and its end"),
        pytest.param(NOW - 9, NOW, False, id="not at its end"),
        pytest.param(NOW + 1, NOW + 9, False, id="not before its start"),
    ],
)
def test_an_override_is_obeyed_while_it_is_in_force(at: float, until: float, in_force: bool) -> None:
    override = Override(site="books", kind=OverrideKind.RESUME, at=at, until=until, concurrency=0.5)
    verdict = conclude(NOW_BAD, BEFORE, Surroundings(overrides={"books": override}), CONFIG)
    assert verdict.override == (override if in_force else None)
    assert verdict.advice.concurrency_ratio == (0.5 if in_force else 0.0)


def test_a_route_that_fails_on_two_other_sites_is_to_blame_and_not_the_third_site() -> None:
    def lost(site: str) -> Verdict:
        return replace(
            BEFORE, site=site, score=100, route_requests={"dc": 60}, route_refused={"dc": 0.0}, route_error={"dc": 0.9}
        )

    sites = {name: lost(name) for name in ("books", "quotes", "news")}
    assert conclude(lost("books"), None, Surroundings(verdicts=sites), CONFIG).diagnosis is Diagnosis.ROUTE
    del sites["news"]
    assert conclude(lost("books"), None, Surroundings(verdicts=sites), CONFIG).diagnosis is Diagnosis.SITE
