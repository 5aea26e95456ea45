"""Fleet scoring says what the Python score says: the same counts go to both, and each keeps its own normal.

Rules are evaluated every ten minutes, and the Python score takes steps of ten: windows go by the time that has passed,
so that this changes their resolution and nothing else, and a day and a half of learning and a day of incidents take
seconds. `CRAWLHEALTH_FLEET_DAYS=16.5 pytest -s tests/bundle/test_fleet_agreement.py` learns for so many days (minutes).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from crawlhealth import bands
from crawlhealth.bundle import fleet
from crawlhealth.bundle.model import Options, Scoring
from crawlhealth.outcome import Source
from crawlhealth.replay import Replay
from crawlhealth.scoresettings import BaselineSettings, ScoreSettings
from fleetpast import SAMPLE, STEP, Array, Past, Site, between, blocks, challenges, drawn
from ruleruns import ran

SETTINGS: Final = ScoreSettings(baseline=BaselineSettings(season="none"))
"""What two weeks prove of hours and days is left out, as rules cannot fit it: only `CRAWLHEALTH_FLEET_DAYS` might."""
OPTIONS: Final = Options(scoring=Scoring.FLEET)
DAYS: Final = float(os.environ.get("CRAWLHEALTH_FLEET_DAYS", "1.5"))
LEARNING: Final = round(DAYS * 24)
"""Hours without an incident: enough for a normal, of a young site by default."""
HOURS: Final = LEARNING + 24
NONE: Final = -1.0
"""No band."""
GOOD: Final = 95
"""Where both scores are at least that good, nobody looks."""
CLOSE: Final = 2
SCORE, BAND = "site:crawlhealth_score", "site:crawlhealth_band:level"
RAISED: Final = "sum by (site) (ALERTS)"
"""A site that resists is told as degrading, too."""
THRESHOLDS: Final = (
    SETTINGS.bands.resisting,
    SETTINGS.bands.leave_resisting,
    SETTINGS.bands.degrading,
    SETTINGS.bands.leave_degrading,
)


pytestmark = pytest.mark.timeout(300 + 120 * DAYS)


def within(first: float, last: float, inside: float, outside: float = 0.0) -> Callable[[Array], Array]:
    """As `between`, by hours after the end of learning."""
    return between(LEARNING + first, LEARNING + last, inside, outside)


SITES: Final = {
    "restless, for hours nothing but errors": Site(
        shares=(0.05, 0.25, 0.05), swing=0.3, errors=within(5, 9, 0.9, 0.005)
    ),
    "quiet, a third is challenged": Site(volume=70, added=challenges(within(6, 99, 0.3))),
    "a step of 20 points, mended": Site(volume=300, added=challenges(within(3, 15, 0.2))),
    "slow, then refuses everything, then serves": Site(
        slow_swing=0.1, slower=within(2, 9, 2.6, 1.0), added=blocks(within(13, 18, 1.0))
    ),
    "busy, a point more each hour": Site(
        volume=4000,
        shares=(0.02, 0.08, 0.02),
        added=challenges(lambda hours: np.clip(0.01 * (hours - LEARNING - 1), 0, 0.3)),
    ),
    "refused, then silent, then served": Site(
        volume=200, added=blocks(within(5, 17, 0.97)), traffic=within(5.5, 17, 0.0, 1.0)
    ),
    "refused for minutes, then silent": Site(
        volume=200, added=blocks(within(5, 17, 0.97)), traffic=within(5.25, 17, 0.0, 1.0)
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What was said of a site at the end of each step after learning: NaN is no score, `NONE` no band."""

    score: NDArray[np.float64]
    band: NDArray[np.float64]


