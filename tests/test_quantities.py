"""Durations and sizes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.quantities import LONGEST, duration, show, size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("5m", 300, id="minutes"),
        pytest.param("250ms", 0.25, id="milliseconds"),
        pytest.param("1h30m", 5400, id="two units"),
        pytest.param("1.5h", 5400, id="a fraction"),
        pytest.param("2d", 172_800, id="days"),
        pytest.param("2w", 1_209_600, id="weeks"),
        pytest.param("0", 0, id="nothing needs no unit"),
    ],
)
def test_duration(text: str, seconds: float) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("300", "write 300s", id="a bare number gets a unit"),
        pytest.param("5 minutes", "write 30s, 5m, 1h30m or 2d", id="words"),
        pytest.param("1:30", "write 30s, 5m", id="a clock time"),
        pytest.param("-5m", "write 30s, 5m", id="backwards"),
        pytest.param("5m5m", "write 30s, 5m", id="a unit twice"),
        pytest.param("", "write 30s, 5m", id="nothing written"),
        pytest.param("1000w", "longer than ten years", id="beyond reason"),
        pytest.param("9" * 10_000 + "s", "write 30s, 5m", id="a hostile length"),
    ],
)
def test_no_duration(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        duration(text)


@given(st.integers(0, int(LONGEST.total_seconds()) * 1000))
def test_a_shown_duration_reads_back(milliseconds: int) -> None:
    value = timedelta(milliseconds=milliseconds)
    assert duration(show(value)) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("5000000", 5_000_000, id="bytes"),
        pytest.param("5MB", 5_000_000, id="megabytes"),
        pytest.param("64KiB", 65_536, id="kibibytes"),
        pytest.param("1 gb", 1_000_000_000, id="a blank and small letters"),
    ],
)
def test_size(text: str, expected: int) -> None:
    assert size(text) == expected


@pytest.mark.parametrize("text", ["5TB", "-1", "1.5MB", "", "MB"])
def test_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size: write a number of bytes"):
        size(text)
