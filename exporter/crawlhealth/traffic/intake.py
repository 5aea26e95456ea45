"""The intake of pushes: decoded, counted once, and acknowledged when they are on disk."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Protocol

from crawlhealth.config import Config
from crawlhealth.history import Batch, History, Pushed, PushKey
from crawlhealth.metrics import PUSH_BATCHES, PUSH_ITEMS
from crawlhealth.traffic import report
from crawlhealth.traffic.body import Body, Text, Unreadable
from crawlhealth.traffic.gathering import Gathering
from crawlhealth.traffic.norms import Norms
from crawlhealth.traffic.report import Report
from crawlhealth.traffic.terms import Terms
from crawlhealth.traffic.tokens import Grant

log = logging.getLogger(__name__)


class Gatherer(Protocol):
    """Counts the items of one push."""

    report: Report
    forbidden: int

    def take(self, texts: Sequence[Text]) -> None:
        """Count items; those that are not taken are in the report."""

    def batch(self) -> Batch:
        """All of it, for the history."""


class Reused(ValueError):
    """A push with the key of another one that had other content."""


MakeGatherer = Callable[[Terms, Norms], Gatherer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """One push as it came: its body in one of body.CODINGS, who sent it, and the key it may have been given."""

    data: bytes
    coding: str
    grant: Grant
    key: str | None = None
    make: MakeGatherer = Gathering


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of a push: its report, and whether it is a repeat of one that was counted before.

    `forbidden` says that nothing was taken because the token may not push any of it.
    """

    report: Report
    checksum: int
    repeated: bool = False
    forbidden: bool = False


class Intake:
    """Takes pushes from any thread. `config` and `clock` are asked at each push."""

    def __init__(
        self, history: History, norms: Norms, *, config: Callable[[], Config], clock: Callable[[], float]
    ) -> None:
        self._history = history
        self._norms = norms
        self._config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way: dict[PushKey, Future[Taken]] = {}
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Items that were counted and are not on disk yet."""
        return self._waiting

    @property
    def failing(self) -> bool:
        """Whether nothing can be written at the moment."""
        return self._history.failing

    def refuse(self, result: str) -> None:
        """Count a push that was not even read: `rejected` or `busy`."""
        self._history.count(PUSH_BATCHES, (result,))

    def take(self, push: Push) -> Future[Taken]:
        """Decode and count a push; the future resolves when it is on disk.

        A push whose key was seen before is not counted again: its future resolves with the report of the first, as
        soon as that is on disk; it raises Reused where the first had other content. Raises body.Unreadable and
        body.TooLarge where nothing is taken, and HistoryError.
        """
        if push.key is None:
            return self._count(push, None, Future())
        key = (push.grant.who, push.key)
        done: Future[Taken] = Future()
        with self._lock:
            first = self._under_way.get(key)
            known = self._history.pushed(key) if first is None else None
            if first is None and known is None:
                self._under_way[key] = done
        if known is not None:
            said, forbidden = report.kept(known.answer)
            self._repeat(push, Taken(report=said, checksum=known.checksum, forbidden=forbidden), done)
            return done
        if first is not None:
            return self._after(first, push)
        try:
            return self._count(push, key, done)
        except BaseException as error:
            self._forget(key)
            done.set_exception(error)
            raise

    def _after(self, first: Future[Taken], push: Push) -> Future[Taken]:
        """The answer to a repeat of a push that is under way: what comes of the first."""
        done: Future[Taken] = Future()

        def answer(first: Future[Taken]) -> None:
            error = first.exception()
            if error is None:
                self._repeat(push, first.result(), done)
            else:
                done.set_exception(error)

        first.add_done_callback(answer)
        return done

    def _count(self, push: Push, key: PushKey | None, done: Future[Taken]) -> Future[Taken]:
        now = self._clock()
        terms = Terms(config=self._config(), now=now, width=self._history.resolution, sites=push.grant.sites)
        gathering = push.make(terms, self._norms)
        body = Body(push.data, push.coding)
        for texts in body.items():
            gathering.take(texts)
        said = gathering.report
        if not said.items:
            raise Unreadable("the body holds no item")
        batch = gathering.batch()
        self._add_counters(batch, said)
        forbidden = not said.accepted and 0 < gathering.forbidden == said.rejected_items
        if key is not None:
            answer = report.keep(said, forbidden=forbidden)
            batch.pushes[key] = Pushed(at=now, checksum=body.checksum, answer=answer)
        self._queued(said.items)

        def on_disk(committed: Future[None]) -> None:
            self._queued(-said.items)
            if key is not None:
                self._forget(key)
            error = committed.exception()
            if error is None:
                done.set_result(Taken(report=said, checksum=body.checksum, forbidden=forbidden))
            else:
                done.set_exception(error)

        self._history.add_batch(batch).add_done_callback(on_disk)
        return done

    def _add_counters(self, batch: Batch, said: Report) -> None:
        batch.increase((PUSH_BATCHES.name, ("accepted" if said.accepted else "rejected",)), 1)
        for result, amount in (("accepted", said.accepted), ("rejected", said.rejected_items)):
            if amount:
                batch.increase((PUSH_ITEMS.name, (result,)), amount)

    def _repeat(self, push: Push, first: Taken, done: Future[Taken]) -> None:
        """Answer a repeat as the first was answered, if it is one."""
        body = Body(push.data, push.coding)
        try:
            for _ in body.decoded():
                pass
            if body.checksum != first.checksum:
                raise Reused("the key was given to another push before: give each a key of its own")
        except ValueError as error:
            done.set_exception(error)
            return
        self._history.count(PUSH_BATCHES, ("duplicate",))
        self._history.count(PUSH_ITEMS, ("duplicate",), first.report.items)
        done.set_result(replace(first, repeated=True))

    def _forget(self, key: PushKey) -> None:
        with self._lock:
            self._under_way.pop(key, None)

    def _queued(self, items: int) -> None:
        with self._lock:
            self._waiting += items
