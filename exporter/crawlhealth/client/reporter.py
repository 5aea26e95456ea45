"""The reporter: takes what crawlers say at no cost to them, and has it brought to the exporter."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from crawlhealth.client.ledger import Counts, Ledger
from crawlhealth.client.outbox import MemoryOutbox, Outbox
from crawlhealth.client.report import MAX_BODY, MAX_TOGETHER, Bytes, Report, pack
from crawlhealth.client.sender import Sender
from crawlhealth.client.spool import Spool
from crawlhealth.outcome import Outcome, Reason
from crawlhealth.secret import Secret

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a reporter holds; beyond that the oldest reports go, and are counted.

    `queue` reports or `bodies` bytes of pages that are not packed yet, `memory` bytes of packed ones (`disk` with a
    spool). `batch` reports at most are sent at once.
    """

    queue: int = 50_000
    bodies: int = 32_000_000
    batch: int = 5_000
    memory: int = 32_000_000
    disk: int = 1_000_000_000


class Reporter:
    """Reports what came of requests to the exporter at `url`. Thread-safe; survives a fork; raises nothing later on.

    `report` only queues. Two threads of its own, begun with the first report, pack and send every `flush_every`
    seconds, and try again while the exporter is away. With `spool`, a folder, packed reports are on disk until they
    are delivered. Raises OSError if that folder cannot be made. Use it as a context manager or call `close`; at the
    end of the process it closes itself, and takes `close_within` seconds for what is left.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        spool: str | Path | None = None,
        flush_every: float = 1.0,
        close_within: float = 5.0,
        limits: Limits | None = None,
    ) -> None:
        self._url = url
        self._token = Secret(token) if token else None
        self._spool = Path(spool) if spool is not None else None
        self._flush_every = flush_every
        self._close_within = close_within
        self._limits = limits or Limits()
        self._set_up()
        _survive(self)

    def _set_up(self) -> None:
        """The state of a new process."""
        self._ledger = Ledger()
        self._lock = self._ledger.lock
        self._queue: deque[Report] = deque()
        self._bodies = 0
        self._wake_at = self._limits.batch
        self._full_bodies = self._limits.bodies // 2
        self._running = True
        self._begun = False
        self._beginning = threading.Lock()
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._outbox = self._open()
        self._packer = threading.Thread(target=self._run, name="crawlhealth-pack", daemon=True)
        self._sender = Sender(self._url, self._token, self._outbox, self._ledger)
        if self._outbox.waiting():
            self._begin()

    def _open(self) -> Outbox:
        spare = MemoryOutbox(self._limits.memory)
        if self._spool is None:
            return spare
        ledger = self._ledger
        return Spool(
            self._spool,
            self._limits.disk,
            spare,
            adopted=ledger.adopt,
            lost=lambda reports: ledger.settle(dropped=reports),
        )

    def report(
        self,
        site: str = "",
        outcome: Outcome | str | None = None,
        *,
        reason: Reason | str | None = None,
        route: str = "direct",
        seconds: float | None = None,
        bytes: int = 0,
        retries: int = 0,
        credits: float = 0,
        records_valid: int | None = None,
        records_invalid: int = 0,
        fields_missing: Sequence[str] | None = None,
        page_type: str = "",
        count: int = 1,
        at: float | None = None,
        url: str = "",
        status: int | None = None,
        headers: dict[str, str] | None = None,
        final_url: str = "",
        body: str | Bytes | None = None,
    ) -> None:
        """Say what came of one request, or of `count` equal ones.

        Give an `outcome`, or facts for the exporter to classify: `status`, and as far as known headers, final URL and
        body; or the `reason` alone of a request that brought no answer. Give the `site`, or a `url` by whose host the
        exporter finds it. `seconds` is the time of one request to its complete answer; `bytes`, `retries`, `credits`
        and records are totals over `count`; `records_valid=0` says that records were expected and none was found;
        `at` is now if not given. Nothing is raised, whatever is given: what cannot be sent is counted as rejected.
        """
        try:
            report = Report(
                time.time() if at is None else at, site, outcome, reason, route, seconds, bytes, retries, credits,
                records_valid, records_invalid, fields_missing, page_type, count, url, status, headers, final_url,
            )  # fmt: skip
            if body is not None:
                _carry(report, body)
        except Exception as error:  # noqa: BLE001 - whatever was given for a page, the crawl goes on
            self._reject(error)
            return
        with self._lock:
            self._ledger.reported += 1
            self._queue.append(report)
            if body is not None:
                self._bodies += report.body_size
            if len(self._queue) >= self._wake_at or self._bodies > self._full_bodies or not self._running:
                self._crowded()
        if not self._begun:
            self._begin()

    def flush(self, seconds: float = 10.0) -> bool:
        """Send all that was reported so far; False if that took longer than `seconds`."""
        self._wake.set()
        return self._ledger.wait(time.monotonic() + seconds)

    def counts(self) -> Counts:
        """What became of the reports so far."""
        return self._ledger.counts()

    def close(self, seconds: float | None = None) -> Counts:
        """Send what is left, for up to `seconds` (`close_within` if not given), and end.

        What is left then is dropped, or stays in the spool for the next process.
        """
        with self._lock:
            first, self._running = self._running, False
        if first:
            atexit.unregister(self._at_exit)
            self._finish(time.monotonic() + (self._close_within if seconds is None else seconds))
        return self.counts()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reject(self, error: Exception) -> None:
        """Count a report that cannot even be written down."""
        self._ledger.adopt(1)
        self._ledger.settle(rejected=1)
        self._ledger.complain(f"a report cannot be written down: {type(error).__name__}")

    def _begin(self) -> None:
        with self._beginning:
            if self._begun or not self._running:
                return
            try:
                if self._packer.ident is None:
                    self._packer.start()
                self._sender.begin()
            except RuntimeError:  # no more threads, or the interpreter is ending: the next report tries again
                return
            self._begun = True
            atexit.register(self._at_exit)

    def _at_exit(self) -> None:
        self.close()

    def _finish(self, deadline: float) -> None:
        if self._begun:
            self._ending.set()
            self._wake.set()
            self._packer.join(max(0.0, deadline - time.monotonic()) + 0.5)
            self._sender.finish(deadline)
        lost = self._outbox.close()
        with self._lock:
            lost += len(self._queue)
            self._queue.clear()
        if lost:
            self._ledger.settle(dropped=lost)
            log.warning("%d reports could not be delivered to %s and are lost", lost, self._url)

    def _crowded(self) -> None:
        """Have the queue packed at once; drop its oldest reports while it is over its limits, all once closed."""
        if not self._wake.is_set():
            self._wake.set()
        queue, limits = self._queue, self._limits
        while queue and (len(queue) > limits.queue or self._bodies > limits.bodies or not self._running):
            self._bodies -= queue.popleft().body_size
            self._ledger.drop(1)

    def _run(self) -> None:
        ending = False
        while not ending:
            self._wake.wait(self._flush_every)
            self._wake.clear()
            ending = self._ending.is_set()
            try:
                self._pack()
            except Exception:
                log.exception("reports could not be packed")

    def _pack(self) -> None:
        with self._lock:
            taken, self._queue = self._queue, deque()
            self._bodies = 0
        while taken:
            some = _some(taken, self._limits.batch)
            try:
                batches, unwritable = pack(some)
            except Exception:
                log.exception("%d reports could not be packed", len(some))
                batches, unwritable = [], len(some)
            dropped = sum(self._outbox.put(batch) for batch in batches)
            if unwritable or dropped:
                self._ledger.settle(rejected=unwritable, dropped=dropped)
                self._ledger.complain(f"{unwritable} reports could not be written down, {dropped} were dropped")

    def _after_fork(self) -> None:
        """In the child: threads, and the part of the spool, stay with the parent."""
        if not self._running:
            return
        try:
            self._outbox.forked()
            self._set_up()
        except OSError:
            log.exception("the spool cannot be used after a fork: reports stay in memory")
            self._spool = None
            self._set_up()


def _carry(report: Report, body: str | Bytes) -> None:
    """Have a report carry a page, or the beginning of a large one; its size is that of all of it."""
    if isinstance(body, str):
        report.body = body[:MAX_BODY]
    else:
        report.body_base64 = Bytes(body[:MAX_BODY])
    if len(body) > MAX_BODY and not report.bytes:
        report.bytes = len(body)


def _some(taken: deque[Report], most: int) -> list[Report]:
    """The first reports that make one batch: at most so many, with not too much of pages among them."""
    some: list[Report] = []
    bodies = 0
    while taken and len(some) < most and bodies < MAX_TOGETHER:
        report = taken.popleft()
        bodies += report.body_size
        some.append(report)
    return some


def _survive(reporter: Reporter) -> None:
    """Have a forked child begin anew, as long as the reporter is used."""
    known = weakref.ref(reporter)

    def forked() -> None:
        mine = known()
        if mine is not None:
            mine._after_fork()

    os.register_at_fork(after_in_child=forked)
