"""A log under a fast writer and rotations, its reader killed on the way: what was counted in the end."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crawlhealth.history.visitstore import VisitStore
from crawlhealth.searchbots.service import LogService
from crawlhealth.searchbotsettings import LogSettings, SearchbotSettings

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Counted:
    """Lines that were written, and what of them was counted: `lines` and `visits` of the bot that every tenth names."""

    written: int
    lines: int
    visits: int
    unreadable: int


def follow(folder: Path, *, rate: int, seconds: float, how: str, kills: int, down: float = 0.3) -> Counted:
    """Write and rotate for some seconds, kill the reader so often with a pause of `down` seconds, and count."""
    (folder / "logs").mkdir()
    log = folder / "logs" / "access.log"
    log.touch()
    with _reader(folder, log):
        pass  # it has seen the log
    writer = subprocess.Popen(
        [sys.executable, str(_HERE / "logwriter.py"), str(log), str(rate), str(seconds), how],
        stdout=subprocess.PIPE,
        text=True,
    )
    pause = threading.Event()
    end = time.monotonic() + seconds
    for left in range(kills + 1, 0, -1):
        with _reader(folder, log):
            pause.wait((end - time.monotonic()) / left)
        pause.wait(down)
    written = int(writer.communicate(timeout=seconds + 60)[0])
    settings = SearchbotSettings(logs=(LogSettings(path=log, name="log"),))
    last = LogService(folder / "history.db", lambda: settings, clock=time.time)
    last.read()
    found = _sums(last.store)
    last.stop()
    return Counted(
        written=written,
        lines=found["crawlhealth_log_lines_total"],
        visits=found["crawlhealth_searchbot_visits_total"],
        unreadable=found.get("crawlhealth_log_unreadable_lines_total", 0),
    )


@contextlib.contextmanager
def _reader(folder: Path, log: Path) -> Iterator[None]:
    """A reader that is killed at the end, with nothing said to it."""
    process = subprocess.Popen([sys.executable, str(_HERE / "logreader.py"), str(folder), str(log)])
    try:
        _until_it_reads(folder, process)
        yield
        assert process.poll() is None, "the reader has ended by itself"
    finally:
        process.kill()
        process.wait()


def _until_it_reads(folder: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    pause = threading.Event()
    while not (folder / "history.db").exists() or not _seen(folder):
        assert process.poll() is None, "the reader did not begin"
        assert time.monotonic() < deadline, "the reader sees no log"
        pause.wait(0.02)


def _seen(folder: Path) -> bool:
    """Whether the place of a log is on disk."""
    import sqlite3

    try:
        with contextlib.closing(sqlite3.connect(folder / "history.db")) as connection:
            return bool(connection.execute("SELECT count(*) FROM log_places").fetchone()[0])
    except sqlite3.Error:
        return False


def _sums(store: VisitStore) -> dict[str, int]:
    sums: dict[str, int] = {}
    for (name, _), value in store.counters.items():
        sums[name] = sums.get(name, 0) + int(value)
    return sums
