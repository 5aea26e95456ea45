from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.model import Observation
from crawlhealth.outcome import REFUSED, Outcome
from crawlhealth.tally import Tally, merged, pack, unpack
from samples import observation

OBSERVATIONS = st.lists(
    st.builds(
        observation,
        outcome=st.sampled_from(Outcome),
        count=st.integers(1, 50),
        seconds=st.none() | st.floats(0, 1000),
        extracted=st.none() | st.booleans(),
    ),
    max_size=40,
)


def tally_of(observations: list[Observation]) -> Tally:
    tally = Tally()
    for one in observations:
        tally.add(one)
    return tally


@given(OBSERVATIONS)
def test_a_tally_counts_what_was_added(observations: list[Observation]) -> None:
    tally = tally_of(observations)
    assert tally.requests == sum(one.count for one in observations)
    assert tally.refused == sum(one.count for one in observations if one.outcome in REFUSED)
    timed = [one for one in observations if one.outcome is Outcome.OK and one.seconds is not None]
    assert sum(tally.latency.values()) == sum(one.count for one in timed)
    assert tally.extractions == sum(one.count for one in observations if one.extracted is not None)


@given(OBSERVATIONS, OBSERVATIONS)
def test_merging_is_adding_everything(left: list[Observation], right: list[Observation]) -> None:
    together, sums = tally_of(left + right), merged([tally_of(left), tally_of(right)])
    assert sums.latency_sum == pytest.approx(together.latency_sum)
    sums.latency_sum = together.latency_sum
    assert sums == together


@given(OBSERVATIONS)
def test_a_packed_tally_comes_back(observations: list[Observation]) -> None:
    tally = tally_of(observations)
    assert unpack(pack(tally)) == tally


def test_a_tally_of_an_earlier_version_with_fewer_fields_comes_back() -> None:
    assert unpack(msgspec.msgpack.encode([7, 1])) == Tally(ok=7, hard_block=1)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x00\xff\x13", id="noise"),
        pytest.param(msgspec.msgpack.encode({"ok": 1}), id="another shape"),
        pytest.param(msgspec.msgpack.encode(["many", 1]), id="a word for a number"),
        pytest.param(msgspec.msgpack.encode([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, float("nan")]), id="not a number"),
        pytest.param(msgspec.msgpack.encode(list(range(40))), id="a later version's fields"),
        pytest.param(pack(Tally(ok=5))[:-3], id="cut off"),
    ],
)
def test_bytes_that_are_no_tally_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the contract is the class, msgspec's own errors included
        unpack(data)


def test_there_are_no_rates_of_nothing() -> None:
    assert Tally().rates() is None
