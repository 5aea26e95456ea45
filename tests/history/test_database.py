from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from crawlhealth.config import HistorySettings
from crawlhealth.history import History, HistoryError, database, import_windows, rows
from crawlhealth.outcome import Source
from samples import NOW, observation

SETTINGS = HistorySettings()
BOOKS = ("books", "direct", Source.TRAFFIC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A history with three requests in it."""
    path = tmp_path / "history.db"
    history = History.open(path, SETTINGS, now=NOW)
    for number in range(3):
        history.add(observation(at=NOW + number * 60))
    history.commit(NOW)
    history.close()
    return path


def garbage(path: Path) -> None:
    path.write_bytes(b"this was a database once\n" * 400)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def torn(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x99" * (len(data) - 4096)
    path.write_bytes(data)


def no_tallies(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE totals SET tally = x'0102'")


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(garbage, id="another kind of file"),
        pytest.param(cut, id="the second half is gone"),
        pytest.param(torn, id="pages overwritten"),
        pytest.param(no_tallies, id="sums that are no sums"),
    ],
)
def test_a_file_that_cannot_be_read_is_set_aside_and_said(
    path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    damage(path)
    before = path.read_bytes()
    history = History.open(path, SETTINGS, now=NOW)
    aside = path.with_name("history.db.unreadable-20261130T120000Z")
    assert aside.read_bytes() == before
    assert history.committed().totals == {}
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert str(path) in errors[0]
    assert str(aside) in errors[0]
    history.add(observation())
    assert history.commit(NOW)
    history.close()


def test_a_second_unreadable_file_in_the_same_second_replaces_nothing(path: Path) -> None:
    for _ in range(2):
        garbage(path)
        History.open(path, SETTINGS, now=NOW).close()
    assert len(list(path.parent.glob("history.db.unreadable-*"))) == 2


def test_an_import_leaves_a_file_that_cannot_be_read_alone(path: Path) -> None:
    garbage(path)
    before = path.read_bytes()
    with pytest.raises(HistoryError, match="cannot open"):
        import_windows(path, SETTINGS, [], now=NOW)
    assert path.read_bytes() == before


def test_a_later_schema_is_refused_and_not_touched(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version=99")
    before = path.read_bytes()
    with pytest.raises(HistoryError, match="schema version 99"):
        History.open(path, SETTINGS, now=NOW)
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*unreadable*"))


def test_another_programs_database_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE photos (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(HistoryError, match="another program"):
        History.open(path, SETTINGS, now=NOW)
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    History.open(tmp_path / "a" / "b" / "history.db", SETTINGS, now=NOW).close()
    assert import_windows(tmp_path / "c" / "d" / "history.db", SETTINGS, [], now=NOW) == 0


@pytest.mark.parametrize("place", ["file/history.db", "file/folder/history.db", f"{'x' * 256}/history.db"])
def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(HistoryError, match="cannot open the history"):
        History.open(tmp_path / place, SETTINGS, now=NOW)
    with pytest.raises(HistoryError, match="cannot open the history"):
        import_windows(tmp_path / place, SETTINGS, [], now=NOW)


def test_a_run_or_verdict_that_cannot_be_read_any_more_is_left_out_and_said(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO states VALUES ('books', x'01')")
        connection.execute("INSERT INTO runs VALUES ('books', 'front', 'direct', x'01')")
    history = History.open(path, SETTINGS, now=NOW)
    assert (history.states(), history.committed().runs) == ({}, {})
    assert history.committed().totals[BOOKS].requests == 3
    assert "the last verdict on books" in caplog.text
    assert "the last run of books/front" in caplog.text
    history.close()


def add_notes(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE notes (site TEXT)")
    connection.execute("INSERT INTO notes SELECT site FROM totals")


def broken(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE half (site TEXT)")
    connection.execute("INSERT INTO no_such_table VALUES (1)")


def test_an_earlier_schema_is_brought_forward_after_a_backup_copy(path: Path) -> None:
    known = len(database.MIGRATIONS)
    migrations = (*database.MIGRATIONS, add_notes)
    connection, contents = database.open_database(path, now=NOW, load=rows.load, migrations=migrations)
    assert contents.totals[BOOKS].requests == 3
    assert connection.execute("SELECT site FROM notes").fetchall() == [("books",)]
    assert connection.execute("PRAGMA user_version").fetchone() == (known + 1,)
    connection.close()
    with closing(sqlite3.connect(path.with_name(f"history.db.backup-v{known}-20261130T120000Z"))) as backup:
        assert backup.execute("PRAGMA user_version").fetchone() == (known,)
        assert backup.execute("SELECT count(*) FROM totals").fetchone() == (1,)


def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    with pytest.raises(HistoryError, match="no_such_table"):
        database.open_database(path, now=NOW, load=rows.load, migrations=(*database.MIGRATIONS, add_notes, broken))
    history = History.open(path, SETTINGS, now=NOW)
    assert history.committed().totals[BOOKS].requests == 3
    history.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master WHERE name IN ('notes', 'half')").fetchall() == []
