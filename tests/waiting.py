"""Waiting for something to become true, never for a time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event


def until(condition: Callable[[], object], seconds: float, what: str = "the condition holds") -> None:
    """Wait until `condition()` is true, looking 50 times a second; fail with what was awaited after `seconds`."""
    deadline = time.monotonic() + seconds
    pause = Event()
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain until {what}"
        pause.wait(0.02)
