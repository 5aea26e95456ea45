"""A process that adds and commits as fast as it can until it is killed. Says on stdout what was promised to be on disk.

Each committed line is: commits so far, requests, value of a counter, size of a histogram. `writer.py DATABASE START`.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from crawlhealth import metrics
from crawlhealth.config import HistorySettings
from crawlhealth.history import History
from crawlhealth.outcome import Outcome, Reason, Source
from samples import NOW, observation, run


def state(history: History) -> tuple[int, int, int]:
    """Requests, refusals counted by reason, runs observed: every one moves together with the others."""
    committed = history.committed()
    requests = sum(tally.requests for tally in committed.totals.values())
    reasons = sum(committed.counter(metrics.REASONS).values())
    lag = committed.timings.get((metrics.SCHEDULE_LAG.name, ()))
    return requests, int(reasons), sum(lag.counts.values()) if lag is not None else 0


def main(path: Path, start: float) -> None:
    history = History.open(path, HistorySettings(), now=start)
    print("open", *state(history), flush=True)

    def load(thread: int) -> None:
        number = 0
        while True:
            number += 1
            at = start + number / 100
            history.add(
                observation(
                    site=f"site-{thread}", outcome=Outcome.HARD_BLOCK, reason=Reason.HTTP_403, at=at,
                    source=Source.CANARY if number % 2 else Source.TRAFFIC,
                )
            )  # fmt: skip
            history.observe(metrics.SCHEDULE_LAG, (), 0.001 * (number % 50))
            if number % 50 == 0:
                history.add_run(run(site=f"runs-{thread}", at=at))
                threading.Event().wait(0.001)

    for thread in range(2):
        threading.Thread(target=load, args=(thread,), daemon=True).start()
    now = start
    while True:
        now += 1
        if history.commit(now):
            print("committed", *state(history), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), NOW + float(sys.argv[2]))
