"""The advice table: what each band asks for, and what a person may put in its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawlhealth.advice import advise
from crawlhealth.config import AdviceSettings, Thresholds
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

NORMAL = Rates(hard_block=0.01, challenge=0.02, soft_block=0.0)
SETTINGS, BANDS = AdviceSettings(), Thresholds()


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
    assert advise(verdict(band, score), None, SETTINGS, BANDS) == advice


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
    assert advise(verdict(band, None, held=True), None, SETTINGS, BANDS) == advice


def test_a_site_that_serves_next_to_nothing_costs_ten_times_at_most() -> None:
    assert advise(verdict(Band.DEGRADING, 55, refused=1.0), None, SETTINGS, BANDS).cost_multiplier == 10


def test_the_numbers_are_configuration() -> None:
    settings = AdviceSettings(least_concurrency=0.5, most_revisit=10, most_cost=3, pause=False)
    assert advise(verdict(Band.RESISTING, 12), None, settings, BANDS) == Advice(
        concurrency_ratio=0.5, revisit_multiplier=10, cost_multiplier=3
    )
    assert advise(verdict(Band.DEGRADING, 65), None, settings, BANDS).concurrency_ratio == 0.75


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
    advice = advise(verdict(band, 68), override, SETTINGS, BANDS)
    assert (advice.concurrency_ratio, advice.paused) == (ratio, paused)


@given(st.integers(0, 100), st.integers(0, 100), st.sampled_from([Band.NORMAL, Band.DEGRADING, Band.RESISTING]))
def test_a_lower_score_is_never_advised_to_go_faster(one: int, other: int, band: Band) -> None:
    slow, fast = (advise(verdict(band, score), None, SETTINGS, BANDS) for score in sorted((one, other)))
    assert slow.concurrency_ratio <= fast.concurrency_ratio <= 1
    assert slow.revisit_multiplier >= fast.revisit_multiplier >= 1
