"""Arrivals: canaries that the user's own crawler sends, judged like fetched ones and on disk before they are taken."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from crawlhealth.canary.arrival import read_arrival
from crawlhealth.canary.engine import Engine
from crawlhealth.config import Canary, Config
from crawlhealth.history import History
from crawlhealth.history.batch import Batch
from crawlhealth.model import CanaryRun

PATIENCE_SECONDS: Final = 20.0
"""How long an arrival waits to be on disk."""
_STRIPES: Final = 64


class Outdated(Exception):
    """A run of the same canary and route from a later time is known."""


class NotKept(Exception):
    """An arrival that is not on disk: it may be sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """An arrival that was taken: what it was judged to be, or that it is a repeat of the last one."""

    run: CanaryRun
    repeated: bool


class Arrivals:
    """Takes arrivals of configured canaries. Thread-safe."""

    def __init__(
        self, engine: Engine, history: History, config: Callable[[], Config], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._engine = engine
        self._history = history
        self._config = config
        self._clock = clock
        self._last = {key: stored.run for key, stored in history.committed().runs.items()}
        self._stripes = tuple(threading.Lock() for _ in range(_STRIPES))

    def take(self, site: str, name: str, data: bytes) -> Taken:
        """Judge and keep an arrival (`data` is the request's JSON); it is on disk when this returns.

        The same `at` again is a repeat: acknowledged, and not counted. Raises LookupError for a canary that is not
        configured, ValueError for what is no arrival, Outdated, and NotKept.
        """
        config = self._config()
        canary = self._canary(config, site, name)
        arrival = read_arrival(data, canary, config.fetch, now=self._clock())
        key = (site, name, arrival.route)
        with self._stripes[hash(key) % _STRIPES]:
            last = self._last.get(key)
            if last is not None and arrival.dated and last.at >= arrival.at:
                if last.at > arrival.at:
                    raise Outdated(f"a run of {site}/{name} through {arrival.route} from a later time is known")
                taken = Taken(run=last, repeated=True)
            else:
                run = self._engine.take(canary, arrival)
                if run is None:
                    raise NotKept("the exporter is stopping, or the site has left the configuration: send it again")
                self._last[key] = run
                taken = Taken(run=run, repeated=False)
        kept = self._history.add_batch(Batch())
        try:
            kept.result(PATIENCE_SECONDS)
        except Exception as error:
            raise NotKept("it cannot be written to the history now: send it again") from error
        return taken

    def _canary(self, config: Config, site: str, name: str) -> Canary:
        for canary in config.canaries:
            if canary.site == site and canary.name == name:
                return canary
        raise LookupError("no such canary of this site" if site in config.sites else config.unknown(site))
