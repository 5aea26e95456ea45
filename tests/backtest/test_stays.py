"""Stays outside normal, as a replay of judgements finds them."""

from __future__ import annotations

import numpy as np
import pytest

from crawlhealth.backtest.stays import SIGNALS, Outcome, Stay, Stays
from crawlhealth.bands import BANDS, States
from crawlhealth.config import Maintenance
from crawlhealth.evaluate import Judged
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.scoring import Scored
from crawlhealth.verdict import Band, BandState, Signal

N, D, R, U = Band.NORMAL, Band.DEGRADING, Band.RESISTING, Band.UNKNOWN
HOUR = 3600.0
WEEK = 168.0


def judged(
    hour: int, bands: str, scores: tuple[float | None, ...], *, points: tuple[float, ...] = (), drift: float = 0.0
) -> Judged:
    """One step of some sites: bands by their initials, and what every site's signals cost."""
    count = len(bands)
    none, nothing = np.full(count, np.nan), np.zeros(count, dtype=np.intp)
    known = {band.value[0]: band for band in BANDS}
    score = np.array([np.nan if score is None else score for score in scores])
    scored = Scored(
        chosen=nothing, shortest=nothing, score=score, recovery=score, raw=score,
        points=np.tile([*points, *[0.0] * (len(SIGNALS) - len(points))], (count, 1)),
        now=np.zeros((count, 5)), normal=np.zeros((count, 5)), lower=np.zeros((count, 4)),
        drift=np.tile([np.nan, drift, 0.0, 0.0, np.nan], (count, 1)), requests=np.zeros((count, 4)),
        answered=np.zeros((count, 4)), unknown=nothing,
    )  # fmt: skip
    states = States.of([BandState(band=known[initial]) for initial in bands])
    return Judged(
        at=hour * HOUR,
        scored=scored,
        score=score,
        smoothed=score,
        parser_score=none,
        extraction_window=nothing,
        states=states,
    )


def found(*steps: Judged, since: float = -np.inf, **options: object) -> Outcome:
    stays = Stays(("a", "b"), ScoreSettings(), since=since, **options)  # type: ignore[arg-type] # tests name them
    for step in steps:
        stays.take(step, HOUR)
    return stays.outcome()


def test_a_stay_has_its_worst_score_and_band_and_ends_with_the_first_step_within_normal() -> None:
    outcome = found(
        judged(1, "nn", (100, 100)),
        judged(2, "dn", (70, 100), points=(0.0, 25.0)),
        judged(3, "rn", (40, 100), points=(35.0, 0.0)),
        judged(4, "dn", (60, 100)),
        judged(5, "nn", (90, 100)),
        judged(6, "nd", (100, 79), points=(0.0, 0.0, 21.0)),
    )
    assert outcome.stays == (
        Stay(site="a", start=2 * HOUR, end=5 * HOUR, worst_score=40, worst_band=R, first_reason=Signal.CHALLENGE),
        Stay(site="b", start=6 * HOUR, end=None, worst_score=79, worst_band=D, first_reason=Signal.SOFT_BLOCK),
    )
    assert outcome.site_weeks == pytest.approx(12 / WEEK)
    assert outcome.until == 6 * HOUR


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        pytest.param((5.0, 20.0, 3.0), Signal.CHALLENGE, id="the dearest"),
        pytest.param((5.0, 0.0, 0.0, 0.0, 60.0), Signal.HARD_BLOCK, id="the refused cap only where it stands alone"),
        pytest.param((0.0, 0.0, 0.0, 0.0, 60.0), Signal.REFUSED_CAP, id="the refused cap alone"),
        pytest.param((0.9, 0.4), None, id="less than a point is no reason"),
        pytest.param((0.0, 0.0, 0.0, 15.0), Signal.LATENCY, id="latency"),
    ],
)
def test_the_first_reason(points: tuple[float, ...], reason: Signal | None) -> None:
    (stay,) = found(judged(1, "dn", (70, 100), points=points)).stays
    assert stay.first_reason is reason


def test_what_is_held_without_a_score_has_none() -> None:
    outcome = found(judged(1, "rn", (None, 100)), judged(2, "nu", (100, None)))
    assert [(stay.worst_score, stay.first_reason) for stay in outcome.stays] == [(None, None)]
    assert outcome.site_weeks == pytest.approx(3 / WEEK), "unknown is not judged"


def test_only_what_lasts_after_the_beginning_is_told() -> None:
    steps = [
        judged(1, "dd", (70, 70)),
        judged(2, "nd", (100, 70)),
        judged(3, "nd", (100, 60)),
        judged(4, "nn", (100, 100)),
    ]
    outcome = found(*steps, since=2 * HOUR)
    assert [(stay.site, stay.start) for stay in outcome.stays] == [("b", HOUR)]
    assert outcome.site_weeks == pytest.approx(4 / WEEK)


def test_only_the_sites_that_were_asked_for_are_told() -> None:
    outcome = found(judged(1, "dd", (70, 70), drift=9.0), told=frozenset({"b"}))
    assert [stay.site for stay in outcome.stays] == ["b"]
    assert outcome.warnings == 1
    assert outcome.site_weeks == pytest.approx(1 / WEEK)


def test_what_begins_in_planned_work_is_no_stay() -> None:
    work = Maintenance(start="1971-01-01T00:30:00Z", end="1971-01-01T01:30:00Z", sites=("a",))
    year = 365 * 24
    outcome = found(judged(year + 1, "dd", (70, 70)), judged(year + 2, "nn", (100, 100)), maintenance=(work,))
    assert [stay.site for stay in outcome.stays] == ["b"]


@pytest.mark.parametrize(
    ("hours", "warnings"),
    [
        pytest.param((1, 2, 3), 1, id="one as long as it goes on"),
        pytest.param((1, 7), 1, id="and for six hours after"),
        pytest.param((1, 8), 2, id="then there is another"),
    ],
)
def test_early_warnings(hours: tuple[int, ...], warnings: int) -> None:
    steps = [judged(hour, "nn", (100, 100), drift=9.0 if hour in hours else 1.0) for hour in range(1, 10)]
    assert found(*steps).warnings == 2 * warnings


def test_groups_of_sites_are_put_together_in_the_order_of_time() -> None:
    one, other = found(judged(3, "dn", (70, 100))), found(judged(1, "dn", (70, 100)), judged(2, "nn", (100, 100)))
    both = Outcome.together([one, Outcome(), other])
    assert [stay.start for stay in both.stays] == [HOUR, 3 * HOUR]
    assert both.until == 3 * HOUR
    assert both.site_weeks == pytest.approx(6 / WEEK)
