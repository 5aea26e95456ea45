"""Obeys the advice through Scrapy's own download slots: fewer requests at a time, longer pauses, or none at all."""

from __future__ import annotations

import logging
import statistics
import weakref
from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol

from scrapy import Request
from scrapy.core.downloader import Downloader, Slot
from scrapy.crawler import Crawler
from twisted.python.failure import Failure

from crawlhealth.client import SiteAdvice
from crawlhealth.scrapy.limits import Pace, allowed
from crawlhealth.scrapy.options import Naming

log = logging.getLogger(__name__)

MOST_ROOM: Final = 1_000
"""Requests that may wait in slots of slowed sites without taking the places of others."""
_RECENT: Final = 15
"""Latencies of a slot whose median counts: one slow answer must not slow a slot for long."""


class HeldBack(Exception):
    """A request that waited in the slot of a slowed site when the crawl ended."""


class Adviser(Protocol):
    """Who is asked for advice."""

    def of(self, site: str) -> SiteAdvice:
        """The advice for a site, at once."""


@dataclass(slots=True)
class _Known:
    """A slot, its usual pace, and the one it was given."""

    slot: Slot
    usual: Pace
    given: Pace


class Throttle:
    """Sets the slots of sites that are advised, and leaves all others alone. For the thread of the reactor.

    A pace that somebody else gives to a slot later on, as AutoThrottle does, is its usual one from then on.
    """

    def __init__(self, crawler: Crawler, naming: Naming, adviser: Adviser) -> None:
        self._crawler = crawler
        self._naming = naming
        self._adviser = adviser
        self._sites: dict[str, str | None] = {}
        self._slots: dict[str, _Known] = {}
        self._latencies: dict[str, deque[float]] = {}
        self._said: dict[str, SiteAdvice] = {}
        self._leaving: dict[str, weakref.WeakSet[Request]] = {}
        self._usual_total: int | None = None

    def belongs(self, key: str, request: Request) -> None:
        """Note which site a slot serves, by one of its requests."""
        if self._sites.get(key) is None:
            self._sites[key] = self._naming.site(request)

    def may_start(self, key: str) -> bool:
        """Whether a request of this slot may leave the scheduler now.

        One that would only wait in its slot stays where it is, for it would take another site's place.
        """
        advice = self._advice(key)
        if advice is None or not (advice.paused or advice.concurrency_ratio < 1):
            return True
        slot = self._downloader.slots.get(key)
        under_way = len(self._leaving.get(key, ()))
        if slot is None:
            return not advice.paused and advice.concurrency_ratio > 0 and under_way == 0
        self._set(key, slot, advice)
        return len(slot.active) + under_way < slot.concurrency

    def left(self, key: str, request: Request) -> None:
        """A request has left the scheduler; on asyncio it reaches its slot only later, after others have left."""
        self._leaving.setdefault(key, weakref.WeakSet()).add(request)

    def reached(self, request: Request) -> None:
        """A request has come to its slot, which may be a new one."""
        key = str(request.meta.get("download_slot", ""))
        slot = self._downloader.slots.get(key)
        if key in self._leaving:
            self._leaving[key].discard(request)
        self.belongs(key, request)
        advice = self._advice(key)
        if slot is not None and advice is not None:
            self._set(key, slot, advice)
            if self._slots[key].given.concurrency < self._slots[key].usual.concurrency:
                self._make_room()

    def before_others(self, request: Request) -> None:
        """An answer is there, and other extensions are about to look at it: show them the usual delay."""
        known = self._slots.get(str(request.meta.get("download_slot", "")))
        if known is not None and known.slot.delay == known.given.delay:
            known.slot.delay = known.usual.delay
            known.given = Pace(known.given.concurrency, known.usual.delay)

    def after_others(self, request: Request) -> None:
        """They have looked, and the slot may have got another delay: slow that one down as advised."""
        key = str(request.meta.get("download_slot", ""))
        latency = request.meta.get("download_latency")
        advice = self._advice(key)
        if advice is None:
            return
        if latency is not None:
            self._latencies.setdefault(key, deque(maxlen=_RECENT)).append(latency)
        known = self._slots.get(key)
        if known is not None:
            self._set(key, known.slot, advice)

    def tick(self) -> None:
        """Look at the advice again, and set all slots by it."""
        freer = False
        for key, slot in list(self._downloader.slots.items()):
            advice = self._advice(key)
            if advice is not None:
                freer = self._set(key, slot, advice) or freer
        for key in [key for key, known in self._slots.items() if self._downloader.slots.get(key) is not known.slot]:
            del self._slots[key]
            self._leaving.pop(key, None)
            self._latencies.pop(key, None)
        if self._closing:
            self._give_back()
        self._make_room()
        for site in self._naming.sites:
            freer = self._say(site) or freer
        if freer:
            self._wake()

    @property
    def _downloader(self) -> Downloader:
        engine = self._crawler.engine
        assert engine is not None
        return engine.downloader

    @property
    def _closing(self) -> bool:
        slot = getattr(self._crawler.engine, "_slot", None)
        return slot is not None and slot.closing is not None

    def _give_back(self) -> None:
        """At the end of a crawl: hand back what waits in slots of slowed sites, for the end waits for it."""
        for known in self._slots.values():
            if known.given.concurrency < known.usual.concurrency or known.given.delay > known.usual.delay:
                while known.slot.queue:
                    _, waiting = known.slot.queue.popleft()
                    waiting.errback(Failure(HeldBack()))  # type: ignore[no-untyped-call] # Twisted's has no types

    def _advice(self, key: str) -> SiteAdvice | None:
        if key not in self._sites:
            self._sites[key] = self._naming.site_of_slot(key)
        site = self._sites[key]
        return None if site is None else self._adviser.of(site)

    def _set(self, key: str, slot: Slot, advice: SiteAdvice) -> bool:
        """Give a slot its pace; returns whether that is a freer one."""
        now = Pace(slot.concurrency, slot.delay)
        known = self._slots.get(key)
        if known is None or known.slot is not slot:
            known = self._slots[key] = _Known(slot, now, now)
        before, usual = known.given, known.usual
        known.usual = Pace(
            usual.concurrency if now.concurrency == before.concurrency else now.concurrency,
            usual.delay if now.delay == before.delay else now.delay,
        )
        known.given = given = allowed(known.usual, advice, self._usual_latency(key))
        slot.concurrency, slot.delay = given.concurrency, given.delay
        freer = given.concurrency > before.concurrency or given.delay < before.delay
        if freer and slot.queue:
            if slot.latercall:
                slot.latercall.cancel()
                slot.latercall = None
            self._downloader._process_queue(slot)
        return freer

    def _usual_latency(self, key: str) -> float | None:
        latencies = self._latencies.get(key)
        return statistics.median(latencies) if latencies else None

    def _make_room(self) -> None:
        """Let what waits in slots of slowed sites not count among the requests that all sites share."""
        downloader = self._downloader
        if self._usual_total is None:
            self._usual_total = downloader.total_concurrency
        if self._usual_total > 0:  # 0 is no limit
            waiting = sum(
                max(0, len(known.slot.active) - known.given.concurrency)
                for known in self._slots.values()
                if known.given.concurrency < known.usual.concurrency
            )
            downloader.total_concurrency = self._usual_total + min(waiting, MOST_ROOM)

    def _say(self, site: str) -> bool:
        """Log advice that has changed; returns whether it allows more than before."""
        advice, said = self._adviser.of(site), self._said.get(site, SiteAdvice())
        ratio, before = (0.0 if one.paused else one.concurrency_ratio for one in (advice, said))
        self._said[site] = advice
        if ratio == before:
            return False
        why = f"band {advice.band}, score {'unknown' if advice.score is None else round(advice.score)}"
        if ratio <= 0:
            log.warning("site %s: paused (%s)", site, why)
        else:
            log.info("site %s: %.0f %% of the usual concurrency (%s)", site, ratio * 100, why)
        if self._crawler.stats is not None:
            self._crawler.stats.set_value(f"crawlhealth/{site}/concurrency_ratio", ratio)
            if ratio <= 0:
                self._crawler.stats.inc_value(f"crawlhealth/{site}/pauses")
        return ratio > before

    def _wake(self) -> None:
        """Have the engine look into the scheduler now and not at its next heartbeat."""
        slot = getattr(self._crawler.engine, "_slot", None)
        if slot is not None:
            slot.nextcall.schedule()
