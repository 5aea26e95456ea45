"""Bodies to items: lines or an array, in any coding, within bounds."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlhealth.traffic import body
from crawlhealth.traffic.body import TooLarge, Unreadable


def texts(data: bytes, coding: str = "") -> list[bytes]:
    return [bytes(text) for some in body.Body(data, coding).items() for text in some]


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "identity": bytes,
    "gzip": gzip.compress,
    "x-gzip": lambda data: gzip.compress(data[:10]) + gzip.compress(data[10:]),
    "zstd": lambda data: zstandard.compress(data[:10]) + zstandard.compress(data[10:]),
}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b'{"a":1}\n{"b":2}', [b'{"a":1}', b'{"b":2}'], id="lines"),
        pytest.param(b'\n\r\n {"a":1}\r\n\n  \n{"b":2}\n\n', [b'{"a":1}\r', b'{"b":2}'], id="blank lines are none"),
        pytest.param(b' \n[ {"a":1},\n{"b":[2]} ]\n', [b'{"a":1}', b'{"b":[2]}'], id="an array"),
        pytest.param(b"[]", [], id="an empty array"),
        pytest.param(b"", [], id="nothing"),
        pytest.param(b'{"a":1}\n[1]', [b'{"a":1}', b"[1]"], id="an array among lines is one of them"),
    ],
)
@pytest.mark.parametrize("coding", CODERS)
def test_items_of_a_body(data: bytes, expected: list[bytes], coding: str) -> None:
    assert texts(CODERS[coding](data), coding) == expected


@given(
    items=st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=300), max_size=4), max_size=40),
    coding=st.sampled_from(sorted(CODERS)),
    array=st.booleans(),
)
@settings(max_examples=60)
def test_whatever_is_coded_comes_back(items: list[dict[str, str]], coding: str, array: bool) -> None:
    lines = [json.dumps(item).encode() for item in items]
    data = b"[" + b", ".join(lines) + b"]" if array else b"\n".join(lines)
    assert texts(CODERS[coding](data), coding) == lines


@given(st.binary(max_size=300), st.sampled_from(sorted(CODERS)))
@settings(max_examples=200)
def test_noise_is_items_or_unreadable(data: bytes, coding: str) -> None:
    try:
        assert all(text for text in texts(data, coding))
    except Unreadable:
        assert coding.endswith(("gzip", "zstd")) or data.lstrip().startswith(b"[")


@pytest.mark.parametrize("cut", [1, 8, 30])
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_body_that_ends_too_early_is_unreadable(coding: str, cut: int) -> None:
    whole = CODERS[coding](json.dumps({str(n): n * n for n in range(500)}).encode())
    with pytest.raises(Unreadable, match=r"ends too early|not in the coding"):
        texts(whole[:-cut], coding)


def test_another_coding_than_named_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="not in the coding that Content-Encoding names"):
        texts(b'{"a":1}', "gzip")
    with pytest.raises(Unreadable, match="not in the coding that Content-Encoding names"):
        texts(b'{"a":1}', "zstd")


def test_a_broken_array_is_unreadable_as_a_whole() -> None:
    with pytest.raises(Unreadable, match="not a JSON array"):
        texts(b'[{"a":1}, {"b":')
    with pytest.raises(Unreadable, match="not a JSON array"):
        texts(b"[" * 1_000_000)


@pytest.mark.parametrize("bomb", [gzip.compress(bytes(300_000_000), 9), zstandard.compress(bytes(300_000_000))],
                         ids=["gzip", "zstd"])  # fmt: skip
def test_a_bomb_is_cut_off_without_its_memory(bomb: bytes) -> None:
    coding = "gzip" if bomb.startswith(b"\x1f\x8b") else "zstd"
    tracemalloc.start()
    with pytest.raises(TooLarge):
        texts(bomb, coding)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60_000_000


def test_lines_beyond_the_bound_are_too_large() -> None:
    lines = gzip.compress((b'{"x":"' + b"a" * 1000 + b'"}\n') * 70_000, 1)
    with pytest.raises(TooLarge, match="more than 64000000 bytes, decoded"):
        texts(lines, "gzip")
    with pytest.raises(TooLarge, match="an item of more than 8000000 bytes"):
        texts(b"x" * 9_000_000)
