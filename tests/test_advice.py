"""The advice table: what each band asks for, and what a person may put in its place."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawlhealth.advice import advise
from crawlhealth.scoresettings import AdviceSettings, CanaryLed, ScoreSettings
from crawlhealth.verdict import (
    NEUTRAL,
    Advice,
    Band,
    BandState,
    Baseline,
    Override,
    OverrideKind,
    Rates,
    Verdict,
    Window,
)
from samples import NOW

NORMAL = Rates(hard_block=0.01, challenge=0.02, soft_block=0.0)
SETTINGS, SCORE = AdviceSettings(), ScoreSettings()


def verdict(band: Band, score: int | None, *, refused: float = 0.34, held: bool = False) -> Verdict:
    window = Window(seconds=3600, requests=412, extractions=0, rates=replace(NORMAL, hard_block=0, challenge=refused))
    return Verdict(
        site="books",
        at=0,
        state=BandState(band=band, held=held),
        score=score,
        window=None if held else window,
        baseline=Baseline(hours=312, newest=0, rates=NORMAL),
    )


@pytest.mark.parametrize(
    ("band", "score", "advice"),
    [
        pytest.param(Band.NORMAL, 100, NEUTRAL, id="normal: crawl as usual"),
        pytest.param(Band.NORMAL, 60, NEUTRAL, id="normal until the band changes, whatever the score"),
        pytest.param(Band.UNKNOWN, None, NEUTRAL, id="unknown: crawl as usual"),
        pytest.param(
            Band.DEGRADING, 68, Advice(concurrency_ratio=0.7, revisit_multiplier=2.2, cost_multiplier=1.47),
            id="degrading at 68: the published example",
        ),
        pytest.param(
            Band.DEGRADING, 80, Advice(concurrency_ratio=1, revisit_multiplier=1, cost_multiplier=1.47),
            id="degrading begins at full speed",
        ),
        pytest.param(
            Band.DEGRADING, 93, Advice(concurrency_ratio=1, revisit_multiplier=1, cost_multiplier=1.47),
            id="degrading that gets well: never more than usual",
        ),
        pytest.param(
            Band.DEGRADING, 50, Advice(concurrency_ratio=0.25, revisit_multiplier=4, cost_multiplier=1.47),
            id="degrading ends at a quarter",
        ),
        pytest.param(
            Band.DEGRADING, 10, Advice(concurrency_ratio=0.25, revisit_multiplier=4, cost_multiplier=1.47),
            id="degrading under the next threshold: still a quarter",
        ),
        pytest.param(
            Band.RESISTING, 12, Advice(concurrency_ratio=0, revisit_multiplier=4, cost_multiplier=10, paused=True),
            id="resisting: stop",
        ),
    ],
)  # fmt: skip
def test_the_advice_of_a_band(band: Band, score: int | None, advice: Advice) -> None:
    assert advise(verdict(band, score), None, SETTINGS, SCORE) == advice


@pytest.mark.parametrize(
    ("band", "advice"),
    [
        pytest.param(
            Band.DEGRADING, Advice(concurrency_ratio=0.25, revisit_multiplier=4, cost_multiplier=10), id="degrading"
        ),
        pytest.param(
            Band.RESISTING,
            Advice(concurrency_ratio=0, revisit_multiplier=4, cost_multiplier=10, paused=True),
            id="resisting",
        ),
    ],
)
def test_a_held_band_without_a_score_advises_the_slowest_of_it(band: Band, advice: Advice) -> None:
    assert advise(verdict(band, None, held=True), None, SETTINGS, SCORE) == advice


def eased(minutes: float, *, score: int | None = None) -> Verdict:
    """A site that was let return by its canaries so many minutes ago."""
    one = verdict(Band.DEGRADING, score, held=score is None)
    return dataclasses.replace(one, at=NOW, state=replace(one.state, eased_at=NOW - 60 * minutes))


@pytest.mark.parametrize(
    ("minutes", "ratio", "revisit"),
    [
        pytest.param(0, 0.25, 4, id="at a quarter"),
        pytest.param(14.9, 0.25, 4, id="for a quarter of an hour"),
        pytest.param(15, 0.5, 3, id="then at half"),
        pytest.param(30, 1, 1, id="then as usual"),
        pytest.param(60 * 24 * 300, 1, 1, id="never at more"),
        pytest.param(-10, 0.25, 4, id="at a quarter where the clock steps back"),
    ],
)
def test_a_site_returns_slowly_after_a_pause(minutes: float, ratio: float, revisit: float) -> None:
    assert advise(eased(minutes), None, SETTINGS, SCORE) == Advice(
        concurrency_ratio=ratio, revisit_multiplier=revisit, cost_multiplier=10
    )


def test_a_returning_site_that_traffic_scores_is_advised_by_its_score() -> None:
    assert advise(eased(15, score=68), None, SETTINGS, SCORE).concurrency_ratio == 0.7


@pytest.mark.parametrize(
    ("least", "course"),
    [
        pytest.param(0.0, [0.05, 0.1, 0.2, 0.4, 0.8, 1.0], id="nothing cannot be doubled"),
        pytest.param(0.3, [0.3, 0.6, 1.0], id="an uneven share"),
        pytest.param(1.0, [1.0, 1.0], id="no slowing down at all"),
    ],
)
def test_how_a_site_returns_is_configuration(least: float, course: list[float]) -> None:
    settings = AdviceSettings(least_concurrency=least)
    score = ScoreSettings(canaries=CanaryLed(double_every=timedelta(minutes=5)))
    found = [advise(eased(5 * step), None, settings, score) for step in range(len(course))]
    assert [one.concurrency_ratio for one in found] == pytest.approx(course)
    assert all(1 <= one.revisit_multiplier <= 4 for one in found)


def test_a_site_that_serves_next_to_nothing_costs_ten_times_at_most() -> None:
    assert advise(verdict(Band.DEGRADING, 55, refused=1.0), None, SETTINGS, SCORE).cost_multiplier == 10


def test_the_numbers_are_configuration() -> None:
    settings = AdviceSettings(least_concurrency=0.5, most_revisit=10, most_cost=3, pause=False)
    assert advise(verdict(Band.RESISTING, 12), None, settings, SCORE) == Advice(
        concurrency_ratio=0.5, revisit_multiplier=10, cost_multiplier=3
    )
    assert advise(verdict(Band.DEGRADING, 65), None, settings, SCORE).concurrency_ratio == 0.75


def order(kind: OverrideKind, concurrency: float) -> Override:
    return Override(site="books", kind=kind, at=0, until=10, concurrency=concurrency)


@pytest.mark.parametrize(
    ("band", "override", "ratio", "paused"),
    [
        pytest.param(Band.NORMAL, order(OverrideKind.PAUSE, 0), 0.0, True, id="a person stops a good site"),
        pytest.param(Band.RESISTING, order(OverrideKind.RESUME, 1), 1.0, False, id="a person goes on with a bad one"),
        pytest.param(Band.RESISTING, order(OverrideKind.RESUME, 0.1), 0.1, False, id="or with a little of it"),
        pytest.param(Band.NORMAL, order(OverrideKind.LIMIT, 0.3), 0.3, False, id="a limit slows a good site"),
        pytest.param(Band.DEGRADING, order(OverrideKind.LIMIT, 0.9), 0.7, False, id="a limit never speeds up"),
        pytest.param(Band.RESISTING, order(OverrideKind.LIMIT, 0.3), 0.0, True, id="a limit does not end a pause"),
    ],
)
def test_a_person_beats_the_advice(band: Band, override: Override, ratio: float, paused: bool) -> None:
    advice = advise(verdict(band, 68), override, SETTINGS, SCORE)
    assert (advice.concurrency_ratio, advice.paused) == (ratio, paused)


@given(st.integers(0, 100), st.integers(0, 100), st.sampled_from([Band.NORMAL, Band.DEGRADING, Band.RESISTING]))
def test_a_lower_score_is_never_advised_to_go_faster(one: int, other: int, band: Band) -> None:
    slow, fast = (advise(verdict(band, score), None, SETTINGS, SCORE) for score in sorted((one, other)))
    assert slow.concurrency_ratio <= fast.concurrency_ratio <= 1
    assert slow.revisit_multiplier >= fast.revisit_multiplier >= 1
