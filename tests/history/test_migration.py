"""A history as version 1 of the schema wrote it, under today's code: `version1.sql` is a dump of a real one."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from crawlhealth.config import HistorySettings
from crawlhealth.history import DAY, FILE_NAME, History, HistoryError, Past, import_windows, reading, stored_runs
from crawlhealth.history.database import MIGRATIONS, locked
from crawlhealth.model import Phase
from crawlhealth.outcome import Source
from crawlhealth.tally import Tally
from crawlhealth.verdict import Band
from running import Exporter
from samples import HOUR, NOW, slot

SETTINGS = HistorySettings()
DUMP = Path(__file__).with_name("version1.sql").read_text(encoding="utf-8")
CONFIG = """
data_dir: data
sites: {books: {hosts: [books.example]}}
canaries: [canaries.yml]
"""
CANARIES = """
site: books
fetch: push
canaries: [{name: front, url: "https://books.example/", expect: {title: {css: h1, present: true}}}]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of version 1, in the folder of a configuration."""
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(DUMP)
    return path


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{FILE_NAME}.backup-*"))


def test_all_that_was_known_is_known_and_a_copy_is_kept(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = dump(path)
    with caplog.at_level(logging.INFO):
        history = History.open(path, SETTINGS, now=NOW)
    try:
        committed = history.committed()
        traffic = committed.totals["books", "direct", Source.TRAFFIC]
        assert (traffic.ok, traffic.hard_block, traffic.latency_sum) == (4, 3, 1.0)
        assert committed.counters["crawlhealth_request_reasons_total", ("books", "traffic", "http_403")] == 3
        run = committed.runs["books", "front", "direct"].run
        assert (run.values[0].seen, run.phases[Phase.DNS], run.not_after["books.example"]) == (
            "Kettle",
            0.01,
            NOW + DAY,
        )
        assert committed.runs["books", "front", "direct"].sizes == (1000,)
        state = history.states()["books"]
        assert (state.score, state.band, state.reasons[0].points) == (68, Band.DEGRADING, 25.0)
        assert history.verdicts("books", 0) == (state,)
        slots = history.hours("books", 0)
        assert sum(slot.tally.requests for slot in slots) == 303 + 8
        assert {slot.seconds for slot in slots} == {60.0, HOUR}
    finally:
        history.close()
    (backup,) = backups(path)
    assert backup.name == f"{FILE_NAME}.backup-v1-20261130T120000Z"
    assert (version(backup), dump(backup)) == (1, before)
    assert version(path) == len(MIGRATIONS) > 1
    assert str(backup) in caplog.text
    History.open(path, SETTINGS, now=NOW + 60).close()
    assert backups(path) == [backup], "only the first time"


def test_the_copy_is_a_history_that_can_be_used_in_its_place(path: Path) -> None:
    History.open(path, SETTINGS, now=NOW).close()
    (backup,) = backups(path)
    for part in path.parent.glob(f"{FILE_NAME}*"):
        if part != backup:
            part.unlink()
    backup.rename(path)
    history = History.open(path, SETTINGS, now=NOW)
    assert history.committed().totals["books", "direct", Source.TRAFFIC].requests == 7
    history.close()


def test_serve_goes_on_where_the_earlier_version_stopped(path: Path) -> None:
    (path.parent.parent / "canaries.yml").write_text(CANARIES, encoding="utf-8")
    with Exporter(path.parent.parent, CONFIG) as exporter:
        traffic = {"site": "books", "source": "traffic"}
        assert exporter.value("crawlhealth_requests_total", **traffic, outcome="ok") == 4
        assert exporter.value("crawlhealth_requests_total", **traffic, outcome="hard_block") == 3
        assert exporter.value("crawlhealth_request_reasons_total", **traffic, reason="http_403") == 3
        assert exporter.value("crawlhealth_canary_runs_total", canary="front", outcome="ok") == 1
        assert exporter.value("crawlhealth_canary_success", canary="front") == 1
        pushed = exporter.post("/api/v1/canaries/books/front", json={"status": 200, "body": "<h1>Kettle"})
        assert pushed.status_code == 200
        assert exporter.value("crawlhealth_canary_runs_total", canary="front", outcome="ok") == 2
        assert version(path) == len(MIGRATIONS)
    assert len(backups(path)) == 1
    assert "backup" in exporter.log()


def test_an_import_brings_it_forward_too(path: Path) -> None:
    assert import_windows(path, SETTINGS, [slot(NOW - 3 * HOUR, Tally(ok=9), seconds=HOUR)], now=NOW) == 1
    assert version(path) == len(MIGRATIONS)
    assert len(backups(path)) == 1


def test_an_import_does_not_change_the_tables_under_an_exporter_of_the_earlier_version(path: Path) -> None:
    before = dump(path)
    with locked(path), pytest.raises(HistoryError, match="in use by another exporter"):
        import_windows(path, SETTINGS, [], now=NOW)
    assert (version(path), dump(path), backups(path)) == (1, before, [])


def test_reading_it_changes_nothing(path: Path) -> None:
    before = path.read_bytes()
    assert stored_runs(path)["books", "front", "direct"].run.values[0].seen == "Kettle"
    with reading(path) as connection:
        past = Past(settings=SETTINGS, now=NOW, since=0, until=NOW + DAY)
        assert sum(s.tally.requests for _, slots in past.windows(connection) for s in slots) == 303 + 8
    (path.parent.parent / "crawlhealth.yml").write_text("data_dir: data\nsites: {books: {hosts: [b.example]}}\n")
    command = [
        sys.executable,
        "-m",
        "crawlhealth.cli",
        "export",
        "--config",
        str(path.parent.parent / "crawlhealth.yml"),
    ]
    assert len(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.splitlines()) == 8
    assert (path.read_bytes(), backups(path)) == (before, [])
