"""The extraction worker: a process that reads pages for its parent, and that may be killed at any time.

It bounds itself as well: processor time for each page, and memory. `python -m crawlhealth.canary.worker SECONDS
NICENESS`, with a socket as standard input.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from functools import lru_cache
from typing import Final

from crawlhealth.canary import frames
from crawlhealth.canary.page import Page

DATA_BYTES: Final = 256 << 20
"""Memory that a worker may take: a page that needs more is too complex."""
RECYCLE_BYTES: Final = 128 << 20
"""A worker that has grown beyond this ends after its answer, and gives its memory back so."""

_specs = lru_cache(maxsize=16_384)(frames.unpack_specs)


def main(arguments: list[str]) -> None:
    """Answer frames until the parent hangs up."""
    seconds = float(arguments[0])
    _bound_itself(int(arguments[1]))
    with suppress(ConnectionError), socket.socket(fileno=0) as line, line.makefile("rb") as source:
        line.sendall(frames.READY)
        while (frame := frames.read_request(source)) is not None:
            specs, content_type, body = frame
            signal.setitimer(signal.ITIMER_PROF, seconds)  # SIGPROF ends the process, even inside C code
            results = Page(body, content_type.decode("latin-1")).judge(_specs(specs))
            signal.setitimer(signal.ITIMER_PROF, 0)
            last = _has_grown()
            line.sendall(frames.answer(results, last=last))
            if last:
                return


def _has_grown() -> bool:
    """Whether much memory is held now. The cheap peak comes first; it may be the parent's, which is kept over exec."""
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 <= RECYCLE_BYTES:
        return False
    with open("/proc/self/statm", "rb") as status:
        return int(status.read().split()[1]) * resource.getpagesize() > RECYCLE_BYTES


def _bound_itself(niceness: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with suppress(OSError):
        os.nice(niceness)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))


if __name__ == "__main__":
    main(sys.argv[1:])
