"""Runs in a row of a canary and route: kept over restarts, and begun anew by a history that knew none."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from crawlhealth.config import HistorySettings
from crawlhealth.history import FILE_NAME, History, stored_runs
from crawlhealth.outcome import Outcome
from crawlhealth.recovery import Kind, Streak
from samples import NOW, run

SETTINGS = HistorySettings()
FRONT = ("books", "front", "direct")
DUMP = Path(__file__).with_name("version1.sql").read_text(encoding="utf-8")


def add(history: History, *outcomes: Outcome, since: float) -> None:
    for number, outcome in enumerate(outcomes):
        history.add_run(run(at=since + number, outcome=outcome))
    assert history.commit(since + len(outcomes))


def test_a_streak_goes_on_over_a_restart(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    history = History.open(path, SETTINGS, now=NOW)
    add(history, Outcome.OK, Outcome.HARD_BLOCK, Outcome.CHALLENGE, Outcome.ERROR, since=NOW)
    expected = Streak(kind=Kind.REFUSED, runs=2, first=NOW + 1, times=(NOW + 1, NOW + 2), before=NOW)
    assert history.runs()[FRONT].streak == expected
    history.close()
    assert stored_runs(path)[FRONT].streak == expected
    history = History.open(path, SETTINGS, now=NOW + 60)
    add(history, Outcome.SOFT_BLOCK, since=NOW + 60)
    assert history.runs()[FRONT].streak == Streak(
        kind=Kind.REFUSED, runs=3, first=NOW + 1, times=(NOW + 1, NOW + 2, NOW + 60), before=NOW
    )
    history.close()


def test_a_run_of_an_earlier_version_has_no_streak_until_the_next(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(DUMP)
    history = History.open(path, SETTINGS, now=NOW)
    assert history.runs()[FRONT].streak == Streak()
    add(history, Outcome.OK, since=NOW)
    assert history.runs()[FRONT].streak == Streak(kind=Kind.SERVED, runs=1, first=NOW, times=(NOW,))
    history.close()
