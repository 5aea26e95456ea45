"""What windows cost against normals: the plain formula to the digit, the robust one by hand."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from crawlhealth import bands
from crawlhealth.bands import States
from crawlhealth.evaluate import Before
from crawlhealth.scoresettings import ScoreSettings, Weights
from crawlhealth.scoring import UNKNOWNS, scored
from crawlhealth.verdict import Band, BandState, Unknown
from panels import Row, judged, normal, normals, one, panel, rates, score_of
from samples import NOW

pytestmark = pytest.mark.filterwarnings("error")

SETTINGS = ScoreSettings()
PLAIN = ScoreSettings(method="plain", cap=False)


def test_the_plain_formula_to_the_digit() -> None:
    """Against a few lines of scalars written down from the formula, on 1,000 random windows judged at once."""
    chance = random.Random(20261130)
    windows = [[_random_window(chance) for _ in "ab"] for _ in range(1000)]
    of = panel({
        f"site-{n}": [Row(counts=(requests - h - c - s - e, h, c, s, e), p95=ms / 1000)]
        for n, ((requests, h, c, s, e, ms), _) in enumerate(windows)
    })  # fmt: skip
    baselines = [normal(rates(h / n, c / n, s / n, ms / 1000)) for _, (n, h, c, s, _, ms) in windows]
    plain = score_of(of, *baselines, settings=PLAIN)
    capped = score_of(of, *baselines, settings=replace(PLAIN, cap=True))
    expected, lower = [], []
    for (n, h, c, s, _, ms), (n0, h0, c0, s0, _, ms0) in windows:
        bad = [min(max((x / n - x0 / n0) / 0.20, 0), 1) for x, x0 in ((h, h0), (c, c0), (s, s0))]
        bad.append(min(max((ms / max(ms0, 1) - 1) / 2, 0), 1))
        value = 100 - sum(w * b for w, b in zip((35, 25, 25, 15), bad, strict=True))
        excess = max(0.0, (h + c + s) / n - (h0 + c0 + s0) / n0)
        expected.append(round(value))
        lower.append(round(min(value, 100 * (1 - min(1.0, excess / max(1 - (h0 + c0 + s0) / n0, 0.2))))))
    assert np.rint(plain.score).tolist() == expected
    assert np.rint(capped.score).tolist() == lower
    assert np.rint(capped.raw).tolist() == expected
    assert len(set(expected)) > 60, "the windows must reach over the whole scale"


def test_evaluate_publishes_the_plain_score_unsmoothed_where_smoothing_is_off() -> None:
    of = panel({"books": [Row(counts=(90, 10, 0, 0, 0))]})
    settings = replace(PLAIN, smoothing=timedelta(0))
    assert judged(of, [normal(rates())], settings).score.tolist() == [82.0], "100 - 35 x 0.5 = 82.5, rounds to even"


def _random_window(chance: random.Random) -> tuple[int, int, int, int, int, int]:
    requests = chance.randint(50, 5000)
    most = chance.choice((0.02, 0.1, 0.3))
    h, c, s, e = (chance.randint(0, int(requests * most)) for _ in range(4))
    slow = chance.choice((chance.randint(1, 30), chance.randint(100, 1500)))
    return requests, h, c, s, min(e, requests - h - c - s - 1), slow  # something was served, and timed


def test_a_slow_route_that_begins_to_refuse_costs_no_less_than_before() -> None:
    """Its slowness counts by what it answers, not by what it serves: else refusing would hide it."""
    own = {"direct": rates(latency=1.0), "dc-us": rates(latency=1.0)}
    baseline = normal(rates(latency=1.0), swing=0.2, strata=own)
    fast = Row(counts=(900, 0, 0, 0, 0), route="dc-us", p95=1.0)
    slow = [Row(counts=(100 - n, n, 0, 0, 0), route="direct", p95=6.0, low=6.0) for n in (0, 50, 99)]
    assert one([fast, slow[0]], baseline) >= one([fast, slow[1]], baseline) >= one([fast, slow[2]], baseline)


def test_the_score_is_the_lowest_of_the_windows_with_enough_requests() -> None:
    counts = [(40, 0, 0, 0, 0), (60, 0, 0, 0, 0), (200, 100, 0, 0, 0), (900, 100, 0, 0, 0)]
    found = score_of(panel({"books": [Row(counts=counts)]}), normal(rates()))
    assert (found.shortest.tolist(), found.chosen.tolist()) == ([1], [2])
    assert found.score[0] < 70
    assert found.score[0] == pytest.approx(100 - found.points[0].sum())
    without = [counts[0], counts[1], counts[3], counts[3]]
    assert one([Row(counts=without)], normal(rates())) > 80


@pytest.mark.parametrize(
    ("shown", "recovered"),
    [
        pytest.param(math.nan, True, id="by the shortest where nothing showed a band"),
        pytest.param(600.0, True, id="by the shortest, which showed it"),
        pytest.param(1800.0, False, id="by all up to that which showed it"),
        pytest.param(21600.0, False, id="by all"),
        pytest.param(1e9, False, id="by all, if that window is there no more"),
    ],
)
def test_a_recovery_is_judged_by_the_windows_up_to_that_which_showed_the_band(shown: float, recovered: bool) -> None:
    counts = [(500, 0, 0, 0, 0), (500, 500, 0, 0, 0), (500, 500, 0, 0, 0), (9000, 500, 0, 0, 0)]
    of = panel({"books": [Row(counts=counts)]})
    found = scored(
        of,
        normals(of, normal(rates())),
        at=np.array([NOW]),
        shown=np.array([shown]),
        quiet=np.zeros(1),
        settings=SETTINGS,
    )
    assert found.score[0] < 60
    assert (found.recovery[0] == 100) == recovered


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        pytest.param((49, 0, 0, 0, 0), Unknown.NOT_ENOUGH_REQUESTS, id="49 are too few"),
        pytest.param((50, 0, 0, 0, 0), None, id="50 are enough"),
        pytest.param((25, 0, 0, 0, 25), None, id="half of them errors"),
        pytest.param((24, 0, 0, 0, 26), Unknown.MOSTLY_ERRORS, id="more than half errors"),
        pytest.param((0, 0, 0, 0, 9000), Unknown.MOSTLY_ERRORS, id="errors alone"),
        pytest.param((0, 24, 0, 0, 26), Unknown.MOSTLY_ERRORS, id="errors and refusals alone"),
    ],
)
def test_errors_are_nothing_that_a_site_has_answered(counts: tuple[int, ...], why: Unknown | None) -> None:
    found = score_of(panel({"books": [Row(counts=counts)]}), normal(rates()))
    assert UNKNOWNS[found.unknown[0]] is why


def test_errors_change_no_share() -> None:
    """Shares are of answered requests: a third of them challenged is a third, however many time out beside it."""
    quiet = one([Row(counts=(200, 0, 100, 0, 0))], normal(rates()))
    beside = one([Row(counts=(200, 0, 100, 0, 250))], normal(rates()))
    assert quiet == beside


def test_a_site_that_refuses_everything_scores_about_0_whatever_the_mix() -> None:
    for counts in ((0, 2000, 0, 0, 0), (0, 0, 2000, 0, 0), (0, 0, 0, 2000, 0), (0, 600, 700, 700, 0)):
        assert one([Row(counts=counts)], normal(rates(0.02, 0.05))) < 1
        assert one([Row(counts=np.array(counts) / 40)], normal(rates(0.02, 0.05))) < 10, "nor with fifty requests"


def test_traffic_that_moves_to_another_route_moves_nothing() -> None:
    """A slow route that refuses a third and a fast one that refuses nothing, in any mix."""
    own = {"direct": rates(0.3, 0.03, latency=4.0), "dc-us": rates(latency=0.2)}
    baseline = normal(rates(0.15, 0.015, latency=2.0), swing=0.02, strata=own)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        a, b = 1000 * share, 1000 * (1 - share)
        rows = [
            Row(counts=(a * 0.67, a * 0.3, a * 0.03, 0, 0), route="direct", p95=4.0),
            Row(counts=(b, 0, 0, 0, 0), route="dc-us", p95=0.2),
        ]
        assert one(rows, baseline) == pytest.approx(100)


def test_latency_now_and_normally_is_the_mean_over_the_routes_in_their_present_mix() -> None:
    """So the early warning of a site with a slow and a fast route says nothing at its normal, in any mix."""
    own = {"direct": rates(latency=4.0), "dc-us": rates(latency=0.25)}
    baseline = normal(rates(latency=0.5), strata=own)
    for slow, fast, expected in ((900, 100, 4 * 0.0625**0.1), (500, 500, 1.0), (0, 1000, 0.25)):
        rows = [
            Row(counts=(slow, 0, 0, 0, 0), route="direct", p95=4.0),
            Row(counts=(fast, 0, 0, 0, 0), route="dc-us", p95=0.25),
        ]
        found = score_of(panel({"books": rows}), baseline)
        assert found.now[0, 4] == pytest.approx(expected)
        assert found.normal[0, 4] == pytest.approx(expected)
        assert found.drift[0, 4] == pytest.approx(0, abs=1e-6)


def test_a_fault_on_one_route_costs_what_its_share_of_the_traffic_is() -> None:
    own = {"direct": rates(0.3), "dc-us": rates()}
    rows = [Row(counts=(0, 500, 0, 0, 0), route="direct"), Row(counts=(500, 0, 0, 0, 0), route="dc-us")]
    found = score_of(panel({"books": rows}), normal(rates(0.15), strata=own))
    assert found.now[0, 0] == 0.5
    assert found.normal[0, 0] == pytest.approx(0.15)
    assert 55 < found.score[0] < 65


def test_weights_changed_by_a_reload_are_those_of_the_next_score() -> None:
    of = panel({"books": [Row(counts=(700, 0, 300, 0, 0), p95=3.0)]})
    baseline = normal(rates(latency=1.0))
    first = judged(of, [baseline])
    reloaded = replace(SETTINGS, cap=False, weights=Weights(hard_block=45, challenge=40, soft_block=15, latency=0))
    before = Before(states=first.states, smoothed=first.smoothed, at=np.array([NOW - 15]))
    second = judged(of, [baseline], reloaded, before)
    assert first.scored.points[0, 1] == 25
    assert first.scored.points[0, 3] == 15
    assert second.scored.points[0].tolist() == [0.0, 40.0, 0.0, 0.0, 0.0]
    assert second.score.tolist() == [60.0]


def test_a_signal_without_weight_costs_nothing_and_is_no_reason() -> None:
    settings = replace(SETTINGS, cap=False, weights=Weights(hard_block=0, challenge=100, soft_block=0, latency=0))
    assert one([Row(counts=(0, 500, 0, 500, 0), p95=9.0)], normal(rates(latency=0.1)), settings) == 100


def test_a_clock_that_steps_back_keeps_the_smoothed_score() -> None:
    """Of the plain method; the robust one smooths nothing."""
    of = panel({"books": [Row(counts=(0, 500, 0, 0, 0))]})
    settings = ScoreSettings(method="plain")
    states = States.of([BandState(band=Band.NORMAL, since=1.0)])
    before = Before(states=states, smoothed=np.array([90.0]), at=np.array([NOW + 60]))
    assert judged(of, [normal(rates())], settings, before).score.tolist() == [90.0]
    assert judged(of, [normal(rates())], SETTINGS, before).score[0] < 5


def test_slow_pages_of_a_small_sample_cost_less_than_those_of_a_large_one() -> None:
    baseline = normal(rates(latency=1.0))
    sure = one([Row(counts=(1000, 0, 0, 0, 0), p95=2.0, low=1.9)], baseline)
    unsure = one([Row(counts=(50, 0, 0, 0, 0), p95=2.0, low=1.1)], baseline)
    assert sure == pytest.approx(100 - 15 * 0.45)
    assert unsure == pytest.approx(100 - 15 * 0.05)


def test_the_early_warning_of_a_site_at_its_normal_is_nothing() -> None:
    """Also of one that never refuses anything: there is no share under 0 to be surprised at."""
    for share, counts in (
        (0.0, (5000, 0, 0, 0, 0)),
        (0.1, (3500, 500, 500, 500, 0)),
        (0.3, (500, 1500, 1500, 1500, 0)),
    ):
        known = normal(rates(share, share, share, 1.0))
        found = score_of(panel({"books": [Row(counts=counts, p95=1.0)]}), known)
        assert found.drift[0] == pytest.approx([0.0] * 5, abs=0.01)


def test_numbers_of_bands_are_those_of_arrays() -> None:
    assert [bands.BANDS.index(band) for band in (Band.NORMAL, Band.DEGRADING, Band.RESISTING, Band.UNKNOWN)] == [
        bands.NORMAL, bands.DEGRADING, bands.RESISTING, bands.UNKNOWN,
    ]  # fmt: skip
