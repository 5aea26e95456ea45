"""Stretches: sums by step and stratum as arrays are those that adding up by hand gives, and so are their p95."""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlhealth import columns, stats
from crawlhealth.columns import BUCKETS, FIELDS, Columns
from crawlhealth.outcome import Source
from crawlhealth.stretch import Stretch, dense, p95
from crawlhealth.tally import LARGEST, Slot, Tally, merged, pack, unpack
from crawlhealth.weighted import COLUMNS, SQUARED
from samples import DAY, HOUR, NOW, slot

MINUTE = 60.0
MIDNIGHT = NOW // DAY * DAY

histograms = st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 500), max_size=6)
sums = st.integers(0, 300) | st.integers(0, LARGEST)
tallies = st.builds(
    Tally, **dict.fromkeys(FIELDS, st.integers(0, 10_000)), latency_sum=st.floats(0, 1e6), latency=histograms
)
large_tallies = st.builds(
    Tally,
    **{name: st.floats(0, 1e15) if name == "credits" else sums for name in FIELDS},
    latency_sum=st.floats(0, 1e15),
    latency=st.dictionaries(st.integers(0, BUCKETS - 1), sums, max_size=40),
)
slots = st.builds(
    Slot,
    site=st.sampled_from(["books", "shop"]),
    route=st.sampled_from(["direct", "dc"]),
    source=st.sampled_from(Source),
    start=st.integers(-60, 200).map(lambda minute: MIDNIGHT + minute * MINUTE),
    seconds=st.sampled_from([5.0, MINUTE]),
    tally=tallies,
)
hours = st.builds(
    slot,
    st.integers(-30, 30).map(lambda hour: MIDNIGHT + hour * HOUR),
    tallies,
    seconds=st.sampled_from([HOUR, DAY]),
    site=st.sampled_from(["books", "shop"]),
)


def values(tally: Tally) -> list[float]:
    return [float(getattr(tally, name)) for name in FIELDS]


def histogram(stretch: Stretch, site: str, step: int) -> dict[int, float]:
    for entry in range(len(stretch.step)):
        if (stretch.keys[stretch.row[entry]][0], stretch.step[entry]) == (site, step):
            timed = slice(stretch.timed[entry], stretch.timed[entry + 1])
            return dict(zip(stretch.bucket[timed].tolist(), stretch.count[timed].tolist(), strict=True))
    return {}


def test_columns_are_those_of_weighted_sums() -> None:
    assert COLUMNS[:-SQUARED] == FIELDS


@pytest.mark.parametrize(
    ("given_slots", "seconds", "expected"),
    [
        pytest.param([], HOUR, [0, 0, 0], id="nothing"),
        pytest.param([slot(MIDNIGHT + HOUR, Tally(ok=5), seconds=HOUR)], HOUR, [0, 5, 0], id="an hour is its step"),
        pytest.param(
            [slot(MIDNIGHT + 59 * MINUTE, Tally(ok=5)), slot(MIDNIGHT, Tally(ok=2)), slot(MIDNIGHT + HOUR, Tally())],
            HOUR,
            [7, 0, 0],
            id="minutes are added up to their hour",
        ),
        pytest.param(
            [slot(MIDNIGHT, Tally(ok=3), seconds=HOUR), slot(MIDNIGHT + MINUTE, Tally(ok=1))],
            HOUR,
            [4, 0, 0],
            id="a straggler is added to its hour",
        ),
        pytest.param([slot(MIDNIGHT, Tally(ok=48), seconds=DAY)], HOUR, [2, 2, 2], id="a day is spread over its hours"),
        pytest.param(
            [slot(MIDNIGHT - 23 * HOUR, Tally(ok=48), seconds=DAY)], HOUR, [2, 0, 0],
            id="and what of it lies before the first is left out",
        ),
        pytest.param(
            [slot(MIDNIGHT + 90 * MINUTE, Tally(ok=2), seconds=2 * HOUR)], HOUR, [0, 0.5, 1],
            id="one that begins within a step is spread by time",
        ),
        pytest.param([slot(MIDNIGHT, Tally(ok=60), seconds=HOUR)], MINUTE, [1, 1, 1], id="an hour over its minutes"),
        pytest.param(
            [slot(MIDNIGHT + 30 * MINUTE, Tally(ok=5), seconds=HOUR)], HOUR, [5, 0, 0],
            id="one as wide as a step is whole in the step of its start",
        ),
        pytest.param(
            [slot(MIDNIGHT - MINUTE, Tally(ok=5)), slot(MIDNIGHT + 3 * HOUR, Tally(ok=5))], HOUR, [0, 0, 0],
            id="what begins outside is left out",
        ),
    ],
)  # fmt: skip
def test_where_slots_count(given_slots: list[Slot], seconds: float, expected: list[float]) -> None:
    stretch = Stretch.of(given_slots, start=MIDNIGHT, seconds=seconds, steps=3)
    assert dense(stretch)[..., 0].sum(axis=0).tolist() == pytest.approx(expected)


