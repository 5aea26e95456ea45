"""Logs as chunks of lines: damaged gzips give all that comes before the damage, and memory is bounded."""

from __future__ import annotations

import gzip
import io
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlhealth.searchbots.source import UNPACKING_FAILED, Unpacked, unpacked, whole_lines
from searchbots.logwriting import line


def lines_of(packed: bytes) -> tuple[int, bool]:
    """How many lines are read, and whether damage is said after them."""
    lines = 0
    try:
        for chunk in whole_lines(unpacked(io.BufferedReader(io.BytesIO(packed)))):
            lines += chunk.count(b"\n")
    except UNPACKING_FAILED:
        return lines, True
    return lines, False


def made(lines: int) -> bytes:
    return "".join(line(number) for number in range(lines)).encode()


@pytest.mark.parametrize(
    ("packed", "lines", "damaged"),
    [
        pytest.param(gzip.compress(made(10)), 10, False, id="whole"),
        pytest.param(gzip.compress(made(10)) + gzip.compress(made(5)), 15, False, id="two members"),
        pytest.param(gzip.compress(made(10)) + b"\0" * 100, 10, False, id="padded"),
        pytest.param(gzip.compress(made(10)) + b"garbage", 10, True, id="garbage after few lines"),
        pytest.param(gzip.compress(made(50_000)) + b"garbage", 50_000, True, id="garbage after many lines"),
        pytest.param(gzip.compress(made(1_000))[:-8], 1_000, True, id="its sums are cut off"),
        pytest.param(gzip.compress(made(1_000))[:-8] + b"\0" * 8, 1_000, True, id="its sums are wrong"),
    ],
)
def test_all_lines_before_the_damage_are_read(packed: bytes, lines: int, damaged: bool) -> None:
    assert lines_of(packed) == (lines, damaged)


def test_nearly_all_lines_of_one_that_is_cut_are_read() -> None:
    lines, damaged = lines_of(gzip.compress(made(1_000))[:-20])
    assert 980 <= lines < 1_000
    assert damaged


def test_no_more_is_read_at_once_than_was_asked_for_before_damage_either() -> None:
    text = made(1_000)
    stream = Unpacked(io.BytesIO(gzip.compress(text)[:-8] + b"\0" * 8))
    found = b""
    while len(found) < len(text):
        data = stream.read(700)
        assert 0 < len(data) <= 700
        found += data
    assert found == text
    with pytest.raises(zlib.error):
        stream.read(700)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=3_000), max_size=4), st.integers(200, 5_000))
def test_what_was_packed_is_unpacked(members: list[bytes], size: int) -> None:
    stream = Unpacked(io.BytesIO(b"".join(map(gzip.compress, members))))
    found = b""
    while data := stream.read(size):
        assert len(data) <= size
        found += data
    assert found == b"".join(members)


def test_a_bomb_is_unpacked_piece_by_piece() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(50)) + packer.flush()
    stream = Unpacked(io.BytesIO(bomb))
    sizes = []
    while data := stream.read(1 << 16):
        sizes.append(len(data))
    assert max(sizes) == 1 << 16
    assert sum(sizes) == 50 << 20


def test_a_mark_of_utf8_is_no_part_of_the_first_line() -> None:
    assert list(whole_lines(io.BytesIO(b"\xef\xbb\xbfone\ntwo"))) == [b"one\n", b"two\n"]
