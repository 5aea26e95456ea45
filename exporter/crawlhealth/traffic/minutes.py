"""Windows that crawlers push: sums they have made themselves, of a minute at most, added to what is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crawlhealth.history import Batch
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally
from crawlhealth.traffic.body import Text, TooLarge
from crawlhealth.traffic.gathering import MAX_ITEMS
from crawlhealth.traffic.norms import Norms
from crawlhealth.traffic.report import Report
from crawlhealth.traffic.terms import Refused, Terms
from crawlhealth.traffic.windows import read_window

LONGEST: Final = 60.0
"""Seconds of a pushed window; longer ones are for import."""


class WindowGathering:
    """What one push of windows has brought so far. `take` it all, then `batch` it, once."""

    def __init__(self, terms: Terms, _norms: Norms) -> None:
        self.report = Report()
        self.forbidden = 0
        self._terms = terms
        self._batch = Batch()

    def take(self, texts: Sequence[Text]) -> None:
        """Count windows, and note those that are not taken in the report. Raises TooLarge beyond MAX_ITEMS."""
        if self.report.items + len(texts) > MAX_ITEMS:
            raise TooLarge(f"more than {MAX_ITEMS} items: send smaller batches")
        for text in texts:
            try:
                slot = self._window(bytes(text))
            except (ValueError, RecursionError) as error:
                self.forbidden += isinstance(error, Refused)
                self.report.reject(str(error))
                continue
            self.report.accepted += 1
            self._add(slot)

    def batch(self) -> Batch:
        """All of it for the history."""
        return self._batch

    def _window(self, text: bytes) -> Slot:
        terms = self._terms
        slot = read_window(text, config=terms.config, now=terms.now, quantiles=False)
        terms.site(slot.site, None)
        if slot.source is not Source.TRAFFIC:
            raise ValueError("source must be traffic: canaries are counted where they run")
        if slot.seconds > max(LONGEST, terms.width):
            raise ValueError(f"window_seconds is {slot.seconds:g}: push minutes, and import what is longer")
        if slot.start < terms.oldest:
            raise ValueError("start is longer ago than push.max_age")
        return slot

    def _add(self, slot: Slot) -> None:
        start = slot.start // self._terms.width * self._terms.width
        key = (slot.site, slot.route, slot.source, start)
        self._batch.slots.setdefault(key, Tally()).merge(slot.tally)
        seen = (slot.site, slot.source)
        last = min(slot.start + slot.seconds, self._terms.now)
        self._batch.last[seen] = max(last, self._batch.last.get(seen, last))
