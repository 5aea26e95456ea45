"""Season: what the hour and the day tell of a share is found where both weeks show it, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from crawlhealth import season
from crawlhealth.phases import DAY_HOURS, EFFECTS, HOUR

Array = NDArray[np.float64]

MONDAY = 1_767_571_200.0  # 2026-01-05T00:00:00Z
WEEKS = 14 * DAY_HOURS
STARTS: Array = MONDAY + HOUR * np.arange(WEEKS, dtype=np.float64)
EVERY = np.ones((1, WEEKS), dtype=np.bool_)
NOTHING = np.zeros((1, 2, EFFECTS))
HALF_LIVES = np.array([600.0, 1800.0, 7200.0, 21600.0])


def logistic(odds: NDArray[np.floating]) -> Array:
    return np.asarray(1 / (1 + np.exp(-odds)), dtype=np.float64)


def by_day(starts: Array) -> Array:
    return np.asarray(np.sin(2 * np.pi * starts / HOUR / DAY_HOURS), dtype=np.float64)


def at_weekends(starts: Array) -> Array:
    return ((starts - MONDAY) // (DAY_HOURS * HOUR) % 7 >= 5).astype(np.float64)


def drawn(odds: NDArray[np.floating], requests: int = 300, seed: int = 1) -> Array:
    """How many of so many requests are refused in each hour, restlessly: (1, 1, H)."""
    chance = np.random.default_rng(seed)
    counts = chance.binomial(requests, logistic(odds + chance.normal(0, 0.3, odds.shape)))
    return counts[None, None].astype(np.float64)


@dataclass(frozen=True)
class Fitted:
    """The effects on one share, by the hour of the day and by the day of the week from Monday on."""

    whole: Array

    @property
    def of_hour(self) -> Array:
        return self.whole[0, 0, :DAY_HOURS]

    @property
    def of_day(self) -> Array:
        return self.whole[0, 0, DAY_HOURS:]


def fitted(
    hostile: Array, *, usable: NDArray[np.bool_] = EVERY, known: Array = NOTHING, longest: str = "week"
) -> Fitted:
    return Fitted(season.fitted(np.full((1, WEEKS), 300.0), hostile, usable, STARTS, known=known, longest=longest))


def test_what_every_day_and_weekend_shows_is_found() -> None:
    found = fitted(drawn(-1.5 + by_day(STARTS) + at_weekends(STARTS)))
    assert found.of_hour == pytest.approx(by_day(STARTS[:DAY_HOURS] + HOUR / 2), abs=0.4)
    assert found.of_day[5:].mean() - found.of_day[:5].mean() == pytest.approx(1.0, abs=0.25)


def test_days_of_the_week_are_left_alone_where_only_the_hours_of_the_day_tell_something_or_are_asked() -> None:
    only_hours = fitted(drawn(-1.5 + by_day(STARTS)))
    assert np.ptp(only_hours.of_hour) > 1
    assert not only_hours.of_day.any()
    asked = fitted(drawn(-1.5 + by_day(STARTS) + at_weekends(STARTS)), longest="day")
    assert np.ptp(asked.of_hour) > 1
    assert not asked.of_day.any()


@pytest.mark.parametrize("seed", range(8))
def test_chance_makes_no_season(seed: int) -> None:
    assert not fitted(drawn(np.full(WEEKS, -2.0), seed=seed)).whole[:, 0].any()


@pytest.mark.parametrize(("first", "last"), [(9, 11), (5, 8), (11, 14), (0, 3)])
def test_an_incident_of_some_days_is_no_season(first: int, last: int) -> None:
    day = (STARTS - MONDAY) // (DAY_HOURS * HOUR)
    assert not fitted(drawn(-2.0 + 3.0 * ((day >= first) & (day < last)))).whole[:, 0].any()


def test_nor_is_a_drift() -> None:
    assert not fitted(drawn(np.linspace(-3.0, 0.0, WEEKS, dtype=np.float64))).whole[:, 0].any()


def test_what_is_known_stays_where_hours_are_missing_and_goes_when_they_disprove_it() -> None:
    known = fitted(drawn(-1.5 + by_day(STARTS) + at_weekends(STARTS)))
    weekdays = (at_weekends(STARTS) == 0)[None]
    without = fitted(drawn(-1.5 + by_day(STARTS) + at_weekends(STARTS), seed=2), usable=weekdays, known=known.whole)
    assert without.of_day == pytest.approx(known.of_day, abs=0.2)
    assert without.of_day[5:].mean() - without.of_day[:5].mean() > 0.75
    few = fitted(drawn(np.full(WEEKS, -1.5)), usable=EVERY & (np.arange(WEEKS) < 30), known=known.whole)
    assert few.whole == pytest.approx(known.whole)
    assert not fitted(drawn(np.full(WEEKS, -1.5)), known=known.whole).whole[:, 0].any()


def test_the_hours_of_a_site_that_nobody_asks_at_night_are_weighed_by_what_came() -> None:
    """An hour without requests says nothing, and a window holds more of the busy hours."""
    answered = np.where(STARTS // HOUR % DAY_HOURS < 12, 300.0, 0.0)[None]
    hostile = drawn(-1.5 + at_weekends(STARTS)) * (answered > 0)
    found = season.fitted(answered, hostile, answered > 0, STARTS, known=NOTHING, longest="week")
    assert Fitted(found).of_day[5:].mean() - Fitted(found).of_day[:5].mean() == pytest.approx(1.0, abs=0.3)
    assert Fitted(found).of_hour[12:] == pytest.approx(np.zeros(12))


def test_shares_without_their_season_have_a_level_that_its_hours_lie_about_again() -> None:
    effects = np.zeros((1, 2, EFFECTS))
    effects[0, 0, :DAY_HOURS] = by_day(STARTS[:DAY_HOURS])
    level = np.array([[0.3]])
    shares = level[..., None] + season.at_hours(effects, level, STARTS)
    assert shares[0, 0] == pytest.approx(logistic(np.log(0.3 / 0.7) + by_day(STARTS)))
    assert season.without(shares, effects, STARTS) == pytest.approx(np.full(shares.shape, 0.3))
    assert season.unpacked(season.packed(effects[0])) == pytest.approx(effects[0])


def test_a_window_is_expected_to_hold_what_its_hours_are_weighed_by_age_and_volume() -> None:
    effects = np.zeros((1, 2, EFFECTS))
    effects[0, 0, :DAY_HOURS] = by_day(STARTS[:DAY_HOURS] + HOUR / 2)
    effects[0, 0, DAY_HOURS + 5 :] = 1.0
    effects[0, 1, :DAY_HOURS] = -by_day(STARTS[:DAY_HOURS] + HOUR / 2)
    level = np.array([[0.25]])
    for at in MONDAY + HOUR * np.array([24 * 8 + 3.5, 24 * 12 + 6, 24 * 13 + 18.25]):
        minutes = at - 60 * (np.arange(60 * 100) + 0.5)
        share = logistic(np.log(0.25 / 0.75) + by_day(minutes) + at_weekends(minutes)) - 0.25
        for half_life, found in zip(
            HALF_LIVES, season.in_windows(effects, level, np.array([at]), HALF_LIVES)[0, :, 0], strict=True
        ):
            weight = np.exp2(-(at - minutes) / half_life) * np.exp(-by_day(minutes))
            assert found == pytest.approx(np.average(share, weights=weight), abs=0.03)


def test_where_nothing_is_known_nothing_is_expected_to_differ() -> None:
    level = np.array([[0.0, 0.5, 1.0]])
    none = np.zeros((1, 4, EFFECTS))
    assert not season.at_hours(none, level, STARTS).any()
    assert not season.in_windows(none, level, STARTS[:1], HALF_LIVES).any()
