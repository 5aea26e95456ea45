"""Waiting for something to become true, never for a time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event


def until(
    condition: Callable[[], object],
    seconds: float,
    what: str = "the condition holds",
    explain: Callable[[], str] = str,
) -> None:
    """Wait until `condition()` is true, looking 50 times a second.

    Fail after `seconds` with what was awaited and what `explain()` says then.
    """
    deadline = time.monotonic() + seconds
    pause = Event()
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain until {what}\n{explain()}"
        pause.wait(0.02)
