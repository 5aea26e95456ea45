"""kill -9 under load, again and again: what was said to be on disk is there, once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from crawlhealth import metrics
from crawlhealth.config import HistorySettings
from crawlhealth.history import History
from samples import NOW

KILLS = 20
WRITER = Path(__file__).with_name("writer.py")


def numbers(line: str) -> tuple[int, ...]:
    return tuple(int(word) for word in line.split()[1:])


def killed_after(path: Path, lines: int, start: int) -> list[str]:
    """The lines a writer said until it was killed, some time after `lines` of them."""
    environ = {**os.environ, "PYTHONPATH": str(WRITER.parent.parent)}
    command = [sys.executable, str(WRITER), str(path), str(start)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        try:
            said = [process.stdout.readline() for _ in range(lines)]
        finally:
            os.kill(process.pid, signal.SIGKILL)
        said += process.stdout.readlines()
    return [line for line in said if line.endswith("\n")]


def test_no_counter_steps_back_and_nothing_committed_is_lost_or_counted_twice(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    chance = random.Random(9)
    before: tuple[int, ...] = (0, 0, 0)
    for kill in range(KILLS):
        said = killed_after(path, lines=chance.randint(2, 12), start=kill * 1000)
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
