"""Watch: requests that wait for a change. One event for all that wait for the same thing, no thread for any."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

MAX_WAITING = 8_000
"""Requests that may wait at once; the server takes some more connections, for those that do not wait."""

Current = Callable[[str | None], str]
"""The present tag of a site, or of the list of all of them (None)."""


class TooMany(Exception):
    """No more requests can wait."""


@dataclass(slots=True)
class _Topic:
    """Those who wait for one site (None: any) to be other than a tag."""

    loop: asyncio.AbstractEventLoop
    event: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0


class Watch:
    """Whoever waits for a change. `changed` is awaited on an event loop, `tell` may be called from any thread."""

    def __init__(self, current: Current) -> None:
        self._current = current
        self._topics: dict[tuple[str | None, str], _Topic] = {}
        self._lock = threading.Lock()
        self._waiting = 0
        self._closed = False

    async def changed(self, site: str | None, tag: str, seconds: float) -> bool:
        """Wait until the tag of a site (or of the list) is another one; False when it still is the same at the end.

        Raises TooMany where nobody can wait any more.
        """
        key = (site, tag)
        with self._lock:
            if self._closed:
                return False
            if self._waiting >= MAX_WAITING:
                raise TooMany
            topic = self._topics.get(key)
            if topic is None:
                topic = self._topics[key] = _Topic(asyncio.get_running_loop())
            topic.waiting += 1
            self._waiting += 1
        try:
            if self._current(site) != tag:  # it changed before we were known to wait
                return True
            async with asyncio.timeout(seconds):
                await topic.event.wait()
            return self._current(site) != tag
        except TimeoutError:
            return False
        finally:
            with self._lock:
                topic.waiting -= 1
                self._waiting -= 1
                if not topic.waiting and self._topics.get(key) is topic:
                    del self._topics[key]

    def tell(self) -> None:
        """The verdicts are new: wake all whose site has another tag now."""
        with self._lock:
            keys = list(self._topics)
        tags = {site: self._current(site) for site in {site for site, _ in keys}}
        self._wake(key for key in keys if tags[key[0]] != key[1])

    def close(self) -> None:
        """Wake everybody, and let nobody wait any more: the server stops."""
        with self._lock:
            self._closed = True
            keys = list(self._topics)
        self._wake(keys)

    def _wake(self, keys: Iterable[tuple[str | None, str]]) -> None:
        for key in keys:
            with self._lock:
                topic = self._topics.pop(key, None)
            if topic is not None:
                topic.loop.call_soon_threadsafe(topic.event.set)
