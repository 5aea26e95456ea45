"""What becomes the normal of a site once a person has accepted it, and when."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from crawlhealth import marks
from crawlhealth.verdict import Accepted
from pasts import REACH, Counts, certain, counts, hours, learnt, steady
from samples import DAY, HOUR, NOW

pytestmark = pytest.mark.filterwarnings("error")


def changed(hours_ago: int) -> Counts:
    past = steady()
    past[-hours_ago:] = counts(1, ok=70, challenge=30)
    return past


def outside(hours_ago: int, upto: int = 0) -> dict[str, ArrayLike]:
    judged = np.full(REACH, 100)
    judged[-hours_ago : REACH - upto] = marks.OUTSIDE
    return {"books": judged}


def taken(at_hours_ago: float, since_hours_ago: float) -> Accepted:
    return Accepted(site="books", at=NOW - at_hours_ago * HOUR, since=NOW - since_hours_ago * HOUR)


def test_what_a_person_accepted_is_the_normal_at_once_once_there_are_six_blocks_of_it() -> None:
    before = certain(learnt(hours(steady())))
    for ago, expected in ((5, None), (6, 0.3), (40, 0.3), (200, 0.3), (REACH - 24, 0.3)):
        past = hours(changed(ago), judged=outside(ago))
        found = certain(learnt(past, known=before, accepted=taken(0, ago)))
        if expected is None:
            assert found is before
        else:
            assert found.rates.challenge == pytest.approx(expected), f"accepted {ago} hours after the change"
            assert found.accepted_at == NOW


def test_a_change_that_is_older_than_two_weeks_can_be_accepted_as_well() -> None:
    """An incident that nobody fixed for a month, and that somebody accepts then: all its hours were outside normal."""
    before = certain(learnt(hours(steady())))
    past = hours(counts(REACH, ok=70, challenge=30), judged={"books": marks.OUTSIDE})
    found = certain(learnt(past, known=before, accepted=taken(0, 30 * 24)))
    assert found.rates.challenge == pytest.approx(0.3)
    assert found.accepted_at == NOW


def test_what_was_accepted_early_is_learnt_although_the_band_goes_on_until_then() -> None:
    """Accepted two hours after the change; judged by the old normal the site stays outside until there are six."""
    before = certain(learnt(hours(steady())))
    past = hours(changed(6), judged=outside(6))
    found = certain(learnt(past, known=before, accepted=taken(4, 6)))
    assert found.rates.challenge == pytest.approx(0.3)
    later = hours(changed(7), judged=outside(7, upto=1))
    assert learnt(later, known=found, accepted=taken(5, 7)) is not before, "and it stays so"


def test_an_accepted_normal_that_holds_has_no_excluded_day_until_there_are_fourteen() -> None:
    judged = outside(100, upto=100)
    found = certain(learnt(hours(changed(100), judged=judged), accepted=taken(100, 100)))
    assert (found.hours, found.newest) == (100, NOW)
    old = certain(learnt(hours(changed(REACH)), accepted=taken(340, 14 * 24)))
    assert (old.hours, old.newest) == (13 * 24, NOW - DAY)


def test_an_incident_after_an_accepted_normal_is_none_of_it() -> None:
    """What was accepted is what came up to then and goes on: a further step is left out as ever."""
    past = changed(200)
    past[-30:] = counts(1, ok=30, challenge=70)
    judged = np.full(REACH, 100)
    judged[-200:-190] = marks.OUTSIDE
    judged[-29:] = marks.OUTSIDE
    normal = certain(learnt(hours(changed(200), judged=outside(200, 190)), accepted=taken(190, 200)))
    found = certain(learnt(hours(past, judged={"books": judged}), known=normal, accepted=taken(190, 200)))
    assert found.rates.challenge == pytest.approx(0.3)
    assert found.newest <= NOW - 29 * HOUR
