"""A process that dies by its own kill -9 at one statement of a commit that also rolls up.

`dying.py DATABASE STATEMENT`.
The first commit is whole: 60 requests of twenty hours ago. The second has as many of now, and moves the old ones into
their hour; it also brings a verdict, and the reset of the windows that belongs to it. Ends with 0 when the commit has
fewer statements.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from crawlhealth.config import HistorySettings
from crawlhealth.history import History
from crawlhealth.outcome import Outcome, Reason
from crawlhealth.verdict import Band, BandState, Verdict
from samples import HOUR, NOW, observation, run

STEPS = 5
LIVES = (600.0, 21600.0)


def add(history: History, at: float) -> None:
    for minute in range(STEPS):
        refused = observation(outcome=Outcome.HARD_BLOCK, reason=Reason.HTTP_403, at=at + minute * 60, count=12)
        history.add(refused)
    history.add_run(run(site="quotes", at=at))


def main(path: Path, statement: int) -> None:
    history = History.open(path, HistorySettings(), now=NOW)
    add(history, NOW - 20 * HOUR)
    now = NOW
    while now < NOW + 600:
        assert history.commit(now)
        now += 60
    add(history, NOW)
    list(history.panels(["books"], now, half_lives=LIVES))
    history._present.save()
    with history.together():
        history.put_verdict(Verdict(site="books", at=now, state=BandState(band=Band.RESISTING, since=now)))
        history.reset_windows("books", 0, now)
    executed = 0

    def count(_: str) -> None:
        nonlocal executed
        executed += 1
        if executed == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    history._writer.set_trace_callback(count)
    assert history.commit(now)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
