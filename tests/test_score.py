"""The plain formula, the refused cap and the reasons, in single numbers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from crawlhealth import score
from crawlhealth.scoresettings import Weights
from crawlhealth.verdict import Rates, Signal

WEIGHTS = Weights()
SHARES = st.floats(0, 1)
SECONDS = st.floats(0.0001, 100)
RATES = st.builds(
    lambda a, b, c, d, latency: Rates(
        hard_block=a / (a + b + c + d), challenge=b / (a + b + c + d), soft_block=c / (a + b + c + d),
        latency_p95=latency,
    ),
    SHARES, SHARES, SHARES, st.floats(0.001, 1), st.none() | SECONDS,
)  # fmt: skip


def rates(hard: float = 0.0, challenge: float = 0.0, soft: float = 0.0, latency: float | None = None) -> Rates:
    return Rates(hard_block=hard, challenge=challenge, soft_block=soft, latency_p95=latency)


def lower_of_both(now: Rates, normal: Rates) -> float:
    plain = score.plain(score.penalties(now, normal, WEIGHTS))
    return plain - score.cap_penalty(plain, now, normal).points


def test_the_plain_score_is_the_published_formula_to_the_digit() -> None:
    """Against a few lines written down from the formula, on 1,000 random windows with counts as they come."""
    chance = random.Random(20261130)
    scores = set()
    for _ in range(1000):
        (n, h, c, s, ms), (n0, h0, c0, s0, ms0) = (_random_window(chance) for _ in "ab")
        bad = [min(max((x / n - x0 / n0) / 0.20, 0), 1) for x, x0 in ((h, h0), (c, c0), (s, s0))]
        bad.append(min(max((ms / max(ms0, 1) - 1) / 2, 0), 1))
        expected = round(100 - sum(w * b for w, b in zip((35, 25, 25, 15), bad, strict=True)))
        now = rates(h / n, c / n, s / n, ms / 1000)
        normal = rates(h0 / n0, c0 / n0, s0 / n0, ms0 / 1000)
        assert round(score.plain(score.penalties(now, normal, WEIGHTS))) == expected
        scores.add(expected)
    assert len(scores) > 60, "the windows must reach over the whole scale"


def _random_window(chance: random.Random) -> tuple[int, int, int, int, int]:
    requests = chance.randint(50, 5000)
    most = chance.choice((0.02, 0.1, 0.33))
    h, c, s = (chance.randint(0, int(requests * most)) for _ in range(3))
    return requests, h, c, s, chance.choice((chance.randint(1, 30), chance.randint(100, 1500)))


@pytest.mark.parametrize(
    ("now", "normal", "expected"),
    [
        pytest.param(rates(), rates(), 100, id="its own normal costs nothing"),
        pytest.param(rates(hard=0.3), rates(hard=0.3), 100, id="a site that always refuses a third is at its normal"),
        pytest.param(rates(hard=1.0), rates(), 65, id="all 403 is 65 in the plain formula"),
        pytest.param(rates(challenge=1.0), rates(), 75, id="all challenges are 75"),
        pytest.param(rates(soft=1.0), rates(), 75, id="all soft blocks are 75"),
        pytest.param(rates(latency=99.0), rates(latency=0.1), 85, id="latency alone never goes below 85"),
        pytest.param(rates(latency=1.2), rates(latency=0.4), 85, id="three times its normal is the whole weight"),
        pytest.param(rates(latency=0.8), rates(latency=0.4), 92, id="twice its normal is half, 92.5 rounds to even"),
        pytest.param(rates(latency=0.002), rates(latency=0.0001), 92, id="a normal under 1 ms counts as 1 ms"),
        pytest.param(rates(latency=0.05), rates(latency=0.4), 100, id="faster costs nothing"),
        pytest.param(rates(latency=None), rates(latency=0.4), 100, id="no ok response now costs no latency"),
        pytest.param(rates(latency=9.0), rates(latency=None), 100, id="without a normal latency none is judged"),
        pytest.param(rates(0.25, 0.25, 0.25, 9), rates(latency=1), 0, id="everything at once is 0"),
    ],
)
def test_plain(now: Rates, normal: Rates, expected: int) -> None:
    assert round(score.plain(score.penalties(now, normal, WEIGHTS))) == expected


@pytest.mark.parametrize(
    ("now", "normal", "cap"),
    [
        pytest.param(0.0, 0.0, 100, id="nothing refused"),
        pytest.param(1.0, 0.0, 0, id="everything refused"),
        pytest.param(0.34, 0.0, 66, id="a third refused"),
        pytest.param(1.0, 0.3, 0, id="everything refused by a site that always refuses some"),
        pytest.param(0.65, 0.3, 50, id="half of what was served is refused"),
        pytest.param(0.1, 0.3, 100, id="less than normal"),
        pytest.param(1.0, 0.9, 50, id="a fall of a tenth counts against at least a fifth"),
    ],
)
def test_refused_cap(now: float, normal: float, cap: float) -> None:
    assert score.refused_cap(now, normal) == pytest.approx(cap)


@given(RATES, RATES)
def test_a_score_is_never_above_100_or_below_0(now: Rates, normal: Rates) -> None:
    assert 0 <= lower_of_both(now, normal) <= 100
    assert 0 <= score.plain(score.penalties(now, normal, WEIGHTS)) <= 100


@given(RATES, RATES, st.sampled_from(["hard_block", "challenge", "soft_block", "latency_p95"]), SHARES)
def test_more_of_any_one_signal_never_scores_higher(now: Rates, normal: Rates, signal: str, more: float) -> None:
    worse = structs.replace(now, **{signal: (getattr(now, signal) or 0.0) + more})
    if now.latency_p95 is None and signal == "latency_p95":
        return
    assert lower_of_both(worse, normal) <= lower_of_both(now, normal) + 1e-9


@given(RATES, RATES, st.sampled_from(["hard_block", "challenge", "soft_block", "latency_p95"]), SECONDS, SECONDS)
def test_a_signal_at_its_baseline_leaves_the_score_unchanged(
    now: Rates, normal: Rates, signal: str, level: float, other: float
) -> None:
    """Whatever the level of one signal is: as long as it is the normal one, the score is that of the others."""

    def plain(at: float) -> float:
        return score.plain(
            score.penalties(structs.replace(now, **{signal: at}), structs.replace(normal, **{signal: at}), WEIGHTS)
        )

    assert plain(level) == plain(other)


@given(RATES)
def test_a_site_at_its_own_normal_scores_100(normal: Rates) -> None:
    assert lower_of_both(normal, normal) == 100


@given(RATES)
def test_a_site_that_refuses_everything_scores_0_whatever_the_mix(mix: Rates) -> None:
    total = mix.hard_block + mix.challenge + mix.soft_block
    if total < 0.01:
        return
    all_refused = rates(mix.hard_block / total, mix.challenge / total, mix.soft_block / total)
    assert lower_of_both(all_refused, rates(0.02, 0.01)) == pytest.approx(0, abs=1e-9)


def test_reasons_are_those_of_at_least_a_point_dearest_first() -> None:
    costs = score.penalties(rates(0.005, 0.1, 0.02, 2.0), rates(latency=1.0), WEIGHTS)
    assert [(r.signal, round(r.points, 3)) for r in score.reasons(costs)] == [
        (Signal.CHALLENGE, 12.5), (Signal.LATENCY, 7.5), (Signal.SOFT_BLOCK, 2.5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("failed", "normal", "expected"),
    [
        pytest.param(0.0, 0.0, 100, id="all extracted"),
        pytest.param(0.02, 0.02, 100, id="as many failures as ever"),
        pytest.param(1.0, 0.0, 0, id="nothing extracted"),
        pytest.param(0.55, 0.1, 50, id="half of what worked fails"),
        pytest.param(1.0, 0.9, 50, id="a fall of a tenth counts against at least a fifth"),
    ],
)
def test_parser_score(failed: float, normal: float, expected: int) -> None:
    assert score.parser_score(failed, normal) == expected
