"""The figures of a review, on a history worked out by hand."""

from __future__ import annotations

import math

import pytest

from crawlhealth.incident import Incident
from crawlhealth.outcome import Source
from crawlhealth.review import Obedience, obedience, review
from crawlhealth.tally import Slot, Tally
from crawlhealth.verdict import NEUTRAL, Advice, Band, IncidentLabel, Signal
from samples import DAY, HOUR, NOW, slot

STOP = Advice(concurrency_ratio=0.0, paused=True)
HALF = Advice(concurrency_ratio=0.5)


def incident(
    start: float,
    end: float | None = None,
    *,
    site: str = "books",
    warned: float | None = None,
    worst: float = 0.0,
    label: IncidentLabel | None = None,
    first: Signal | None = Signal.CHALLENGE,
    right: Signal | None = None,
    advice: tuple[tuple[float, Advice], ...] = (),
    paused: float = 0.0,
) -> Incident:
    """Times are hours from NOW; `warned` and `worst` are hours before and after its start."""
    begun = NOW + start * HOUR
    return Incident(
        site=site, start=begun, end=None if end is None else NOW + end * HOUR, worst_score=30,
        worst_band=Band.RESISTING, worst_at=begun + worst * HOUR,
        warned_at=None if warned is None else begun - warned * HOUR, label=label,
        first_reason=first, right_reason=right, paused_seconds=paused,
        advice=tuple((NOW + at * HOUR, each) for at, each in advice),
    )  # fmt: skip


def hours(first: int, last: int, tally: Tally, *, source: Source = Source.TRAFFIC) -> list[Slot]:
    """The same in every hour from `first` until before `last`, hours from NOW."""
    return [slot(NOW + hour * HOUR, tally, seconds=HOUR, source=source) for hour in range(first, last)]


SLOTS = [
    *hours(-24, -20, Tally(ok=90, hard_block=10)),  # the hours of the advice, a day before
    *hours(-20, 0, Tally(ok=1000)),  # other hours of the day
    *hours(0, 1, Tally(ok=10, hard_block=60, error=30)),
    *hours(1, 3, Tally(ok=1, hard_block=9)),
    *hours(0, 4, Tally(ok=0, hard_block=1), source=Source.CANARY),
]


def test_advice_is_held_against_the_same_hours_a_day_before() -> None:
    found = obedience(incident(-0.5, 3.5, advice=((-0.5, HALF), (2, STOP))), SLOTS, NOW + DAY)
    # three whole hours, 0 to 3: 100 + 10 + 10 of 300 requests; 0.5 for two of them, 0 for one
    assert found is not None
    assert (found.hours, found.followed, round(found.advised, 4)) == (3, 0.4, 0.3333)
    assert found.refused_before == 0.1
    assert found.refused_after == (60 + 9 + 9 + 3) / (70 + 20 + 3), "of answered requests, canaries too"
    assert found.obeyed


@pytest.mark.parametrize(
    ("found", "now"),
    [
        pytest.param(incident(-0.5, 0.9, advice=((-0.5, HALF),)), DAY, id="no whole hour"),
        pytest.param(incident(0, advice=((0, HALF),)), HOUR / 2, id="no whole hour yet"),
        pytest.param(incident(0, 4, advice=((0, NEUTRAL),)), DAY, id="nothing was asked of crawlers"),
        pytest.param(incident(0, 4), DAY, id="no advice is known"),
        pytest.param(incident(-30, -25, advice=((-30, STOP),)), DAY, id="no traffic a day before"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_not(found: Incident, now: float) -> None:
    assert obedience(found, SLOTS, NOW + now) is None


def test_advice_is_followed_for_a_day_at_most_and_days_that_were_summed_up_say_nothing() -> None:
    slots = [*hours(-24, 72, Tally(ok=10)), slot(NOW, Tally(ok=10**6), seconds=DAY)]
    found = obedience(incident(0, 70, advice=((0, STOP),)), slots, NOW + 90 * HOUR)
    assert found is not None
    assert (found.hours, found.followed, found.obeyed) == (24, 1.0, False)


def test_no_traffic_at_all_is_a_pause_that_was_obeyed() -> None:
    found = obedience(incident(0, 2, advice=((0, STOP),)), hours(-24, 0, Tally(ok=10)), NOW + DAY)
    assert found == Obedience(
        site="books", start=NOW, hours=2, advised=0.0, followed=0.0, refused_before=0.0, refused_after=None
    )


TRUE, FALSE = IncidentLabel.TRUE, IncidentLabel.FALSE_ALARM
INCIDENTS = [
    incident(0, 4, warned=6, worst=2, label=TRUE, right=Signal.CHALLENGE, advice=((0, STOP),), paused=4 * HOUR),
    incident(20, 22, warned=2, worst=1, label=TRUE, right=Signal.LATENCY),
    incident(30, 31, label=FALSE),
    incident(40, advice=((40, STOP),)),  # still on at 44
    incident(1, 2, site="quotes", first=Signal.REFUSED_CAP, label=TRUE, right=Signal.REFUSED),
    incident(-1, 50, site="quotes", label=FALSE),  # began before the period
    incident(50, 51, site="shop"),  # begins after it
]


def test_figures_by_site_and_overall() -> None:
    asked: list[tuple[str, float]] = []

    def slots(site: str, since: float) -> list[Slot]:
        asked.append((site, since))
        return [*SLOTS, *hours(16, 20, Tally(ok=50)), *hours(40, 44, Tally(ok=25))]

    found = review(INCIDENTS, slots, since=NOW, until=NOW + 50 * HOUR, now=NOW + 44 * HOUR)
    assert [each.site for each in found.sites] == ["books", "quotes"]
    books, quotes = (each.figures for each in found.sites)
    assert (books.incidents, books.open) == (4, 1)
    assert (books.true, books.false_alarms, books.unlabelled, books.precision) == (2, 1, 1, 2 / 3)
    assert (books.warned, books.warning_to_band, books.band_to_worst) == (2, 4 * HOUR, HOUR / 2)
    assert (books.reason_right, books.reason_wrong, books.reason_unknown) == (1, 1, 2)
    assert books.paused_seconds == 8 * HOUR, "four hours that are over, four that are not"
    # the first: 120 of 400 requests while paused; the last: 25 an hour where 50 came a day before
    assert (books.advised, books.obeyed, books.advised_ratio, books.traffic_ratio) == (2, 0, 0.0, 0.4)
    assert [(each.start, each.followed) for each in found.obedience] == [(NOW, 0.3), (NOW + 40 * HOUR, 0.5)]
    assert asked == [("books", NOW - DAY)], "once, and of sites with advice only"
    assert (quotes.incidents, quotes.precision, quotes.reason_right) == (1, 1.0, 1), "the cap is a refusal"
    assert (quotes.warned, quotes.warning_to_band, quotes.advised, quotes.traffic_ratio) == (0, None, 0, None)
    overall = found.overall
    assert (overall.incidents, overall.true, overall.false_alarms, overall.unlabelled) == (5, 3, 1, 1)
    assert (overall.precision, overall.band_to_worst, overall.reason_right) == (0.75, 0.0, 2)


def test_nothing_is_nothing_and_not_0() -> None:
    found = review([], lambda _site, _since: [], since=NOW, until=math.inf, now=NOW)
    assert (found.sites, found.obedience, found.overall.incidents) == ((), (), 0)
    assert (found.overall.precision, found.overall.band_to_worst, found.overall.refused_before) == (None, None, None)
