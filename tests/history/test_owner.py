"""A history knows the shard of the exporter that last had it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crawlhealth.config import HistorySettings
from crawlhealth.history import History, HistoryError, shard_of
from crawlhealth.shard import Shard


def served(path: Path, shard: Shard | None) -> None:
    History.open(path, HistorySettings(), now=0.0, shard=shard).close()


def test_the_last_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    assert shard_of(path) is None
    for shard in (None, Shard(1, 2), Shard(1, 2), Shard(3, 3), None):
        served(path, shard)
        assert shard_of(path) == shard


def test_the_same_again_writes_nothing(tmp_path: Path) -> None:
    """So that a start never waits for an import that writes at that moment."""
    path = tmp_path / "history.db"
    served(path, Shard(1, 2))
    with closing(sqlite3.connect(path, isolation_level=None)) as importing:
        importing.execute("BEGIN IMMEDIATE")
        history = History.open(path, HistorySettings(), now=0.0, shard=Shard(1, 2))
        importing.execute("ROLLBACK")
        history.close()


@pytest.mark.parametrize("written", ["soon", "4/3", "", 7])
def test_what_is_no_shard_is_an_error_to_ask_for_and_the_next_start_mends_it(tmp_path: Path, written: object) -> None:
    path = tmp_path / "history.db"
    served(path, Shard(1, 2))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'shard'", (written,))
    with pytest.raises(HistoryError, match="cannot read the history"):
        shard_of(path)
    served(path, Shard(1, 2))
    assert shard_of(path) == Shard(1, 2)
