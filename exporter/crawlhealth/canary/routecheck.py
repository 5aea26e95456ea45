"""Route checks: one canary of a site over all its routes, at once, so that a fault is the site's or a route's."""

from __future__ import annotations

import dataclasses
import logging
import queue
import threading
from collections.abc import Callable
from typing import Final

from crawlhealth.config import Canary, Config

MAX_WAITING: Final = 1_000
"""Checks that may wait; when more sites turn bad at once it is not a route of one of them."""

log = logging.getLogger(__name__)

Run = Callable[[Canary, tuple[str, ...]], float | None]
"""Runs a canary through routes and records what came; returns the seconds that its server asks to stay away."""


class RouteChecks:
    """Makes route checks, one after another, in a thread of its own. Thread-safe.

    The routes of a site are tried `min_gap` apart, and no further once the site asks to stay away.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._waiting: queue.Queue[tuple[Canary, tuple[str, ...], float]] = queue.Queue(MAX_WAITING)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, site: str, config: Config) -> bool:
        """Check the routes of a site as soon as it is its turn; False where there is nothing to compare."""
        found = chosen(site, config)
        if found is None or self._stopping.is_set():
            return False
        canary, routes = found
        try:
            self._waiting.put_nowait((canary, routes, config.sites[site].min_gap.total_seconds()))
        except queue.Full:
            return False
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="route-check", daemon=True)
                self._thread.start()
        return True

    def stop(self) -> None:
        """Begin no further fetch; one under way is left behind."""
        self._stopping.set()

    def _work(self) -> None:
        while not self._stopping.is_set():
            canary, routes, gap = self._waiting.get()
            log.info("site %s: checking the routes %s with %s", canary.site, ", ".join(routes), canary.name)
            for number, route in enumerate(routes):
                if self._stopping.wait(gap if number else 0):
                    return
                try:
                    away = self._run(canary, (route,))
                except Exception:
                    log.exception("cannot check route %s with %s/%s", route, canary.site, canary.name)
                    continue
                if away:
                    log.info("site %s asks to stay away: its other routes are not checked", canary.site)
                    break


def chosen(site: str, config: Config) -> tuple[Canary, tuple[str, ...]] | None:
    """The canary that tells most of a site's routes, and these: all that the site or the canary is configured for.

    The first one that goes through the most routes by itself. None without two routes, or without a canary that is
    fetched by us.
    """
    known = config.sites.get(site)
    canaries = [canary for canary in config.canaries if canary.site == site and canary.fetch == "pull"]
    if known is None or not canaries:
        return None
    canary = max(canaries, key=lambda one: len(one.routes))
    routes = tuple(name for name in dict.fromkeys((*known.routes, *canary.routes)) if name in config.routes)
    return (dataclasses.replace(canary, routes=routes), routes) if len(routes) > 1 else None
