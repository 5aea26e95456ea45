"""Judged hours in the history: nothing that was bad is lost, by a restart, a kill, a clock or a full disk."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlhealth.config import HistorySettings
from crawlhealth.history import DAY, FILE_NAME, History, HistoryError, marks_of, reading
from crawlhealth.history.judged import SAVE_SECONDS
from crawlhealth.marks import NONE, OUTSIDE, RESTING, UNKNOWN, worse
from samples import HOUR, NOW

SETTINGS = HistorySettings()
JUDGING = Path(__file__).with_name("judging.py")
_FOLDERS = (str(JUDGING.parent.parent), os.environ.get("PYTHONPATH"))
ENVIRON = {**os.environ, "PYTHONPATH": os.pathsep.join(folder for folder in _FOLDERS if folder)}
SOME = st.sampled_from([0, 80, 95, 100, RESTING, OUTSIDE, UNKNOWN, NONE])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    opened = History.open(path, SETTINGS, now=NOW)
    yield opened
    opened.close()


def put(history: History, at: float, **marks: int) -> None:
    history.judged.put(tuple(marks), np.array(list(marks.values()), dtype=np.uint8), at)


def hours(history: History, site: str, since: float, until: float) -> list[int]:
    found: list[int] = history.judged.of([site], since, until)[0].tolist()
    return found


def on_disk(path: Path, site: str, since: float, until: float) -> list[int]:
    """What a kill at this moment would leave."""
    with reading(path) as connection:
        found: list[int] = marks_of(connection, [site], since, until)[0].tolist()
        return found


def test_an_hour_bears_its_worst_mark_and_others_none(history: History) -> None:
    for at, mark in [(0, 97), (15, 93), (30, 95), (HOUR, 99), (3 * HOUR, UNKNOWN)]:
        put(history, NOW + at, books=mark)
    assert hours(history, "books", NOW - HOUR, NOW + 5 * HOUR) == [NONE, 93, 99, NONE, UNKNOWN, NONE]
    assert hours(history, "other", NOW, NOW + HOUR) == [NONE]


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        pytest.param(0, HOUR, [97], id="one hour"),
        pytest.param(1800, 1801, [97], id="an hour that is touched is told"),
        pytest.param(-HOUR, 2 * HOUR, [NONE, 97, 95], id="from before the first"),
        pytest.param(HOUR, HOUR, [], id="nothing"),
        pytest.param(HOUR, 0, [], id="an end before the begin"),
    ],
)
def test_the_hours_that_are_told(history: History, since: float, until: float, expected: list[int]) -> None:
    put(history, NOW, books=97)
    put(history, NOW + HOUR, books=95)
    assert history.commit(NOW + HOUR)
    assert hours(history, "books", NOW + since, NOW + until) == expected


def test_many_sites_at_once_in_the_order_asked(history: History) -> None:
    midnight = NOW // DAY * DAY
    put(history, midnight - HOUR, a=91, b=92)
    put(history, midnight, b=82, c=83)
    history.commit(midnight)
    put(history, midnight + 1, c=OUTSIDE)
    found = history.judged.of(["c", "nobody", "a", "b"], midnight - HOUR, midnight + HOUR)
    assert found.tolist() == [[NONE, OUTSIDE], [NONE, NONE], [91, NONE], [92, 82]]


def test_the_running_hour_is_written_now_and_then_and_a_stay_that_begins_at_once(history: History, path: Path) -> None:
    put(history, NOW, books=97, quotes=97)
    history.commit(NOW)
    put(history, NOW + 15, books=80, quotes=OUTSIDE)
    history.commit(NOW + 15)
    assert on_disk(path, "books", NOW, NOW + HOUR) == [97], "a little later is soon enough"
    assert on_disk(path, "quotes", NOW, NOW + HOUR) == [OUTSIDE]
    history.commit(NOW + SAVE_SECONDS)
    assert on_disk(path, "books", NOW, NOW + HOUR) == [80]
    put(history, NOW + HOUR, books=99, quotes=99)
    put(history, NOW + 2 * HOUR, books=99, quotes=99)
    history.commit(NOW + SAVE_SECONDS + 1)
    assert on_disk(path, "books", NOW, NOW + 2 * HOUR) == [80, 99], "an hour that is over is written with any commit"


def test_a_restart_in_the_middle_of_an_hour_forgets_nothing_of_it(history: History, path: Path) -> None:
    put(history, NOW, books=97, quotes=OUTSIDE)
    history.commit(NOW)
    put(history, NOW + 15, books=85, quotes=97)
    history.close()
    again = History.open(path, SETTINGS, now=NOW + 60)
    put(again, NOW + 60, books=99, quotes=99)
    again.commit(NOW + 60)
    assert hours(again, "books", NOW, NOW + HOUR) == [85]
    assert hours(again, "quotes", NOW, NOW + HOUR) == [OUTSIDE]
    again.close()


def test_a_kill_costs_minutes_of_an_hour_at_most_and_no_stay_outside(path: Path) -> None:
    died = subprocess.run([sys.executable, str(JUDGING), str(path)], env=ENVIRON, check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL
    history = History.open(path, SETTINGS, now=NOW + HOUR)
    assert hours(history, "books", NOW, NOW + HOUR) == [94]
    assert hours(history, "quotes", NOW, NOW + HOUR) == [OUTSIDE]
    history.close()


def test_a_clock_that_steps_back_loses_nothing(history: History, path: Path) -> None:
    put(history, NOW, books=OUTSIDE)
    put(history, NOW - HOUR, books=96)
    put(history, NOW - HOUR + 15, books=RESTING)
    put(history, NOW, books=98)
    put(history, NOW + 30 * DAY, books=97)
    put(history, NOW + 60, books=99)
    assert hours(history, "books", NOW - HOUR, NOW + HOUR) == [RESTING, OUTSIDE]
    history.commit(NOW + 60)
    assert on_disk(path, "books", NOW - HOUR, NOW + HOUR) == [RESTING, OUTSIDE]
    assert on_disk(path, "books", NOW + 30 * DAY, NOW + 30 * DAY + HOUR) == [97]


def test_sites_that_come_and_go_within_an_hour_keep_theirs(history: History) -> None:
    put(history, NOW, books=97, quotes=OUTSIDE)
    put(history, NOW + 15, books=96)
    put(history, NOW + 30, news=95, quotes=99, books=98)
    for _ in range(2):
        assert [hours(history, site, NOW, NOW + 1) for site in ("books", "quotes", "news")] == [[96], [OUTSIDE], [95]]
        history.commit(NOW + 30)


def test_a_disk_that_cannot_be_written_for_hours_costs_nothing(history: History, path: Path) -> None:
    marks = [97, OUTSIDE, 80, UNKNOWN]
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        history._writer.execute("PRAGMA busy_timeout=1")
        for hour, mark in enumerate(marks):
            put(history, NOW + hour * HOUR, books=mark)
            assert not history.commit(NOW + hour * HOUR)
        assert hours(history, "books", NOW, NOW + 4 * HOUR) == marks
        other.execute("ROLLBACK")
    assert history.commit(NOW + 4 * HOUR)
    assert on_disk(path, "books", NOW, NOW + 4 * HOUR) == marks


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        pytest.param(False, [70, 97, OUTSIDE, 73, 74], id="a replay fills hours without a verdict only"),
        pytest.param(True, [70, 71, 72, 73, 74], id="unless it is told to stand over them"),
    ],
)
def test_hours_judged_afterwards(history: History, path: Path, over: bool, expected: list[int]) -> None:
    midnight = NOW // DAY * DAY
    put(history, midnight - HOUR, books=97)
    put(history, midnight, books=OUTSIDE)
    history.commit(midnight)
    history.judged.replace("books", midnight - 2 * HOUR, np.arange(70, 75, dtype=np.uint8), over=over)
    assert on_disk(path, "books", midnight - 2 * HOUR, midnight + 3 * HOUR) == expected
    assert on_disk(path, "books", midnight - 3 * HOUR, midnight - 2 * HOUR) == [NONE]


def test_what_waits_to_be_written_does_not_come_back_over_a_replay(history: History) -> None:
    put(history, NOW, books=OUTSIDE, quotes=OUTSIDE)
    put(history, NOW + HOUR, books=95, quotes=95)
    history.judged.replace("books", NOW, np.array([88], dtype=np.uint8), over=True)
    history.commit(NOW + HOUR)
    assert hours(history, "books", NOW, NOW + HOUR) == [88]
    assert hours(history, "quotes", NOW, NOW + HOUR) == [OUTSIDE]


def test_marks_go_when_their_hours_go(path: Path) -> None:
    history = History.open(path, HistorySettings(keep_hours=timedelta(days=3)), now=NOW)
    midnight = NOW // DAY * DAY
    for day in range(-5, 1):
        put(history, midnight + day * DAY, books=95)
        history.commit(midnight + day * DAY)
    now = midnight + 3600
    for _ in range(13):
        history.commit(now)
        now += 60
    found = hours(history, "books", midnight - 5 * DAY, midnight + HOUR)[::24]
    assert found == [NONE, NONE, 95, 95, 95, 95], "a day of which three days are not over yet is kept whole"
    history.close()


def test_a_file_of_an_earlier_version_knows_of_no_judged_hours(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(Path(__file__).with_name("version1.sql").read_text(encoding="utf-8"))
    assert on_disk(path, "books", NOW, NOW + 2 * HOUR) == [NONE, NONE]


@pytest.mark.parametrize("blob", [b"short", None, "x" * 24], ids=["too short", "nothing", "text"])
def test_a_row_that_is_none_is_an_error(history: History, path: Path, blob: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO judged VALUES (?, 'books', ?)", (NOW // DAY * DAY, blob))
    with pytest.raises(HistoryError, match="judged hours"):
        hours(history, "books", NOW, NOW + HOUR)
    with pytest.raises(HistoryError, match="24"):
        history.judged.replace("books", NOW, np.array([88], dtype=np.uint8))


@pytest.mark.parametrize(
    ("sites", "marks"),
    [
        pytest.param(("a", "b"), np.array([90], dtype=np.uint8), id="fewer marks than sites"),
        pytest.param(("a",), np.array([90.0]), id="scores in place of marks"),
    ],
)
def test_what_cannot_be_marks_is_refused(history: History, sites: tuple[str, ...], marks: object) -> None:
    with pytest.raises(ValueError, match="marks of"):
        history.judged.put(sites, marks, NOW)  # type: ignore[arg-type] # on purpose


STEPS = st.one_of(
    st.tuples(st.integers(0, 30), st.dictionaries(st.sampled_from("abc"), SOME, min_size=1)),
    st.sampled_from(["commit", "restart"]),
)


@settings(max_examples=40)
@given(st.lists(STEPS, max_size=20))
def test_whatever_comes_in_whatever_order_the_worst_of_each_hour_is_known(
    steps: list[tuple[int, dict[str, int]] | str],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE_NAME
        history = History.open(path, SETTINGS, now=NOW)
        expected: dict[tuple[str, int], int] = {}
        for number, step in enumerate(steps):
            if step == "restart":
                history.close()
                history = History.open(path, SETTINGS, now=NOW)
            elif isinstance(step, str):
                history.commit(NOW + number)
            else:
                hour, marks = step
                put(history, NOW + hour * HOUR, **marks)
                for site, mark in marks.items():
                    expected[site, hour] = int(worse(mark, expected.get((site, hour), NONE)))
        found = history.judged.of("abc", NOW, NOW + 31 * HOUR)
        history.close()
        plain = [[expected.get((site, hour), NONE) for hour in range(31)] for site in "abc"]
        assert found.tolist() == plain
