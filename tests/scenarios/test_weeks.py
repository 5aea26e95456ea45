"""What lasts for days, weeks and months: by the hour, each with its band, first reason and delay."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from crawlhealth.verdict import Band, Signal, Unknown
from stories import CALM, SETTINGS, Course, Shares, Stories, Told, Way, always, crawl

N, D, R, U = Band.NORMAL, Band.DEGRADING, Band.RESISTING, Band.UNKNOWN
DAY = 24
FORBIDDEN = (522, 564, 624, 863, 212, 778, 899, 2182)
"""403s a day, one day after another; the days before were like the first three."""
A_DAY = 6000
ACCEPTED = 30 * DAY
WORSE = ACCEPTED + 15 * DAY
END = 72 * DAY
STEPS = tuple(f"+20 pp, {place}" for place in range(8))


def forbidden(hour: float) -> Shares:
    day = int(hour // DAY)
    return ((FORBIDDEN[day] if day < len(FORBIDDEN) else 570) / A_DAY, 0.0, 0.0, 0.0)


def bursts(requests: float, *, refused_days: int) -> tuple[Way, ...]:
    """All requests of a day within one hour."""
    return (
        Way(volume=lambda hour: requests if hour % DAY == 9 else 0.0,
            shares=lambda hour: (1.0, 0.0, 0.0, 0.0) if 0 <= hour < refused_days * DAY else CALM),
    )  # fmt: skip


def step_after(usual: Shares, *, first: Shares, then: Shares | None = None) -> tuple[Way, ...]:
    """A step at once, and perhaps another one when it has long been accepted."""
    return crawl(200, lambda hour: then if then is not None and hour >= WORSE else first, usual=usual, rho=0.01)


def refusing(share: float) -> tuple[Way, ...]:
    """A site that has always refused so much; in the end in another way."""
    return crawl(
        200,
        lambda hour: (share, 0.0, 0.0, 0.0) if hour < WORSE else (0.3, 0.6, 0.0, 0.0),
        usual=(share, 0.0, 0.0, 0.0),
    )


SITES: dict[str, tuple[Way, ...]] = {
    "six days": crawl(200, lambda hour: (0.5, 0.0, 0.0, 0.01) if hour < 6 * DAY else (0.1, 0.0, 0.0, 0.01),
                      usual=(0.1, 0.0, 0.0, 0.01)),
    "403s a day": crawl(A_DAY / DAY, forbidden, usual=(570 / A_DAY, 0.0, 0.0, 0.0), rho=0.005),
    "70 days": crawl(200, lambda hour: (0.0, 1.0, 0.0, 0.0) if hour < 70 * DAY else CALM),
    "+7 pp": crawl(200, always(0.01, 0.09, 0.01, 0.01)),
    "+7 pp, busy": crawl(2000, always(0.01, 0.09, 0.01, 0.01)),
    **{name: crawl(200, always(0.01, 0.22, 0.01, 0.01), rho=0.01) for name in STEPS},
    "+45 pp": crawl(500, always(0.01, 0.47, 0.01, 0.01), rho=0.01),
    "+50 pp": crawl(200, always(0.01, 0.52, 0.01, 0.01), rho=0.01),
    "all": crawl(200, always(0.0, 1.0)),
    "accepted": step_after(CALM, first=(0.01, 0.22, 0.01, 0.01), then=(0.01, 0.42, 0.01, 0.01)),
    "accepted at half": step_after(CALM, first=(0.01, 0.52, 0.01, 0.01), then=(0.01, 0.72, 0.01, 0.01)),
    **{f"refuses {share:.0%}": refusing(share) for share in (0.95, 0.97, 1.0)},
    **{f"bursts of {n}": bursts(n, refused_days=12) for n in (80, 200, 2000)},
    "as ever, in bursts": bursts(200, refused_days=0),
    "past incident": crawl(200, lambda hour: (0.01, 0.92, 0.01, 0.01) if hour < 72 else
                           CALM if hour < 10 * DAY else (0.01, 0.22, 0.01, 0.01)),
}  # fmt: skip


@cache
def told() -> Told:
    stories = Stories(SITES)
    stories.hourly(ACCEPTED)
    for site in ("accepted", "accepted at half"):
        stories.accept(site, since=2)
    for share in (0.95, 0.97, 1.0):
        stories.accept(f"refuses {share:.0%}", since=ACCEPTED - 14 * DAY)
    return stories.hourly(END - ACCEPTED)


def course(site: str) -> Course:
    return told().of(site).within(0)


def test_half_served_for_six_days_is_outside_normal_for_six_days() -> None:
    seen = course("six days")
    assert seen.outside <= 3
    assert seen.first_reason is Signal.HARD_BLOCK
    assert set(seen.within(3, 6 * DAY).bands) <= {D, R}
    assert 6 <= seen.within(6 * DAY).begins(N) - 6 * DAY <= 12, "six hours of evidence, and not many more"
    assert set(seen.within(6 * DAY + 12).bands) == {N}


def test_of_403s_a_day_only_the_day_that_has_more_than_twice_as_many_is_an_incident() -> None:
    seen = course("403s a day")
    assert set(seen.within(0, 7 * DAY).bands) == {N}
    assert seen.outside <= 7 * DAY + 4
    assert seen.first_reason is Signal.HARD_BLOCK
    assert R not in seen.bands
    assert set(seen.within(8 * DAY + 12).bands) == {N}


def test_challenges_that_last_for_weeks_are_resisting_for_weeks() -> None:
    seen = course("70 days")
    assert seen.begins(R) <= 3
    assert seen.first_reason is Signal.CHALLENGE
    assert set(seen.within(3, 70 * DAY).bands) == {R}
    assert set(seen.within(70 * DAY + 12).bands) == {N}


@pytest.mark.parametrize("site", ["+7 pp", "+7 pp, busy"])
def test_a_lasting_seven_points_more_are_no_incident(site: str) -> None:
    """They cost less than nine points, and a person sees the reason; no band comes or goes in 72 days."""
    seen = course(site)
    assert set(seen.bands) == {N}
    assert np.median(seen.within(2, 5 * DAY).points[:, 1]) > 1
    assert np.nanmax(seen.within(0, 2 * DAY).drift) > SETTINGS.drift_threshold


def test_twenty_points_more_are_found_and_still_outside_normal_after_thirty_days() -> None:
    seen = [course(name) for name in STEPS]
    assert all(one.outside <= 24 for one in seen)
    assert np.median([one.outside for one in seen]) <= 8
    assert {one.first_reason for one in seen} == {Signal.CHALLENGE}
    for one in seen:
        assert one.within(0, 30 * DAY).bands[-1] is D
        assert np.mean([band is N for band in one.within(24, 30 * DAY).bands]) < 0.1


@pytest.mark.parametrize(("site", "bands"), [("+50 pp", {D, R}), ("all", {R})])
def test_worse_never_looks_normal_in_seventy_days(site: str, bands: set[Band]) -> None:
    assert set(course(site).within(4).bands) <= bands


def test_a_site_that_stays_between_degrading_and_resisting_does_not_flap() -> None:
    seen = course("+45 pp").within(24, 30 * DAY)
    changes = sum(a is not b for a, b in zip(seen.bands, seen.bands[1:], strict=False))
    assert changes <= 8, f"{changes} changes in 29 days"


@pytest.mark.parametrize("site", ["accepted", "accepted at half"])
def test_what_a_person_accepts_after_a_month_is_normal_and_more_of_it_is_found(site: str) -> None:
    seen = course(site)
    assert set(seen.within(24, ACCEPTED).bands) <= {D, R, N}
    assert seen.within(0, ACCEPTED).bands[-1] in (D, R)
    after = seen.within(ACCEPTED)
    assert after.bands[0] is N
    calm = seen.within(ACCEPTED, WORSE)
    assert set(calm.bands) == {N}
    assert calm.scores.mean() > 95
    worse = seen.within(WORSE)
    assert worse.outside - WORSE <= 24
    assert worse.first_reason is Signal.CHALLENGE
    assert np.mean([band is not N for band in worse.within(WORSE + 24).bands]) > 0.9


@pytest.mark.parametrize("site", ["refuses 95%", "refuses 97%", "refuses 100%"])
def test_a_site_that_has_always_refused_waits_for_a_person_and_is_scored_from_then_on(site: str) -> None:
    seen = course(site)
    before = seen.within(0, ACCEPTED)
    assert set(before.unknown) == {Unknown.BASELINE_REFUSED}
    assert set(before.bands) == {U}
    accepted = seen.within(ACCEPTED, WORSE)
    assert set(accepted.unknown) == {None}
    assert set(accepted.bands) == {N}
    assert accepted.scores.mean() > 97
    worse = seen.within(WORSE)
    assert worse.outside - WORSE <= 6, "other refusals in their place are new"
    assert worse.first_reason is Signal.CHALLENGE


@pytest.mark.parametrize(("requests", "days"), [(80, 4), (200, 3), (2000, 3)])
def test_a_site_that_is_crawled_in_daily_bursts_gets_its_verdict_by_them(requests: int, days: int) -> None:
    seen = course(f"bursts of {requests}")
    assert seen.begins(R) <= days * DAY
    assert seen.first_reason is Signal.HARD_BLOCK
    assert set(seen.within(days * DAY, 12 * DAY).bands) == {R}, "the nights between them change nothing"
    assert seen.within(12 * DAY).begins(N) <= 22 * DAY, "each burst that is served is an hour of six"
    assert not {D, R} & set(seen.within(22 * DAY).bands)


def test_daily_bursts_as_ever_are_never_bad() -> None:
    seen = course("as ever, in bursts")
    assert set(seen.bands) == {N, U}
    assert np.nanmin(seen.scores) > 85


def test_a_past_incident_hides_no_new_one() -> None:
    seen = course("past incident")
    assert seen.outside <= 3
    assert set(seen.within(72 + 12, 10 * DAY).bands) == {N}
    new = seen.within(10 * DAY)
    assert new.outside - 10 * DAY <= 24
    assert new.first_reason is Signal.CHALLENGE
