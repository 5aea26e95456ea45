"""Windows against sums written down from the formula, for any slots in any order."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crawlhealth import stats
from crawlhealth.outcome import Source
from crawlhealth.panel import Panel
from crawlhealth.tally import Slot, Tally
from crawlhealth.weighted import COLUMNS, Sums
from crawlhealth.windows import Arrays, Windows
from samples import DAY, HOUR, NOW, slot
from someslots import LIVES, MINUTE, some_slots, sums, windows


def seen(made: Windows, now: float = NOW, *, site: str = "books") -> list[Sums]:
    """What each window of a site holds."""
    return sums(made.panel([site], now), site)


def weight(seen: Slot, now: float, half_life: float, power: int = 1) -> float:
    """The mean weight of the minutes that a slot stands for, each by its start."""
    minutes = max(1, round(seen.seconds / MINUTE))
    return math.fsum(2 ** (-power * (now - seen.start - n * MINUTE) / half_life) for n in range(minutes)) / minutes


SLOTS = some_slots(minutes=3 * 1440)


@given(slots=SLOTS, batch=st.integers(min_value=1, max_value=7))
def test_sums_are_those_of_the_formula(slots: list[Slot], batch: int) -> None:
    made = Windows(LIVES, resolution=MINUTE)
    for first in range(0, len(slots), batch):
        made.add(slots[first : first + batch])
    own = [s for s in slots if s.site == "books"]
    panel = made.panel(["books"], NOW)
    for k, (half_life, total) in enumerate(zip(LIVES, sums(panel), strict=True)):
        for name in ("ok", "challenge", "error", "extractions_failed", "bytes", "credits"):
            expected = math.fsum(getattr(s.tally, name) * weight(s, NOW, half_life) for s in own)
            assert getattr(total, name) == pytest.approx(expected, rel=1e-9, abs=1e-9), name
        answered = math.fsum((s.tally.requests - s.tally.error) * weight(s, NOW, half_life, power=2) for s in own)
        assert total.answered_squares == pytest.approx(answered, rel=1e-9, abs=1e-9)
        for key, row in zip(panel.keys, panel.rows[:, k].tolist(), strict=True):
            expected = math.fsum(
                s.tally.requests * weight(s, NOW, half_life) for s in own if (s.route, s.source) == key
            )
            assert Sums(*row).requests == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(slots=SLOTS)
def test_reading_many_sites_is_reading_each(slots: list[Slot]) -> None:
    made = windows(*slots)
    names = ["quotes", "unknown", "books"] * 100
    panel = made.panel(names, NOW)
    alone = {site: made.panel([site], NOW) for site in names[:3]}
    for n, site in enumerate(names):
        rows, own = panel.owner == n, alone[site]
        assert panel.totals[n].tolist() == own.totals[0].tolist()
        assert panel.rows[rows].tolist() == own.rows.tolist()
        assert panel.row_ids[rows].tolist() == own.row_ids.tolist()
        assert np.array_equal(panel.p95[rows], own.p95, equal_nan=True)
        assert np.array_equal(panel.p95_low[rows], own.p95_low, equal_nan=True)
        assert np.array_equal(panel.site_p95[n], own.site_p95[0], equal_nan=True)


@given(histogram=st.dictionaries(st.integers(0, len(stats.BOUNDS)), st.integers(1, 500), min_size=1, max_size=30))
def test_latency_is_the_quantile_of_the_histogram(histogram: dict[int, int]) -> None:
    made = windows(slot(NOW, Tally(ok=sum(histogram.values()), latency=histogram)))
    assert made.panel(["books"], NOW).site_p95[0].tolist() == [stats.quantile(histogram, 0.95)] * len(LIVES)


def test_a_month_of_minutes_stays_exact() -> None:
    """The weights grow by 2 to the 4,320 for a half-life of ten minutes: their landmark has to move."""
    made = Windows(LIVES, resolution=MINUTE)
    for minute in range(30 * 1440, 0, -7):
        made.add([slot(NOW - minute * MINUTE, Tally(ok=7, latency={150: 7}))])
    panel = made.panel(["books"], NOW)
    for half_life, total in zip(LIVES, sums(panel), strict=True):
        expected = math.fsum(7 * 2 ** (-m * MINUTE / half_life) for m in range(30 * 1440, 0, -7))
        assert total.ok == pytest.approx(expected, rel=1e-9)
    assert panel.site_p95[0].tolist() == pytest.approx([stats.middle(150)] * len(LIVES))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dense", [pytest.param(False, id="as a slot"), pytest.param(True, id="without one")])
def test_an_hour_in_windows_of_seconds_is_its_last_seconds(dense: bool) -> None:
    """Its requests weigh less and more than any number can hold; a clock of seconds is that of a demo."""
    made = Windows((1.0, 3.0, 30.0, 600.0), resolution=1.0)
    hour = slot(NOW - HOUR, Tally(ok=3600, latency={150: 3600}), seconds=HOUR)
    if dense:
        values = np.array([[getattr(hour.tally, name) for name in COLUMNS[:-2]]], dtype=np.float64)
        rows = made.rows_for([(hour.site, hour.route, hour.source)])
        made.add_dense(rows, hour.start, hour.seconds, values, dense_latency([hour]))
    else:
        made.add([hour])
    panel = made.panel(["books"], NOW)
    for half_life, total in zip(panel.half_lives, sums(panel), strict=True):
        weights = [2 ** (-second / half_life) for second in range(1, 3601)]
        assert total.ok == pytest.approx(math.fsum(weights), rel=1e-9)
        assert total.answered_squares == pytest.approx(math.fsum(weight**2 for weight in weights), rel=1e-9)
    assert panel.site_p95[0].tolist() == [stats.middle(150)] * 4
    made.add([slot(NOW, Tally(ok=7, latency={9: 7}), seconds=1)])
    assert seen(made)[0].ok == pytest.approx(7 + sum(2.0**-second for second in range(1, 3601)))


def test_what_comes_late_counts_as_if_it_had_come_in_time() -> None:
    early, late = slot(NOW - 5 * HOUR, Tally(ok=10)), slot(NOW, Tally(ok=20))
    assert seen(windows(early, late)) == seen(windows(late, early))


def test_a_site_that_is_forgotten_is_empty_and_others_are_not() -> None:
    made = windows(slot(NOW, Tally(ok=1, latency={9: 1})), slot(NOW, Tally(ok=2), site="quotes"))
    made.forget("books")
    panel = made.panel(["books", "quotes"], NOW)
    assert sums(panel, "books") == [Sums()] * len(LIVES)
    assert np.isnan(panel.site_p95).all()
    assert sums(panel, "quotes")[0].ok == 2


def test_arrays_come_back_and_leave_out_what_has_vanished() -> None:
    made = windows(slot(NOW - 3650 * DAY, Tally(ok=1), site="old"), lives=LIVES)
    made.add([slot(NOW, Tally(ok=2, latency={9: 2}))])
    kept = made.arrays()
    assert kept.keys == [("books", "direct", Source.TRAFFIC)]
    assert isinstance(kept, Arrays)
    again = Windows(LIVES, resolution=MINUTE, arrays=kept)
    again.add([slot(NOW + 60, Tally(ok=1))])
    made.add([slot(NOW + 60, Tally(ok=1))])
    assert seen(again, NOW + 60) == seen(made, NOW + 60)


def test_routes_and_sources_are_told_apart() -> None:
    panel = windows(
        slot(NOW, Tally(ok=3)),
        slot(NOW, Tally(ok=4), source=Source.CANARY),
        slot(NOW, Tally(error=5), route="dc-us"),
        slot(NOW, Tally(bytes=9), route="idle"),
    ).panel(["books"], NOW)
    assert {key: Sums(*row[0]).requests for key, row in zip(panel.keys, panel.rows.tolist(), strict=True)} == {
        ("direct", Source.TRAFFIC): 3,
        ("direct", Source.CANARY): 4,
        ("dc-us", Source.TRAFFIC): 5,
        ("idle", Source.TRAFFIC): 0,
    }
    assert sums(panel)[0].requests == 12


SEVERAL = [("books", "direct"), ("books", "dc-us"), ("quotes", "direct")]
HISTOGRAMS = st.dictionaries(st.integers(0, len(stats.BOUNDS)), st.integers(1, 500), max_size=30)


@given(slots=SLOTS)
def test_the_rows_of_a_panel_are_those_of_its_sites_side_by_side(slots: list[Slot]) -> None:
    made = windows(*slots)
    sites = ["quotes", "unknown", "books"]
    panel = made.panel(sites, NOW)
    assert panel.half_lives.tolist() == list(LIVES)
    assert panel.owner.tolist() == sorted(panel.owner)
    for n in range(len(sites)):
        assert np.allclose(panel.totals[n], panel.rows[panel.owner == n].sum(axis=0), rtol=1e-12)
    assert [made.strata[row][1:] for row in panel.row_ids] == list(panel.keys) == list(panel.keys[:])
    assert [made.strata[row][0] for row in panel.row_ids] == [sites[n] for n in panel.owner]
    assert {made.strata[row] for row in panel.row_ids} == {(s.site, s.route, s.source) for s in slots}


@given(histograms=st.tuples(HISTOGRAMS, HISTOGRAMS, HISTOGRAMS), refused=st.integers(0, 500))
def test_quantiles_are_those_of_the_histograms(histograms: tuple[dict[int, int], ...], refused: int) -> None:
    slots = [
        slot(NOW, Tally(ok=sum(timed.values()), challenge=refused, latency=timed), site=site, route=route)
        for (site, route), timed in zip(SEVERAL, histograms, strict=True)
    ]
    panel = windows(*slots).panel(["books", "quotes"], NOW)
    for row, timed in enumerate(histograms):
        total = sum(timed.values())
        low = float(stats.wilson_lower(0.95, max(1, total), 1.2816))  # fresh requests: each counts as one
        for k in range(len(LIVES)):
            assert seconds(panel.p95[row, k]) == stats.quantile(timed, 0.95)
            assert seconds(panel.p95_low[row, k]) == stats.quantile(timed, low)
    together = Counter(histograms[0]) + Counter(histograms[1])
    assert [seconds(value) for value in panel.site_p95[:, 0]] == [
        stats.quantile(together, 0.95),
        stats.quantile(histograms[2], 0.95),
    ]


def seconds(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def test_the_lower_bound_knows_how_much_old_requests_are_worth() -> None:
    """Of 4 x 100 requests in ten minutes' steps the effective size is 177, half of which was timed."""
    timed = dict.fromkeys(range(100, 150), 1)
    slots = [slot(NOW - n * 600, Tally(ok=50, hard_block=50, latency=timed)) for n in range(4)]
    panel = windows(*slots).panel(["books"], NOW)
    size = 0.5 * 1.875**2 / 1.328125 * 100
    low = float(stats.wilson_lower(0.95, size, 1.2816))
    assert panel.p95_low[0, 0] == stats.quantile(timed, low) < panel.p95[0, 0] == stats.quantile(timed, 0.95)


