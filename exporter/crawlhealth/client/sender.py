"""The thread that brings batches to the exporter, with all the patience that takes."""

from __future__ import annotations

import logging
import random
import threading
import time
from typing import Final

from crawlhealth.client.ledger import Ledger
from crawlhealth.client.outbox import Outbox
from crawlhealth.client.report import halves
from crawlhealth.client.sending import Attempt, Endpoint, Next
from crawlhealth.secret import Secret

log = logging.getLogger(__name__)

LONGEST_PAUSE: Final = 10.0
"""Seconds between two attempts when the exporter stays away."""
_FIRST_PAUSE: Final = 0.5
_LOOK_EVERY: Final = 1.0


class Sender:
    """Sends what the outbox holds, oldest first, each batch until it is settled. `begin` and `finish` it once."""

    def __init__(self, url: str, token: Secret | None, outbox: Outbox, ledger: Ledger) -> None:
        self._url = url
        self._token = token
        self._outbox = outbox
        self._ledger = ledger
        self._ending = threading.Event()
        self._deadline = 0.0
        self._thread = threading.Thread(target=self._run, name="crawlhealth-send", daemon=True)

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def finish(self, deadline: float) -> None:
        """End once all is sent that can be, by `deadline` (monotonic) at the latest; what is on disk waits there."""
        self._deadline = deadline
        self._ending.set()
        self._outbox.wake()
        self._thread.join(max(0.0, deadline - time.monotonic()) + 0.5)

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        with Endpoint(self._url, self._token) as endpoint:
            while not self._over():
                try:
                    attempt = self._send_first(endpoint)
                except Exception:
                    log.exception("reports could not be sent")
                    attempt = Attempt(next=Next.AGAIN)
                if attempt is None or attempt.next is not Next.AGAIN:
                    pause = _FIRST_PAUSE
                    continue
                spread = random.uniform(0.5, 1.0)  # noqa: S311 - keeps crawlers apart, hides nothing
                if self._ending.wait(pause * spread if attempt.after is None else attempt.after):
                    if self._outbox.durable:
                        return  # the next process sends it
                    time.sleep(min(_FIRST_PAUSE, max(0.0, self._deadline - time.monotonic())))
                pause = min(LONGEST_PAUSE, pause * 2)

    def _over(self) -> bool:
        """Whether all is sent at the end, or time is up."""
        return self._ending.is_set() and (time.monotonic() >= self._deadline or not self._outbox.waiting())

    def _send_first(self, endpoint: Endpoint) -> Attempt | None:
        try:
            batch = self._outbox.first(_LOOK_EVERY)
        except OSError as error:
            self._ledger.complain(f"the spool cannot be read now: {error}")
            return Attempt(next=Next.AGAIN)
        if batch is None:
            return None
        if self._ending.is_set():
            attempt = endpoint.push(batch, max(0.1, self._deadline - time.monotonic()))
        else:
            attempt = endpoint.push(batch)
        if attempt.next is Next.SPLIT:
            parts = halves(batch)
            if self._outbox.settle(batch, *(parts or ())) and parts is None:
                self._ledger.settle(rejected=batch.count)
        elif attempt.next is Next.SETTLED and self._outbox.settle(batch):
            self._ledger.settle(delivered=attempt.accepted, rejected=attempt.rejected)
        if attempt.problem:
            self._ledger.complain(f"{self._url}: {attempt.problem}")
        return attempt
