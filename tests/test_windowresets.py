"""Resets of windows, taken between slots or found again among them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth import stats
from crawlhealth.tally import Slot, Tally
from crawlhealth.windows import NOTHING, Windows
from samples import DAY, HOUR, NOW, slot
from someslots import LIVES, MINUTE, some_slots, windows


def held(made: Windows, site: str, now: float) -> list[list[float]]:
    """The sums of a site by half-life and column, its p95 behind them."""
    panel = made.panel([site], now)
    return [[*sums, slow] for sums, slow in zip(panel.totals[0].tolist(), panel.site_p95[0].tolist(), strict=True)]


def scaled(sums: list[float], after: float, half_life: float) -> list[float]:
    """The same after some seconds."""
    weight = 2 ** (-after / half_life)
    return [*(value * weight for value in sums[:12]), *(value * weight**2 for value in sums[12:14]), sums[14]]


def close(values: list[float]) -> object:
    return pytest.approx(values, rel=1e-5, abs=1e-9, nan_ok=True)


@given(slots=some_slots(minutes=600), window=st.integers(0, 3))
def test_a_reset_makes_every_longer_window_what_that_one_holds(slots: list[Slot], window: int) -> None:
    made, untouched = windows(*slots), windows(*slots)
    held(made, "books", NOW)  # its quantiles are known by now
    made.reset(["books", "unknown"], np.array([window, 0]), NOW + 60)
    before, after = held(untouched, "books", NOW + 60), held(made, "books", NOW + 60)
    assert after == [close(before[min(k, window)]) for k in range(4)]
    assert held(made, "books", NOW + 3600) == [
        close(scaled(one, 3540, life)) for one, life in zip(after, LIVES, strict=True)
    ]
    assert held(made, "quotes", NOW) == [close(one) for one in held(untouched, "quotes", NOW)]
    if slots:
        bounds, whole = made.panel(["books"], NOW).p95_low, untouched.panel(["books"], NOW).p95_low
        assert np.array_equal(bounds[:, window:], np.repeat(whole[:, [window]], 4 - window, axis=1), equal_nan=True)


def test_many_sites_are_reset_each_to_its_own_window() -> None:
    slots = [
        slot(NOW - n * HOUR, Tally(ok=1 + n, latency={n: 9}), site=s) for n in range(3) for s in ("a", "b", "c", "d")
    ]
    made, whole = windows(*slots), windows(*slots)
    made.reset(["d", "a", "c"], np.array([NOTHING, 2, 0]), NOW)
    ok = {site: [sums[0] for sums in held(made, site, NOW)] for site in "abcd"}
    first, second, third, fourth = (sums[0] for sums in held(whole, "a", NOW))
    assert ok == {
        "a": close([first, second, third, third]),
        "b": close([first, second, third, fourth]),
        "c": close([first] * 4),
        "d": [0] * 4,
    }
    assert np.isnan(made.panel(["d"], NOW).p95).all()


def test_old_good_traffic_does_not_lift_a_site_that_has_stopped_answering() -> None:
    """The figures of an outage: 200 requests an hour for a day, twelve minutes of refusals, then nothing."""
    good = [slot(NOW - n * 60, Tally(ok=10)) for n in range(13, 1440, 3)]
    bad = [slot(NOW - n * 60, Tally(hard_block=10)) for n in range(0, 12, 3)]
    made = windows(*good, *bad)
    before = share(made, NOW)
    assert before == sorted(before, reverse=True)
    assert before[3] < 0.05
    made.reset(["books"], np.array([0]), NOW)
    assert share(made, NOW + 8 * HOUR) == pytest.approx([before[0]] * 4)


def share(made: Windows, now: float) -> list[float]:
    """The refused share by half-life."""
    return [sums[1] / sum(sums[:5]) for sums in held(made, "books", now)]


RESETS = st.lists(st.tuples(st.integers(1, 600), st.integers(NOTHING, 3)), max_size=6)


@given(slots=some_slots(minutes=600), resets=RESETS, data=st.data())
def test_slots_with_resets_between_them_come_in_any_order(
    slots: list[Slot], resets: list[tuple[int, int]], data: st.DataObject
) -> None:
    """What is made anew is what was: a slot counts as begun before a reset, or after it."""
    times = [(NOW - minutes * MINUTE, window) for minutes, window in sorted(resets, reverse=True)]
    in_order, anew = windows(), windows()
    begun = sorted(slots, key=lambda one: one.start)
    for at, window in times:
        in_order.add([one for one in begun if one.start < at])
        begun = [one for one in begun if one.start >= at]
        in_order.reset(["books"], np.array([window]), at)
    in_order.add(begun)
    mixed = data.draw(st.permutations(slots))
    for first in range(0, len(mixed), 7):
        anew.add(mixed[first : first + 7], {"books": times})
    for site in ("books", "quotes"):
        expected, found = held(in_order, site, NOW), held(anew, site, NOW)
        assert [one[:14] for one in found] == [close(one[:14]) for one in expected]


def test_windows_made_anew_know_latencies_from_before_a_reset() -> None:
    """In the shortest window, two days fade by 2 to the 288: more than a float can say in one piece."""
    timed = slot(NOW - 2 * DAY, Tally(ok=90, latency={7: 90}))
    made = windows()
    made.add([slot(NOW, Tally(ok=1), site="quotes"), timed], {"books": [(NOW - 2 * DAY + 60, 0)]})
    assert made.panel(["books"], NOW).p95[0, 3] == stats.middle(7)
    weight = 2 ** (-60 / LIVES[0]) * 2 ** (-(2 * DAY - 60) / LIVES[3])
    assert held(made, "books", NOW)[3][0] == pytest.approx(90 * weight)
