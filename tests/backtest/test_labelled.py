"""Labelled windows: what is read, what is said of what is not, and how stays agree with them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.backtest.labelled import Agreement, LabelError, Labelled, agreement, read
from crawlhealth.backtest.stays import Stay
from crawlhealth.verdict import Band

DAY = 86400.0
BEGUN = 1_796_040_000.0


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["site,start,end", "books,2026-11-30T12:00:00Z,2026-12-01T12:00:00Z"], id="CSV with its head"),
        pytest.param(["books,2026-11-30T12:00:00Z,2026-12-01T12:00:00Z"], id="CSV without"),
        pytest.param(["End,note,Site,start", "2026-12-01T12:00:00Z,sale,books,1796040000"], id="columns in any order"),
        pytest.param(
            ["\ufeffsite,start,end", "", 'books,"1796040000","1796126400.0"', ""], id="as a spreadsheet writes it"
        ),
        pytest.param(['{"site": "books", "start": "2026-11-30T13:00:00+01:00", "end": 1796126400}'], id="JSON lines"),
    ],
)
def test_windows_are_read(lines: list[str]) -> None:
    assert read(lines) == [Labelled(site="books", start=BEGUN, end=BEGUN + DAY)]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param(
            ["books,yesterday,today"], "line 1: 'yesterday' is no time: write 2026-12-01T00:00:00Z", id="no time"
        ),
        pytest.param(["books,2026-12-01T00:00:00,5"], "line 1: '2026-12-01T00:00:00' is no time", id="no time zone"),
        pytest.param(["site,start,end", "books,2,1"], "line 2: the end is not after the start", id="backwards"),
        pytest.param(["books,1"], "line 1: write site,start,end", id="too few columns"),
        pytest.param([",1,2"], "line 1: no site", id="no site"),
        pytest.param(
            ['{"site": "books"}'], 'line 1: write {"site": ..., "start": ..., "end": ...}', id="JSON without times"
        ),
        pytest.param(["{"], "line 1: write {", id="broken JSON"),
        pytest.param(["books,1,nan"], "line 1: 'nan' is no time", id="not a number"),
        pytest.param(["books,1,1e999"], "is no time", id="infinite"),
        pytest.param(["x" * 20_000], "line 1: longer than 10,000 characters", id="a line without an end"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(lines: list[str], said: str) -> None:
    with pytest.raises(LabelError) as caught:
        read(lines)
    assert said in str(caught.value)


@given(st.lists(st.text(max_size=60) | st.builds("{},{},{}".format, st.text(max_size=5), st.floats(), st.integers())))
def test_any_text_is_read_or_told(lines: list[str]) -> None:
    with suppress(LabelError):
        assert all(window.end > window.start for window in read(lines))


def stay(start: float, end: float | None, *, site: str = "books") -> Stay:
    return Stay(site=site, start=start, end=end, worst_score=60, worst_band=Band.DEGRADING, first_reason=None)


def window(start: float, end: float, *, site: str = "books") -> Labelled:
    return Labelled(site=site, start=start, end=end)


@pytest.mark.parametrize(
    ("stays", "windows", "expected"),
    [
        pytest.param([stay(12, 30)], [window(10, 20)], (1, 2.0, 0), id="found two later"),
        pytest.param([stay(5, 11)], [window(10, 20)], (1, 0.0, 0), id="it had begun before"),
        pytest.param([stay(5, 10)], [window(10, 20)], (0, None, 1), id="over when the window begins"),
        pytest.param([stay(20, 25)], [window(10, 20)], (0, None, 1), id="begins when it is over"),
        pytest.param([stay(12, None)], [window(10, 20)], (1, 2.0, 0), id="one that lasts"),
        pytest.param([stay(12, 13), stay(18, 19)], [window(10, 20)], (1, 2.0, 0), id="the first of two counts"),
        pytest.param([stay(12, 45)], [window(10, 20), window(40, 50)], (2, 1.0, 0), id="one stay may find two windows"),
        pytest.param([stay(12, 15, site="shop")], [window(10, 20)], (0, None, 1), id="another site's is none of it"),
        pytest.param([], [], (0, None, 0), id="nothing"),
    ],
)
def test_agreement(stays: list[Stay], windows: list[Labelled], expected: tuple[int, float | None, int]) -> None:
    found, delay, false = expected
    assert agreement(stays, windows) == Agreement(
        windows=len(windows), found=found, median_delay=delay, false_alarms=false
    )


def test_recall_is_unknown_without_any_window() -> None:
    assert agreement([stay(1, 2)], []).recall is None
    assert agreement([stay(1, 2)], [window(1, 2), window(5, 6)]).recall == 0.5
