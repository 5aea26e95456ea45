"""Rounds: each of many things done again and again at its own time, a bounded number at once, none waited for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

log = logging.getLogger(__name__)

Work = Callable[[str], float]
"""Does what is due for a key, and says after how many seconds, from its beginning, it is due again."""


class Rounds:
    """Runs `work` for keys, each in a thread of its own while it takes; never twice at once for the same key.

    `retry` is in how many seconds work that raised is tried again. `clock` gives unix seconds.
    """

    def __init__(self, name: str, work: Work, *, most: int, retry: float, clock: Callable[[], float]) -> None:
        self._name = name
        self._work = work
        self._most = most
        self._retry = retry
        self._clock = clock
        self._due: dict[str, float] = {}
        self._running: set[str] = set()
        self._lock = threading.Lock()

    @property
    def running(self) -> int:
        """How many are under way."""
        return len(self._running)

    def tick(self, keys: Iterable[str]) -> None:
        """Begin what is due of these keys; what is none of them any more is forgotten."""
        now = self._clock()
        with self._lock:
            self._due = {key: self._due.get(key, now) for key in keys}
            ready = sorted((due, key) for key, due in self._due.items() if due <= now and key not in self._running)
            begun = [key for _, key in ready[: max(0, self._most - len(self._running))]]
            self._running.update(begun)
        for key in begun:
            threading.Thread(target=self._run, args=(key, now), name=f"{self._name} {key}", daemon=True).start()

    def _run(self, key: str, began: float) -> None:
        pause = self._retry
        try:
            pause = self._work(key)
        except Exception:
            log.exception("%s of %s failed, will be tried again", self._name, key)
        finally:
            with self._lock:
                self._running.discard(key)
                if key in self._due:
                    self._due[key] = began + pause
