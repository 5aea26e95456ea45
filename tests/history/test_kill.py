"""kill -9 under load, again and again: what was said to be on disk is there, once."""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from crawlhealth import metrics
from crawlhealth.config import HistorySettings
from crawlhealth.history import History
from samples import NOW

KILLS = 20
LIVES = (600.0, 21600.0)
WRITER = Path(__file__).with_name("writer.py")
DYING = Path(__file__).with_name("dying.py")
_FOLDERS = (str(WRITER.parent.parent), os.environ.get("PYTHONPATH"))
ENVIRON = {**os.environ, "PYTHONPATH": os.pathsep.join(folder for folder in _FOLDERS if folder)}


def numbers(line: str) -> tuple[int, ...]:
    return tuple(int(word) for word in line.split()[1:])


def killed_after(path: Path, lines: int, start: int, pause: float) -> list[str]:
    """The lines a writer said until it was killed, `pause` seconds after `lines` of them."""
    command = [sys.executable, str(WRITER), str(path), str(start)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRON) as process:
        assert process.stdout is not None
        try:
            said = [process.stdout.readline() for _ in range(lines)]
            threading.Event().wait(pause)
        finally:
            os.kill(process.pid, signal.SIGKILL)
        said += process.stdout.readlines()
    return [line for line in said if line.endswith("\n")]


def test_no_counter_steps_back_and_nothing_committed_is_lost_or_counted_twice(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    chance = random.Random(9)
    before: tuple[int, ...] = (0, 0, 0)
    for kill in range(KILLS):
        said = killed_after(path, chance.randint(2, 12), start=kill * 1000, pause=chance.random() / 100)
        assert said[0].startswith("open")
        opened = numbers(said[0])
        assert all(now >= then for now, then in zip(opened, before, strict=True)), "a counter stepped back"
        committed = [numbers(line) for line in said[1:]]
        assert committed == sorted(committed)
        before = committed[-1] if committed else opened
    with_all = History.open(path, HistorySettings(), now=NOW + 1e6)
    totals = with_all.committed()
    requests = sum(tally.requests for tally in totals.totals.values())
    assert requests >= before[0] > 1000
    slots = [slot for site in ("site-0", "site-1", "runs-0", "runs-1") for slot in with_all.hours(site, 0.0)]
    assert sum(slot.tally.requests for slot in slots) == requests, "windows and totals are one transaction"
    runs = sum(totals.counter(metrics.CANARY_RUNS).values())
    assert runs == sum(tally.ok for tally in totals.totals.values()) > 0, "so are the runs"
    assert sum(totals.counter(metrics.REASONS).values()) == requests - runs, "so are the reasons"
    with_all.close()
    assert not list(tmp_path.glob("*unreadable*"))


def test_death_at_any_statement_of_a_commit_leaves_all_of_it_or_nothing(tmp_path: Path) -> None:
    seen = set()
    for statement in range(1, 100):
        path = tmp_path / f"{statement}.db"
        died = subprocess.run([sys.executable, str(DYING), str(path), str(statement)], env=ENVIRON, check=False)
        history = History.open(path, HistorySettings(), now=NOW)
        committed = history.committed()
        requests = sum(tally.requests for tally in committed.totals.values())
        slots = [slot for site in ("books", "quotes") for slot in history.hours(site, 0.0)]
        judged = history.states().keys() == {"books"}
        ((panel, _, _),) = history.panels(["books"], NOW + 600, half_lives=LIVES)
        history.close()
        old, new = (math.fsum(12 * 2 ** -((ago - n * 60) / LIVES[1]) for n in range(5)) for ago in (72600, 600))
        assert panel.totals[0, 1, 1] == pytest.approx(new if judged else old, rel=1e-6), "a verdict and its reset"
        assert judged == (requests == 122)
        runs = sum(committed.counter(metrics.CANARY_RUNS).values())
        reasons = sum(committed.counter(metrics.REASONS).values())
        assert (requests, runs, reasons) in [(61, 1, 60), (122, 2, 120)]
        assert sum(slot.tally.requests for slot in slots) == requests
        seen.add((requests, sum(slot.seconds > 60 for slot in slots)))
        if died.returncode == 0:
            break
        assert died.returncode == -signal.SIGKILL
    assert seen == {(61, 0), (122, 0), (122, 2)}, "before, between commit and roll-up, after"
