"""Overrides as people write them: what is meant, and that nothing written breaks the reader."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth import overrides
from crawlhealth.verdict import Override, OverrideKind
from samples import DAY, NOW

KINDS = st.sampled_from([*OverrideKind, "halt", ""])
TIMES = st.text(max_size=40) | st.datetimes().map(lambda when: when.isoformat() + "Z") | st.from_regex(r"\d+[smhdw]")


@pytest.mark.parametrize(
    ("kind", "until", "ratio", "meant"),
    [
        pytest.param("pause", None, None, (NOW + DAY, 0.0), id="a pause of a day, where no end is written"),
        pytest.param("pause", "2h", None, (NOW + 7200, 0.0), id="for a time"),
        pytest.param("pause", "2026-12-01T13:00:00+01:00", None, (NOW + DAY, 0.0), id="until a moment"),
        pytest.param("resume", "2h", None, (NOW + 7200, 1.0), id="go on as usual"),
        pytest.param("resume", "2h", 0.2, (NOW + 7200, 0.2), id="or with a share of it"),
        pytest.param("limit", "2h", 0.3, (NOW + 7200, 0.3), id="a share at most"),
    ],
)
def test_what_is_meant(kind: str, until: str | None, ratio: float | None, meant: tuple[float, float]) -> None:
    found = overrides.parse("books", kind, now=NOW, until=until, concurrency=ratio, note="  they\n asked ")
    assert found == Override(
        site="books", kind=OverrideKind(kind), at=NOW, until=meant[0], concurrency=meant[1], note="they asked"
    )


@given(KINDS, st.none() | TIMES, st.none() | st.floats(), st.text(max_size=600))
def test_anything_else_is_told_what_to_write(kind: str, until: str | None, ratio: float | None, note: str) -> None:
    try:
        found = overrides.parse("books", kind, now=NOW, until=until, concurrency=ratio, note=note)
    except ValueError as error:
        assert "write" in str(error)  # noqa: PT017 - either is good
        return
    assert NOW < found.until <= NOW + 367 * DAY
    assert 0 <= found.concurrency <= 1
    assert not math.isnan(found.concurrency)