@given(pieces=st.lists(some_slots(minutes=600), max_size=5))
def test_remembered_quantiles_are_those_of_now(pieces: list[list[Slot]]) -> None:
    made, seen = windows(), list[Slot]()
    for piece in pieces:
        made.add(piece)
        seen += piece
        panel, fresh = (one.panel(["books", "quotes"], NOW) for one in (made, windows(*seen)))
        assert np.array_equal(panel.site_p95, fresh.site_p95, equal_nan=True)
        assert np.array_equal(panel.p95, fresh.p95, equal_nan=True)


def test_quantiles_stay_as_they_are_while_the_landmark_moves() -> None:
    made = windows(*(slot(NOW, Tally(ok=20, latency={100 + n: 20}), route=f"r{n}") for n in range(3)))
    before = made.panel(["books"], NOW)
    made.add([slot(NOW + 11 * HOUR, Tally(ok=1), site="quotes")])
    after = made.panel(["books"], NOW + 11 * HOUR)
    assert (after.p95.tolist(), after.site_p95.tolist()) == (before.p95.tolist(), before.site_p95.tolist())


def test_nothing_known_is_a_panel_without_rows() -> None:
    panel = windows().panel(["books", "quotes"], NOW)
    assert (panel.rows.shape, panel.p95.shape, len(panel.keys)) == ((0, 4, len(COLUMNS)), (0, 4), 0)
    assert not panel.totals.any()
    assert np.isnan(panel.site_p95).all()
    assert windows(slot(NOW, Tally(ok=1))).panel([], NOW).site_p95.shape == (0, 4)


