"""Resolver: looks addresses up in the background, a bounded number at once, a bounded number waiting."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from crawlhealth.searchbots.dns import Dns
from crawlhealth.searchbots.facts import Facts, Reverse
from crawlhealth.searchbots.names import IP, canonical
from crawlhealth.searchbotsettings import ResolverSettings

log = logging.getLogger(__name__)

MOST_WAITING: Final = 10_000
"""Addresses that wait to be looked up; further ones are not taken, and asked for again by their next visit."""

Took = Callable[[str, Facts], None]
"""What is done with the facts of an address, in the resolver's own thread."""


class Resolver:
    """A thread with an event loop, begun with the first address. `submit` works from any thread, and never waits.

    `followed` says which names are looked up in turn, `took` gets what was found.
    """

    def __init__(
        self,
        settings: Callable[[], ResolverSettings],
        *,
        followed: Callable[[str], bool],
        took: Took,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._followed = followed
        self._took = took
        self._clock = clock
        self._waiting: deque[str] = deque()
        self._asked: set[str] = set()  # waiting or being looked up
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._running: set[asyncio.Task[None]] = set()
        self._woken = False
        self._stopped = False
        self._dns: tuple[ResolverSettings, Dns] | None = None
        self._thread = threading.Thread(target=self._run, name="resolver", daemon=True)
        self.most_running = 0
        """The most look-ups that were ever under way at once."""

    @property
    def waiting(self) -> int:
        """Addresses that wait or are being looked up."""
        return len(self._asked)

    def submit(self, address: str) -> bool:
        """Have an address looked up, once however often it is submitted; False where too many wait."""
        if address in self._asked:
            return True
        with self._lock:
            if address in self._asked:
                return True
            if self._stopped or len(self._waiting) >= MOST_WAITING:
                return False
            self._asked.add(address)
            self._waiting.append(address)
            if self._thread.ident is None:
                self._thread.start()
            wake, self._woken = not self._woken, True
            if wake:
                self._loop.call_soon_threadsafe(self._fill)
        return True

    def stop(self) -> None:
        """Give up what is under way, and end the thread."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            if self._thread.ident is None:
                self._loop.close()
                return
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            for task in self._running:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*self._running, return_exceptions=True))
        finally:
            self._loop.close()

    def _fill(self) -> None:
        """Begin as many look-ups as may run at once."""
        concurrency = self._settings().concurrency
        with self._lock:
            self._woken = False
            while self._waiting and len(self._running) < concurrency:
                task = self._loop.create_task(self._look(self._waiting.popleft()))
                self._running.add(task)
                task.add_done_callback(self._done)
            self.most_running = max(self.most_running, len(self._running))

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a look-up failed, it will be tried again", exc_info=task.exception())
        if not self._stopped:
            self._fill()

    async def _look(self, address: str) -> None:
        ip = canonical(address)
        try:
            facts = Facts(at=self._clock(), reverse=Reverse.FAILED) if ip is None else await self._facts(ip)
            self._took(address, facts)
        finally:
            with self._lock:
                self._asked.discard(address)

    async def _facts(self, ip: IP) -> Facts:
        settings = self._settings()
        if self._dns is None or self._dns[0] != settings:
            self._dns = (settings, Dns(settings.endpoints, timeout=settings.timeout.total_seconds()))
        return await self._dns[1].facts(ip, self._followed, now=self._clock())
