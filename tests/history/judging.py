"""A process that judges two sites each 15 seconds and commits, and dies by its own kill -9: `judging.py DATABASE`.

From NOW on `books` scores 95, 94 for a moment, and 95 again; `quotes` scores 90 and is outside normal for the last
evaluation alone. The death comes after the commit of that one.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np

from crawlhealth.config import HistorySettings
from crawlhealth.history import History
from crawlhealth.marks import OUTSIDE
from samples import NOW

EVALUATIONS = 40
DIP = 4


def main(path: Path) -> None:
    history = History.open(path, HistorySettings(), now=NOW)
    for number in range(EVALUATIONS):
        now = NOW + 15.0 * number
        books = 94 if number == DIP else 95
        quotes = OUTSIDE if number == EVALUATIONS - 1 else 90
        history.judged.put(("books", "quotes"), np.array([books, quotes], dtype=np.uint8), now)
        assert history.commit(now)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
