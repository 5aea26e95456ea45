from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from crawlhealth.config import HistorySettings
from crawlhealth.history import History, housekeeping, import_windows
from crawlhealth.tally import Tally
from samples import DAY, HOUR, NOW, observation, slot

SETTINGS = HistorySettings()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    opened = History.open(path, SETTINGS, now=NOW)
    yield opened
    opened.close()


def run_on(history: History, since: float, seconds: float) -> float:
    """Commit every minute, as the clock goes."""
    now = since
    while now < since + seconds:
        now += 60
        assert history.commit(now)
    return now


def starts(history: History) -> list[tuple[float, int]]:
    return sorted((s.seconds, s.tally.requests) for s in history.hours("books", 0))


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_minutes_become_whole_hours_once_they_are_old(history: History, path: Path) -> None:
    for minute in range(0, 180):
        history.add(observation(at=NOW - minute * 60 - 1))
    history.commit(NOW)
    run_on(history, NOW, 6 * HOUR)
    assert sum(s.tally.requests for s in history.hours("books", 0)) == 180, "every request is in one place"
    assert starts(history) == [(HOUR, 60)] * 3
    assert rows(path, "SELECT count(*) FROM minutes") == [(0,)]


def test_an_hour_not_yet_over_is_left_in_minutes(history: History) -> None:
    history.add(observation(at=NOW + 30 * 60))
    history.add(observation(at=NOW - 30 * 60))
    history.commit(NOW + HOUR)
    run_on(history, NOW + HOUR, 5.5 * HOUR)  # until half past: the hour that began at NOW has minutes to keep
    assert starts(history) == [(60, 1), (HOUR, 1)]


def test_what_comes_late_is_added_to_its_hour(history: History) -> None:
    for _ in range(3):
        history.add(observation(at=NOW - 20 * HOUR))
        run_on(history, NOW, 30 * 60)
    assert starts(history) == [(HOUR, 3)]


def test_rolling_up_goes_on_after_a_restart_and_counts_nothing_twice(history: History, path: Path) -> None:
    for minute in range(600):
        history.add(observation(at=NOW - 20 * HOUR + minute * 60, count=2))
    history.commit(NOW)
    for attempt in range(3):
        run_on(history, NOW + attempt * HOUR, 20 * 60)
        history.close()
        history = History.open(path, SETTINGS, now=NOW)
        assert sum(s.tally.requests for s in history.hours("books", 0)) == 1200
    history.close()


def test_a_commit_moves_only_so_much(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "AT_ONCE", 100)
    for minute in range(250):
        history.add(observation(at=NOW - 20 * HOUR + minute * 60))
    history.commit(NOW)
    left = []
    for second in range(0, 700, 20):
        history.commit(NOW + second)
        left.append(sum(s.seconds == 60 for s in history.hours("books", 0)))
    assert sorted(set(left), reverse=True) == [250, 190, 130, 70, 10, 0], "an hour in one go"


@pytest.mark.parametrize("jump", [pytest.param(400 * DAY, id="years ahead"), pytest.param(-400 * DAY, id="years back")])
def test_a_clock_that_is_wrong_for_a_while_costs_no_history(history: History, jump: float) -> None:
    history.add(observation(at=NOW))
    run_on(history, NOW, 20 * 60)
    run_on(history, NOW + jump, 9 * 60)
    run_on(history, NOW + HOUR, 20 * 60)
    assert [(s.start, s.seconds) for s in history.hours("books", 0)] == [(NOW, 60.0)]


def test_old_hours_become_days_and_old_days_go(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    long = HistorySettings(keep_hours=timedelta(days=800))
    past = [
        slot(NOW - days * DAY + hour * HOUR, Tally(ok=5), seconds=HOUR, route=route)
        for days in (740, 100, 30)
        for hour in range(4)
        for route in ("direct", "dc-us")
    ]
    import_windows(path, long, past, now=NOW)
    history = History.open(path, SETTINGS, now=NOW)
    run_on(history, NOW, 30 * 60)
    assert rows(path, "SELECT day, step FROM days ORDER BY day") == [
        ((NOW - 100 * DAY) // DAY * DAY, DAY), ((NOW - 30 * DAY) // DAY * DAY, HOUR),
    ]  # fmt: skip
    assert starts(history) == [(HOUR, 5)] * 8, "only hours are read as hours"
    history.add(observation(at=NOW - 100 * DAY))
    run_on(history, NOW + 31 * 60, 30 * 60)
    assert rows(path, "SELECT count(*) FROM days WHERE step = 86400") == [(1,)], "a straggler joins the old day"
    history.close()
