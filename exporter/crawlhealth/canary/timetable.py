"""The timetable: which canary starts when, politely. Pure decisions; times are seconds of a clock that never jumps."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from crawlhealth.config import Canary, Config, Site

LONGEST_LATENESS: Final = 5.0
"""Seconds after which a start that the process slept through is skipped: starting them all would be a burst."""

Key = tuple[str, str, tuple[str, ...]]
"""Site, canary, routes fetched together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A run to start now. `since` is when it might have started: when it was due, or when politeness let it."""

    key: Key
    canary: Canary
    site: Site
    since: float


@dataclass(slots=True, kw_only=True, eq=False)
class _Job:
    """A canary through some of its routes, and where its runs stand."""

    key: Key
    canary: Canary
    site: Site
    phase: float
    due: float = 0.0
    ticket: int = 0
    waiting: bool = False
    removed: bool = False
    not_before: float = -math.inf

    @property
    def every(self) -> float:
        """Seconds between starts."""
        return self.canary.every.total_seconds()

    @property
    def weight(self) -> int:
        """How many requests it has under way at once at most."""
        return min(len(self.key[2]), self.site.max_concurrency)


@dataclass(slots=True, kw_only=True)
class _Lane:
    """One site's queue: starts that are due and wait for a free place or for the gap to pass."""

    queue: deque[_Job] = field(default_factory=deque)
    running: int = 0
    full: bool = False
    next_start: float = -math.inf
    freed: float = -math.inf
    wake: float = -math.inf


def phase_of(key: Key, every: float) -> float:
    """Where in its interval a job starts, in seconds: the same at every start of the process, spread evenly."""
    digest = hashlib.blake2b("\0".join((key[0], key[1], *key[2])).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 * every


def next_due(after: float, every: float, phase: float, offset: float) -> float:
    """The first time later than `after` that is, by the wall clock (`+ offset`), a multiple of `every` plus `phase`."""
    turns = math.floor((after + offset - phase) / every) + 1
    due = turns * every + phase - offset
    return due if due > after else due + every


class Timetable:
    """Which runs are due, which wait for politeness, which are under way. Not thread-safe: one owner.

    `offset` is wall clock minus this clock, taken once: a wall clock that is set does not move any start.
    """

    def __init__(self, config: Config, *, now: float, offset: float) -> None:
        self._offset = offset
        self._jobs: dict[Key, _Job] = {}
        self._running: dict[Key, int] = {}
        self._lanes: dict[str, _Lane] = {}
        self._heap: list[tuple[float, int, _Job]] = []
        self._wakes: list[tuple[float, str]] = []
        self._tickets = 0
        self.replace(config, now)

    def replace(self, config: Config, now: float) -> None:
        """Follow a new configuration: what stays keeps its phase, its due time and its run under way."""
        wanted = {key: canary for canary in config.canaries if canary.fetch == "pull" for key in keys(canary)}
        for key in [key for key in self._jobs if key not in wanted]:
            self._drop(self._jobs.pop(key))
        for key, canary in wanted.items():
            site, job = config.sites[canary.site], self._jobs.get(key)
            if job is not None and job.canary.every == canary.every:
                job.canary, job.site = canary, site
            else:
                self._add(key, canary, site, job, now)
            self._lanes.setdefault(canary.site, _Lane())
        used = {key[0] for key in self._jobs}
        for name in [name for name, lane in self._lanes.items() if name not in used and not lane.running]:
            del self._lanes[name]

    def due(self, now: float) -> tuple[list[Start], int]:
        """The runs to start now, and how many had to be skipped because the one before still waits or runs."""
        skipped = 0
        touched: dict[str, None] = {}
        while self._heap and self._heap[0][0] <= now:
            due, ticket, job = heapq.heappop(self._heap)
            if job.removed or ticket != job.ticket:
                continue
            late = now - due > min(LONGEST_LATENESS, job.every)
            self._schedule(job, now)
            if job.waiting or job.key in self._running or late:
                skipped += 1
            elif due >= job.not_before:
                job.due, job.waiting = due, True
                self._lanes[job.key[0]].queue.append(job)
                touched[job.key[0]] = None
        while self._wakes and self._wakes[0][0] <= now:
            touched[heapq.heappop(self._wakes)[1]] = None
        return [start for site in touched for start in self._admit(site, now)], skipped

    def finished(self, key: Key, now: float, retry_after: float | None = None) -> list[Start]:
        """Note the end of a run, and that its server asks to stay away; the runs that may start in its place."""
        job, lane = self._jobs.get(key), self._lanes.get(key[0])
        weight = self._running.pop(key)
        if lane is not None:
            lane.running -= weight
            lane.freed = now
        if job is not None and retry_after is not None:
            job.not_before = now + retry_after
        return self._admit(key[0], now)

    def next_wake(self) -> float | None:
        """When `due` has something to do again, None if never."""
        times = [heap[0][0] for heap in (self._heap, self._wakes) if heap]
        return min(times) if times else None

    def _schedule(self, job: _Job, now: float) -> None:
        self._tickets += 1
        job.ticket = self._tickets
        heapq.heappush(self._heap, (next_due(now, job.every, job.phase, self._offset), job.ticket, job))

    def _add(self, key: Key, canary: Canary, site: Site, before: _Job | None, now: float) -> None:
        """Take in a new job, or one whose interval has changed."""
        job = _Job(key=key, canary=canary, site=site, phase=phase_of(key, canary.every.total_seconds()))
        if before is not None:
            job.not_before = before.not_before
            self._drop(before)
        self._jobs[key] = job
        self._schedule(job, now)

    def _drop(self, job: _Job) -> None:
        job.removed = True
        if job.waiting:
            self._lanes[job.key[0]].queue.remove(job)

    def _admit(self, name: str, now: float) -> list[Start]:
        """What of a site's queue may start: a free place, and the gap since the start before."""
        lane = self._lanes.get(name)
        starts: list[Start] = []
        while lane is not None and lane.queue:
            job = lane.queue[0]
            if lane.running and lane.running + job.weight > job.site.max_concurrency:
                lane.full = True
                break
            if lane.next_start > now:
                self._wake(name, lane)
                break
            lane.queue.popleft()
            since = max(job.due, lane.next_start, lane.freed if lane.full else -math.inf)
            starts.append(Start(key=job.key, canary=job.canary, site=job.site, since=since))
            job.waiting = False
            self._running[job.key] = job.weight
            lane.running += job.weight
            lane.next_start = now + job.site.min_gap.total_seconds() * len(job.key[2])
        if lane is not None and not lane.queue:
            lane.full = False
        return starts

    def _wake(self, name: str, lane: _Lane) -> None:
        if lane.wake != lane.next_start:
            lane.wake = lane.next_start
            heapq.heappush(self._wakes, (lane.wake, name))


def keys(canary: Canary) -> tuple[Key, ...]:
    """The jobs of a canary: one for each route, but a single one for routes that must be fetched together."""
    together = tuple(route for route in canary.routes if route in canary.same_on)
    alone = tuple((route,) for route in canary.routes if route not in canary.same_on)
    return tuple((canary.site, canary.name, routes) for routes in (*alone, *((together,) if together else ())))
