"""Which shard a site belongs to: the same everywhere and for ever, even, and moving little when shards are added."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.shard import MOST, Shard, number_of, parse

SITES = [f"shop-{number}.example" for number in range(6_000)]


@pytest.mark.parametrize(
    ("site", "numbers"),
    [
        pytest.param("books", [1, 1, 1, 4, 4, 4, 7, 8], id="books"),
        pytest.param("quotes", [1, 1, 1, 4, 4, 4, 4, 4], id="quotes"),
        pytest.param("käse.example", [1, 1, 3, 3, 3, 3, 3, 3], id="not ASCII"),
    ],
)
def test_the_shard_of_a_site_never_changes(site: str, numbers: list[int]) -> None:
    """Data lies where the numbers of an earlier version said."""
    assert [number_of(site, count) for count in range(1, len(numbers) + 1)] == numbers


def test_shards_are_as_they_are_described() -> None:
    """The digest is that of `b2sum`, the buckets are those of the paper, reckoned in whole numbers here."""
    program = shutil.which("b2sum")
    assert program is not None
    for site in SITES[:20]:
        printed = subprocess.run([program], input=site.encode(), check=True, capture_output=True).stdout
        key, bucket, jump = int(printed[:16], 16), -1, 0
        while jump < 7:
            bucket = jump
            key = (key * 2862933555777941757 + 1) % 2**64
            jump = (bucket + 1) * 2**31 // ((key >> 33) + 1)
        assert number_of(site, 7) == bucket + 1


@given(st.text(st.characters(codec="utf-8")), st.integers(1, MOST))
def test_a_site_belongs_to_exactly_one_shard(site: str, count: int) -> None:
    assert [number for number in range(1, count + 1) if Shard(number, count).has(site)] == [number_of(site, count)]


@pytest.mark.parametrize("count", [2, 3, 8, 20])
def test_shards_are_of_about_the_same_size(count: int) -> None:
    """Within five standard deviations of even."""
    mean = len(SITES) / count
    sizes = Counter(number_of(site, count) for site in SITES)
    assert set(sizes) == set(range(1, count + 1))
    assert all(abs(size - mean) < 5 * mean**0.5 for size in sizes.values()), sizes


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_one_more_shard_takes_its_share_and_moves_nothing_else(count: int) -> None:
    moved = [site for site in SITES if number_of(site, count) != number_of(site, count + 1)]
    assert {number_of(site, count + 1) for site in moved} == {count + 1}
    mean = len(SITES) / (count + 1)
    assert abs(len(moved) - mean) < 5 * mean**0.5


@pytest.mark.parametrize("written", ["1/1", "3/3", "2/12", f"{MOST}/{MOST}"])
def test_a_shard_is_read_as_it_is_written(written: str) -> None:
    shard = parse(written)
    assert f"{shard.number}/{shard.count}" == written


@pytest.mark.parametrize(
    ("written", "told"),
    [
        pytest.param("", "write its number and how many there are, as in 1/3", id="nothing"),
        pytest.param("2", "write its number and how many there are, as in 1/3", id="no count"),
        pytest.param("/3", "write its number and how many there are, as in 1/3", id="no number"),
        pytest.param("1/-3", "write its number and how many there are, as in 1/3", id="a negative count"),
        pytest.param("1/3 ", "write its number and how many there are, as in 1/3", id="a space"),
        pytest.param("١/٣", "write its number and how many there are, as in 1/3", id="other digits"),
        pytest.param("0/3", "there is no shard 0 of 3: write 1/3 to 3/3", id="counted from 0"),
        pytest.param("4/3", "there is no shard 4 of 3: write 1/3 to 3/3", id="beyond the last"),
        pytest.param("1/0", f"0 shards: write 1 to {MOST}", id="no shards"),
        pytest.param("1/999999", f"999999 shards: write 1 to {MOST}", id="too many"),
    ],
)
def test_what_is_no_shard_is_told_what_to_write(written: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse(written)