def test_latency_is_spread_and_added_like_the_rest() -> None:
    slow, fast = Tally(ok=24, latency={200: 12, 100: 12}), Tally(ok=2, latency={150: 1, 100: 1})
    given_slots = [slot(MIDNIGHT, slow, seconds=DAY), slot(MIDNIGHT + HOUR, fast), slot(MIDNIGHT + HOUR, fast)]
    stretch = Stretch.of(given_slots, start=MIDNIGHT, seconds=HOUR, steps=24)
    assert histogram(stretch, "books", 0) == {100: 0.5, 200: 0.5}
    assert histogram(stretch, "books", 1) == {100: 2.5, 150: 2, 200: 0.5}
    assert p95(stretch)[0, :2].tolist() == [stats.middle(200)] * 2


@given(st.lists(slots, max_size=30))
def test_fine_slots_are_added_up_exactly(given_slots: list[Slot]) -> None:
    stretch = Stretch.of(given_slots, start=MIDNIGHT, seconds=HOUR, steps=3)
    plain: dict[tuple[tuple[str, str, Source], int], list[Tally]] = defaultdict(list)
    for one in given_slots:
        step = math.floor((one.start - MIDNIGHT) / HOUR)
        if 0 <= step < 3:
            plain[(one.site, one.route, one.source), step].append(one.tally)
    order = [(step, row) for step, row in zip(stretch.step.tolist(), stretch.row.tolist(), strict=True)]
    assert order == sorted(set(order))
    assert {(stretch.keys[row], step) for step, row in order} == set(plain)
    block, slow = dense(stretch), p95(stretch)
    for row, key in enumerate(stretch.keys):
        for step in range(3):
            total = merged(plain.get((key, step), []))
            assert block[row, step].tolist() == values(total)
            assert slow[row, step] == pytest.approx(stats.quantile(total.latency, 0.95) or math.nan, nan_ok=True)
    for entry, (step, row) in enumerate(order):
        timed = slice(stretch.timed[entry], stretch.timed[entry + 1])
        total = merged(plain[stretch.keys[row], step])
        found = list(zip(stretch.bucket[timed].tolist(), stretch.count[timed].tolist(), strict=True))
        assert found == sorted(total.latency.items()), "buckets rise"


@given(st.lists(hours, max_size=12))
def test_nothing_is_lost_or_counted_twice_by_spreading(given_slots: list[Slot]) -> None:
    whole = Stretch.of(given_slots, start=MIDNIGHT - 3 * DAY, seconds=HOUR, steps=6 * 24)
    total = merged(one.tally for one in given_slots)
    assert whole.values.sum(axis=0).tolist() == pytest.approx(values(total))
    assert float(whole.count.sum()) == pytest.approx(sum(total.latency.values()))
    parts = [Stretch.of(given_slots, start=MIDNIGHT + n * 36 * HOUR, seconds=HOUR, steps=36) for n in range(-2, 2)]
    together = np.concatenate([dense(part) for part in parts], axis=1)
    assert together == pytest.approx(dense(whole)), "pieces side by side are the whole"
    both = np.concatenate([p95(part) for part in parts], axis=1)
    assert both == pytest.approx(p95(whole), nan_ok=True)


