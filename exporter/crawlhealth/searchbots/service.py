"""Reading logs as a part of `crawlhealth serve`: the store, the logs, and what /metrics shows of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

from crawlhealth.history.visitstore import VisitStore
from crawlhealth.searchbots.dispatch import Dispatches, OnSent
from crawlhealth.searchbots.logs import Logs, Put
from crawlhealth.searchbots.model import Identify, unverified
from crawlhealth.searchbots.visits import Stealth
from crawlhealth.searchbotsettings import SearchbotSettings

EVERY: Final = timedelta(seconds=1)
"""How often logs are looked at."""


class LogService:
    """Reads all logs into the history at a path. `clock` gives unix seconds. Raises HistoryError when it cannot begin.

    Without `identify` every visit is unverified, without `stealth` no browser is suspect. `sent` hears of each domain
    from which visits were sent on, and to which URL.
    """

    def __init__(
        self,
        history: Path,
        settings: Callable[[], SearchbotSettings],
        *,
        clock: Callable[[], float],
        identify: Identify = unverified,
        stealth: Callable[[], Stealth | None] = lambda: None,
        sent: OnSent = lambda _domain, _url: None,
    ) -> None:
        self._clock = clock
        self._ending = threading.Event()
        self.store = VisitStore.open(history, now=clock())
        self.dispatches = Dispatches(self.store, settings, sent=sent)
        self._logs = Logs(
            self.store,
            lambda: {each.label: each for each in settings().read_logs},
            identify=identify,
            dispatched=self.dispatches.note,
            stealth=stealth,
        )

    def read(self) -> None:
        """Read everything that is there now, in as many transactions as that takes. Raises HistoryError."""
        while self._logs.step(self._clock()) and not self._ending.is_set():
            pass

    def end(self) -> None:
        """Let `read` return soon."""
        self._ending.set()

    def show(self, put: Put) -> None:
        """What /metrics shows of logs and visits."""
        self._logs.show(put, self._clock())
        self.dispatches.show(put, self._clock())

    def stop(self) -> None:
        """Close everything, when nothing reads any more: what was read is on disk."""
        self._logs.close()
        self.store.close()