def dense_latency(slots: list[Slot]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    counts = [(n, *timed) for n, one in enumerate(slots) for timed in one.tally.latency.items()]
    at, buckets, timed = np.array(counts, dtype=np.intp).reshape(-1, 3).T
    return at, buckets, timed.astype(np.float64)


def in_order(panel: Panel) -> list[int]:
    return sorted(range(len(panel.keys)), key=lambda row: (panel.owner[row], panel.keys[row]))


@given(slots=some_slots(minutes=600))
def test_dense_slots_are_slots(slots: list[Slot]) -> None:
    dense = windows()
    by_time: dict[tuple[float, float], list[Slot]] = {}
    for one in slots:
        by_time.setdefault((one.start, one.seconds), []).append(one)
    for (start, wide), some in by_time.items():
        rows = dense.rows_for((one.site, one.route, one.source) for one in some)
        values = np.array([[getattr(one.tally, name) for name in COLUMNS[:-2]] for one in some], dtype=np.float64)
        dense.add_dense(rows, start, wide, values, dense_latency(some) if any(s.tally.latency for s in some) else None)
    panel, expected = (made.panel(["books", "quotes"], NOW) for made in (dense, windows(*slots)))
    assert np.allclose(panel.totals, expected.totals, rtol=1e-9, atol=1e-9)
    assert np.array_equal(panel.site_p95, expected.site_p95, equal_nan=True)
    order, theirs = in_order(panel), in_order(expected)
    assert [panel.keys[row] for row in order] == [expected.keys[row] for row in theirs]
    assert np.allclose(panel.rows[order], expected.rows[theirs], rtol=1e-9, atol=1e-9)


def test_rows_keep_their_numbers_in_windows_made_anew() -> None:
    made = windows(slot(NOW, Tally(ok=1)), slot(NOW, Tally(ok=2), site="quotes"))
    kept = windows(slot(NOW, Tally(ok=3, latency={7: 3}), site="quotes"), slot(NOW, Tally(ok=4), site="new")).arrays()
    again = Windows(LIVES, resolution=MINUTE, arrays=kept, known=made.strata)
    assert [key[0] for key in again.strata] == ["books", "quotes", "new"]
    panel = again.panel(["books", "quotes", "new"], NOW)
    assert panel.row_ids.tolist() == [0, 1, 2]
    assert panel.totals[:, 0, 0].tolist() == [0, 3, 4]
    assert panel.site_p95[1, 0] == stats.middle(7)