@pytest.mark.parametrize("sites", [1, 40])
def test_p95_is_the_same_quantile_at_any_size(sites: int) -> None:
    """Ranks are whole numbers: at 20 requests the 19th counts and not the 20th."""
    given_slots = [
        slot(MIDNIGHT + n * HOUR, Tally(ok=n, latency=dict.fromkeys(range(n), 1)), seconds=HOUR, site=f"s{number}")
        for n in range(1, 240)
        for number in range(sites)
    ]
    found = p95(Stretch.of(given_slots, start=MIDNIGHT, seconds=HOUR, steps=240))
    expected = [math.nan] + [stats.middle(-(-n * 95 // 100) - 1) for n in range(1, 240)]
    assert found == pytest.approx(np.array([expected] * sites), nan_ok=True)


def test_a_histogram_of_nothing_has_no_p95() -> None:
    stretch = Stretch.of([slot(MIDNIGHT, Tally(ok=1, latency={5: 0}))], start=MIDNIGHT, seconds=HOUR, steps=1)
    assert np.isnan(p95(stretch)).all()


def same(found: Columns, expected: Columns) -> bool:
    return all(np.array_equal(getattr(found, one.name), getattr(expected, one.name)) for one in fields(Columns))


@given(st.lists(large_tallies, max_size=12))
def test_packed_tallies_are_read_as_what_was_packed(several: list[Tally]) -> None:
    assert same(columns.unpacked([pack(one) for one in several]), columns.of_tallies(several))


def test_more_tallies_than_are_read_together() -> None:
    several = [Tally(ok=n, bytes=n * n, latency={n % BUCKETS: n, 3: 1}) for n in range(2 * columns.AT_ONCE + 3)]
    assert same(columns.unpacked([pack(one) for one in several]), columns.of_tallies(several))


def test_tallies_of_an_earlier_version_among_others() -> None:
    """Fewer fields: an array of two numbers."""
    found = columns.unpacked([pack(Tally(ok=1, latency={7: 2})), b"\x92\x05\x06", pack(Tally(error=3))])
    assert same(found, columns.of_tallies([Tally(ok=1, latency={7: 2}), Tally(ok=5, hard_block=6), Tally(error=3)]))


@pytest.mark.parametrize(
    "blob",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x9e", id="an array without its numbers"),
        pytest.param(pack(Tally(ok=5))[:-1], id="cut off"),
        pytest.param(pack(Tally(ok=5)) + b"\x00", id="more behind it"),
        pytest.param(pack(Tally(credits=math.inf)), id="endless credits"),
        pytest.param(pack(Tally(latency_sum=math.nan)), id="not a number"),
        pytest.param(pack(Tally(ok=-1)), id="less than nothing"),
        pytest.param(pack(Tally()).replace(b"\x00", b"\xcb" + struct.pack(">d", 0.5), 1), id="half a request"),
        pytest.param(pack(Tally())[:-1] + b"\xde\xff\xff", id="a histogram that promises more than there is"),
    ],
)
def test_what_is_no_packed_tally_is_refused(blob: bytes) -> None:
    for blobs in ([blob], [pack(Tally(ok=1)), blob, pack(Tally(ok=2))]):
        with pytest.raises(ValueError):  # noqa: PT011 - msgspec's words or ours
            columns.unpacked(blobs)


@given(large_tallies, st.data())
@example(Tally(latency={3: 1}), None)
def test_a_byte_that_fell_over_is_refused_or_read_as_before(tally: Tally, data: st.DataObject | None) -> None:
    blob = bytearray(pack(tally))
    if data is not None:
        blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = columns.unpacked([pack(Tally(ok=1)), bytes(blob)])
    except ValueError:
        return
    expected = unpack(bytes(blob))
    assert found.values[1].tolist() == values(expected)
    assert found.timed[-1] >= len(expected.latency)
