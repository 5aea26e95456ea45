"""Properties that must hold of scores whatever comes of a site, by either method."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.outcome import Source
from crawlhealth.panel import Panel
from crawlhealth.scoresettings import Margins, ScoreSettings, Weights
from crawlhealth.scoring import UNKNOWNS
from crawlhealth.verdict import Band, Baseline, Rates, Unknown
from panels import Row, judged, normal, one, panel, rates, score_of

pytestmark = pytest.mark.filterwarnings("error")

SETTINGS = ScoreSettings()
PLAIN = ScoreSettings(method="plain", cap=False)

COUNTS = st.tuples(*[st.integers(0, 400)] * 5)
SECONDS = st.floats(0.001, 400)
SHARE = st.floats(0, 1)
RATES = st.builds(
    lambda a, b, c, d, slow: rates(a / (a + b + c + d), b / (a + b + c + d), c / (a + b + c + d), slow),
    SHARE, SHARE, SHARE, st.floats(0.01, 1), st.none() | SECONDS,
)  # fmt: skip
SWING = st.sampled_from([0.0, 0.01, 0.05, 0.2])
ROUTES = ("direct", "dc-us", "res-de")


@st.composite
def some_rows(draw: st.DrawFn, *, latency: bool = True) -> list[Row]:
    found = []
    for route in ROUTES[: draw(st.integers(1, 3))]:
        grown = np.cumsum([draw(COUNTS) for _ in range(4)], axis=0)
        slow = draw(st.just(math.nan) | SECONDS) if latency else math.nan
        low = slow * draw(st.floats(0.3, 1))
        weight = draw(st.sampled_from([1.0, 0.7, 0.1]))
        found.append(Row(counts=grown, route=route, mean_weight=weight, p95=slow, low=low))
    return found


@st.composite
def baselines(draw: st.DrawFn) -> Baseline:
    strata = {route: draw(RATES) for route in ROUTES if draw(st.booleans())}
    return normal(draw(RATES), swing=draw(SWING), strata=strata)


METHODS = st.sampled_from([SETTINGS, replace(SETTINGS, cap=False), PLAIN, replace(PLAIN, cap=True)])


@given(some_rows(), baselines(), METHODS, st.data())
def test_more_refusals_never_raise_the_score(
    rows: list[Row], baseline: Baseline, settings: ScoreSettings, data: st.DataObject
) -> None:
    """Whichever requests on whichever routes were refused and not served, the rest being as it was.

    Of the plain formula without its latency, which is gone with the last page that is served, and with it what it cost.
    """
    if settings.method == "plain":
        rows = [replace(row, p95=math.nan, low=None) for row in rows]
    worse = []
    for row in rows:
        counts = np.array(row.counts, dtype=np.float64)
        share = data.draw(SHARE, label="share of the served that is refused now")
        kind = data.draw(st.sampled_from([1, 2, 3]), label="in which way")
        taken = counts[:, 0] * share
        counts[:, 0] -= taken
        counts[:, kind] += taken
        worse.append(replace(row, counts=counts))
    before, after = one(rows, baseline, settings), one(worse, baseline, settings)
    assert math.isnan(before) == math.isnan(after)
    assert not after > before + 1e-6


@given(some_rows(), baselines(), METHODS, st.permutations(range(3)))
def test_renaming_and_reordering_routes_changes_nothing(
    rows: list[Row], baseline: Baseline, settings: ScoreSettings, order: list[int]
) -> None:
    names = {route: f"route-{n}" for n, route in zip(order, ROUTES, strict=True)}
    renamed = [replace(rows[n], route=names[rows[n].route]) for n in order if n < len(rows)]
    strata = {names[own.route]: own.rates for own in baseline.strata}
    of, same = panel({"books": rows}), panel({"books": renamed})
    before = score_of(of, baseline, settings=settings)
    after = score_of(same, replace(baseline, strata=normal(rates(), strata=strata).strata), settings=settings)
    assert (after.unknown, after.chosen, after.shortest) == (before.unknown, before.chosen, before.shortest)
    for name in ("score", "recovery", "raw", "points", "now", "normal", "lower", "drift", "requests", "answered"):
        np.testing.assert_allclose(getattr(after, name), getattr(before, name), atol=1e-7, err_msg=name)


@given(some_rows(), RATES, SWING, METHODS, st.floats(1e-3, 1e6), st.data())
def test_a_site_at_or_under_its_normal_never_loses_a_point_whatever_its_volume(
    rows: list[Row], whole: Rates, swing: float, settings: ScoreSettings, volume: float, data: st.DataObject
) -> None:
    strata, now = {}, []
    for row in rows:
        own = data.draw(RATES)
        own = own if settings.method == "robust" else whole  # the plain method knows no routes
        strata[row.route] = own
        requests = np.array(row.counts, dtype=np.float64).sum(axis=1) * volume
        share = data.draw(st.just(1.0) | SHARE)
        refused = [requests * share * kind for kind in (own.hard_block, own.challenge, own.soft_block)]
        served = np.maximum(requests - sum(refused), 0.0)
        most = (own.latency_p95 if own.latency_p95 is not None else whole.latency_p95) or math.nan
        slow = most * data.draw(st.just(1.0) | SHARE.filter(lambda s: s > 0.01))
        now.append(replace(row, counts=np.column_stack([served, *refused, np.zeros(4)]), p95=slow, low=None))
    found = score_of(panel({"books": now}), normal(whole, swing=swing, strata=strata), settings=settings)
    if found.unknown[0]:
        assert UNKNOWNS[found.unknown[0]] is Unknown.NOT_ENOUGH_REQUESTS
        return
    assert found.score[0] == pytest.approx(100, abs=1e-6)
    assert found.points[0] == pytest.approx([0.0] * 5, abs=1e-6)


AMOUNT = st.sampled_from([0.0, 1e-300, 1e-160, 1e-9, 0.5, 25.0, 49.9999995, 50.0, 1e3, 1e9, 1e18, 1e100])
ANY_RATES = st.builds(
    rates, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.none() | st.sampled_from([0.0, 1e-9, 0.001, 0.5, 464])
)
ANY_SETTINGS = st.builds(
    ScoreSettings,
    method=st.sampled_from(["robust", "plain"]),
    cap=st.booleans(),
    min_requests=st.sampled_from([0, 1, 50, 1000]),
    weights=st.builds(Weights, **dict.fromkeys(Weights.__dataclass_fields__, st.floats(0, 100))),
    margins=st.builds(Margins, noise=st.floats(0, 5), swing=st.floats(0, 5), rare=st.floats(0, 10)),
    smoothing=st.sampled_from([timedelta(0), timedelta(minutes=10)]),
)  # fmt: skip


@st.composite
def anything(draw: st.DrawFn) -> tuple[dict[str, list[Row]], list[Baseline | None]]:
    sites: dict[str, list[Row]] = {}
    normal_of: list[Baseline | None] = []
    for number in range(draw(st.integers(0, 3))):
        sites[f"site-{number}"] = [
            Row(
                counts=[[draw(AMOUNT) for _ in range(5)] for _ in range(4)],
                route=route,
                source=draw(st.sampled_from(list(Source))),
                mean_weight=draw(st.sampled_from([1.0, 1e-3, 1e-150])),
                p95=draw(st.sampled_from([math.nan, 0.001, 1.0, 464.0])),
                low=draw(st.none() | st.just(0.001)),
            )
            for route in ROUTES[: draw(st.integers(0, 3))]
        ]
        strata = {route: draw(ANY_RATES) for route in ROUTES if draw(st.booleans())}
        swing = draw(st.sampled_from([0.0, 0.1, 1.0, 10.0]))
        known = normal(draw(ANY_RATES), swing=swing, strata=strata, refused=draw(st.booleans()))
        normal_of.append(draw(st.none() | st.just(known)))
    return sites, normal_of


@given(anything(), ANY_SETTINGS)
def test_whatever_comes_there_is_a_score_from_0_to_100_or_a_reason_why_there_is_none(
    given_: tuple[dict[str, list[Row]], list[Baseline | None]], settings: ScoreSettings
) -> None:
    sites, known = given_
    of = panel(sites)
    found = judged(of, known, settings)
    for place, baseline in enumerate(known):
        why = UNKNOWNS[found.scored.unknown[place]]
        assert why is expected_reason(of, place, baseline, settings)
        if why is None:
            assert 0 <= found.score[place] <= 100
            assert 0 <= found.scored.recovery[place] <= 100
            assert 0 <= found.scored.raw[place] <= 100
            assert np.all(found.scored.points[place] >= 0)
            assert not np.isnan(found.scored.points[place]).any()
            assert found.scored.score[place] <= found.scored.recovery[place]
        else:
            assert np.isnan([found.score[place], found.scored.raw[place], found.scored.recovery[place]]).all()
        assert found.states.each()[place].band in (Band.NORMAL, Band.UNKNOWN)
        assert np.isnan(found.parser_score[place]) or 0 <= found.parser_score[place] <= 100


def expected_reason(of: Panel, place: int, baseline: Baseline | None, settings: ScoreSettings) -> Unknown | None:
    for window in of.totals[place]:
        requests = float(sum(window[:5]))
        if requests >= max(1, settings.min_requests) - 1e-6:
            if settings.method == "robust" and 2 * sum(window[:4]) < requests:
                return Unknown.MOSTLY_ERRORS
            if baseline is None:
                return Unknown.NO_BASELINE
            return Unknown.BASELINE_REFUSED if baseline.refused else None
    return Unknown.NOT_ENOUGH_REQUESTS
