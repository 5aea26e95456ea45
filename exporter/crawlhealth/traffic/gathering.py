"""Many observations to their sums: by site, route, outcome, reason and slot of time. The hot path of the push API."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from crawlhealth import stats
from crawlhealth.classify.evidence import address
from crawlhealth.history import Batch
from crawlhealth.metrics import REASONS
from crawlhealth.model import Classification, Refusal
from crawlhealth.outcome import REFUSED, Outcome, Reason, Source
from crawlhealth.tally import Tally
from crawlhealth.traffic import facts
from crawlhealth.traffic.body import Text, TooLarge
from crawlhealth.traffic.norms import Norms
from crawlhealth.traffic.observations import Item, decode
from crawlhealth.traffic.report import Report
from crawlhealth.traffic.terms import Refused, Terms

MAX_ITEMS: Final = 100_000

_Written = tuple[str | None, str, Outcome | None, Reason | int | None, float]
"""What an item says: site, route, outcome, reason (else the status that names it), number of its slot."""
_Key = tuple[str, str, Outcome, Reason, float]
"""What it means: the same, with nothing left open."""


@dataclass(slots=True)
class _Sums:
    """The sums of items that mean the same."""

    served: bool
    count: int = 0
    bytes: int = 0
    retries: int = 0
    credits: float = 0.0
    valid: int = 0
    invalid: int = 0
    extracted: int = 0
    failed: int = 0
    seconds: float = 0.0
    last: float = 0.0
    latency: dict[int, int] = field(default_factory=dict)

    def add(self, item: Item, at: float) -> None:
        """Count one item."""
        count = item.count
        self.count += count
        self.bytes += item.bytes
        if at > self.last:  # noqa: PLR1730 - max() costs four times as much, for every single item
            self.last = at
        if item.retries:
            self.retries += item.retries
        if item.credits:
            self.credits += item.credits
        if item.records_valid is not None:
            self.valid += item.records_valid
        if item.records_invalid:
            self.invalid += item.records_invalid
        if not self.served:
            return
        seconds = item.seconds
        if seconds is not None:
            index = bisect_left(stats.BOUNDS, seconds)
            self.latency[index] = self.latency.get(index, 0) + count
            self.seconds += seconds * count
        if item.records_valid is not None or item.records_invalid or item.fields_missing is not None:
            if item.extracted:
                self.extracted += count
            else:
                self.failed += count

    def put_into(self, tally: Tally, outcome: Outcome) -> None:
        """Add these sums to a tally."""
        setattr(tally, outcome.value, tally.of(outcome) + self.count)
        tally.bytes += self.bytes
        tally.retries += self.retries
        tally.credits += self.credits
        tally.records_valid += self.valid
        tally.records_invalid += self.invalid
        tally.extractions_ok += self.extracted
        tally.extractions_failed += self.failed
        tally.latency_sum += self.seconds
        for index, count in self.latency.items():
            tally.latency[index] = tally.latency.get(index, 0) + count


class Gathering:
    """What one push has brought so far. `take` it all, then `batch` it, once."""

    def __init__(self, terms: Terms, norms: Norms) -> None:
        self.report = Report()
        self.forbidden = 0
        self._terms = terms
        self._norms = norms
        self._written: dict[_Written, _Sums] = {}
        self._sums: dict[_Key, _Sums] = {}
        self._refusals: dict[tuple[str, str, Reason], Refusal] = {}
        self._sizes: list[tuple[str, str, int, int]] = []

    def take(self, texts: Sequence[Text]) -> None:
        """Count items, and note those that are not taken in the report. Raises TooLarge beyond MAX_ITEMS."""
        report, written = self.report, self._written
        oldest, newest, width = self._terms.oldest, self._terms.newest, self._terms.width
        if report.items + len(texts) > MAX_ITEMS:
            raise TooLarge(f"more than {MAX_ITEMS} items: send smaller batches")
        for text in texts:
            try:
                item = decode(text)
                at = item.at
                if not isinstance(at, float):
                    at = at.timestamp()
                if not oldest <= at <= newest:
                    raise ValueError(self._terms.untimely(at))
                key = (item.site, item.route, item.outcome, item.reason or item.status, at // width)
                sums = written.get(key)
                if sums is None:
                    sums = self._sums_of(item, at, key)
            except (ValueError, RecursionError) as error:
                self.forbidden += isinstance(error, Refused)
                report.reject(str(error))
                continue
            report.accepted += 1
            sums.add(item, at)

    def batch(self) -> Batch:
        """All of it for the history; what was learnt about sizes goes to the norms."""
        batch = Batch()
        traffic = Source.TRAFFIC
        for (site, route, outcome, reason, slot), sums in self._sums.items():
            key = (site, route, traffic, slot * self._terms.width)
            sums.put_into(batch.slots.setdefault(key, Tally()), outcome)
            seen = (site, traffic)
            batch.last[seen] = max(sums.last, batch.last.get(seen, sums.last))
            if reason is not Reason.SERVED:
                batch.increase((REASONS.name, (site, traffic.value, reason.value)), sums.count)
        for refusal in self._refusals.values():
            kind = (refusal.site, refusal.route, traffic, refusal.reason.value)
            batch.refusals[kind] = (refusal,)
        for site, page_type, size, count in self._sizes:
            self._norms.add(site, page_type, size, count)
        return batch

    def _sums_of(self, item: Item, at: float, key: _Written) -> _Sums:
        """Where to count an item that says something new. Raises ValueError where it cannot be taken."""
        terms = self._terms
        site = terms.site(item.site, item.url)
        terms.check_route(item.route)
        judged, page = None, facts.body(item)
        if item.outcome is None:
            usual = self._norms.usual(site.name, item.page_type)
            judged = facts.classified(item, site, page, usual_bytes=usual, blocks=terms.config.blocks)
            outcome, reason = judged.outcome, judged.reason
        else:
            outcome, reason = item.outcome, facts.named(item, item.outcome)
        meant = (site.name, item.route, outcome, reason, key[4])
        sums = self._sums.get(meant)
        if sums is None:
            sums = self._sums[meant] = _Sums(outcome is Outcome.OK)
        if item.site is not None and item.outcome is not None:
            self._written[key] = sums
        if outcome is Outcome.OK and item.extracted is not False:
            self._sizes.append((site.name, item.page_type, item.bytes // item.count or len(page), item.count))
        if judged is not None and outcome in REFUSED:
            self._keep(item, at, site.name, judged)
        return sums

    def _keep(self, item: Item, at: float, site: str, judged: Classification) -> None:
        """Keep what proves a refusal: the latest of its kind in this push."""
        kind = (site, item.route, judged.reason)
        before = self._refusals.get(kind)
        if before is None or at >= before.at:
            self._refusals[kind] = Refusal(
                site=site,
                route=item.route,
                source=Source.TRAFFIC,
                at=at,
                outcome=judged.outcome,
                reason=judged.reason,
                evidence=judged.evidence,
                url=address(item.url or ""),
            )