def by_python(past: Past) -> dict[str, Course]:
    replay = Replay([(site, "direct", Source.TRAFFIC) for site in past.sites], SETTINGS, seconds=STEP)
    judged = list(replay.steps(past.stretch(0, HOURS * 3600 // STEP)))[LEARNING * 3600 // STEP :]
    scores = np.array([each.score for each in judged])
    places = np.array([each.states.band for each in judged], dtype=np.float64)
    places[places == bands.UNKNOWN] = NONE
    return {site: Course(score=scores[:, place], band=places[:, place]) for place, site in enumerate(replay.sites)}


def by_rules(past: Past, folder: Path) -> tuple[dict[str, Course], dict[str, NDArray[np.float64]]]:
    """The same of the rules, and how many alerts of bad bands they raise at each of those moments."""
    at = range(LEARNING * 3600 + STEP, HOURS * 3600 + 1, STEP)
    folder.mkdir()
    said = ran(
        fleet.groups(OPTIONS), past.series(), [SCORE, BAND, RAISED], at, folder,
        options=OPTIONS, step=f"{SAMPLE}s", every=f"{STEP}s", timeout=3600,
    )  # fmt: skip
    courses, alerts = {}, {}
    for site in past.sites:
        score, band, alerts[site] = (
            np.array([said.get((query, float(time)), {}).get((site,), none) for time in at])
            for query, none in ((SCORE, np.nan), (BAND, NONE), (RAISED, 0.0))
        )
        courses[site] = Course(score=score, band=band)
    return courses, alerts


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Course], dict[str, Course], dict[str, Array]]:
    """What Python and the rules say, and the alerts of the rules."""
    past = drawn(SITES, HOURS, seed=1)
    courses, alerts = by_rules(past, tmp_path_factory.mktemp("rules") / "all")
    return by_python(past), courses, alerts


def looked_at(one: Course, other: Course) -> NDArray[np.bool_]:
    """The moments at which either score is bad."""
    found: NDArray[np.bool_] = (one.score < GOOD) | (other.score < GOOD)
    return found


def close(one: Course, other: Course) -> NDArray[np.bool_]:
    """The moments at which scores are close, or both are missing."""
    missing = np.isnan(one.score) & np.isnan(other.score)
    return missing | (np.abs(one.score - other.score) <= CLOSE)


def settled(one: Course, other: Course) -> NDArray[np.bool_]:
    """The moments outside of hysteresis: for as long as bands take to begin, neither score was near a threshold.

    The threshold may have been crossed a step sooner by one than by the other.
    """
    near = np.zeros(len(one.score), dtype=np.bool_)
    for course in (one, other):
        for level in THRESHOLDS:
            near |= np.abs(course.score - level) <= CLOSE
    for level in THRESHOLDS:
        near |= (one.score < level) != (other.score < level)
    steps = round(SETTINGS.enter_after.degrading.total_seconds() / STEP) + 1
    return np.array([not near[max(0, place - steps) : place + 1].any() for place in range(len(near))])


def test_scores_of_rules_are_within_two_points_at_nineteen_in_twenty_bad_moments(
    both: tuple[dict[str, Course], dict[str, Course], dict[str, Array]],
) -> None:
    python, rules, _ = both
    bad = {site: looked_at(python[site], rules[site]) for site in SITES}
    good = {site: close(python[site], rules[site]) & bad[site] for site in SITES}
    for site in SITES:
        apart = np.nanmax(np.abs(python[site].score - rules[site].score))
        print(f"{site}: {good[site].sum()} of {bad[site].sum()} bad moments, at most {apart:.0f} points apart")
    count, total = (sum(int(found[site].sum()) for site in SITES) for found in (good, bad))
    print(f"all: {count} of {total}, {count / total:.1%}")
    assert total > 400
    assert count >= 0.95 * total


def test_rules_have_a_score_when_python_has_one(
    both: tuple[dict[str, Course], dict[str, Course], dict[str, Array]],
) -> None:
    python, rules, _ = both
    same = [np.isnan(python[site].score) == np.isnan(rules[site].score) for site in SITES]
    assert np.mean(same) >= 0.98
    assert np.isnan(rules["restless, for hours nothing but errors"].score).any()
    assert np.isnan(rules["refused, then silent, then served"].score).any()


def test_bands_are_the_same_outside_of_hysteresis_and_alerts_are_told_of_them(
    both: tuple[dict[str, Course], dict[str, Course], dict[str, Array]],
) -> None:
    python, rules, alerts = both
    reached = set()
    for site in SITES:
        known = ~(np.isnan(python[site].score) ^ np.isnan(rules[site].score))
        apart = (python[site].band != rules[site].band) & known
        print(f"{site}: bands differ at {apart.sum()} of {len(apart)} moments")
        assert not (apart & settled(python[site], rules[site])).any(), site
        reached |= set(rules[site].band.tolist())
        assert (alerts[site] == np.maximum(rules[site].band, 0.0)).all(), site
    assert reached == {NONE, 0.0, 1.0, 2.0}
