"""The counters of a crawler as a Prometheus registry, for fleets that are scraped directly."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from operator import index
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import REGISTRY, Collector, CollectorRegistry

from crawlhealth import metrics, stats
from crawlhealth.model import Observation
from crawlhealth.outcome import Outcome, Reason, Source
from crawlhealth.tally import Tally

log = logging.getLogger(__name__)

TRAFFIC = Source.TRAFFIC.value
_MOST: Final = 10**12
_MOST_SECONDS: Final = 86_400.0


class RegistryReporter(Collector):
    """Counts what came of requests under the exporter's own metric names, in a registry that the crawler exposes.

    `report` takes what Reporter.report takes, but no facts: it needs an outcome. A crawler pushes or is scraped,
    never both. At most `max_strata` pairs of site and route are kept apart; reports beyond, and wrong ones, are only
    counted in `refused`. Registers itself in `registry`, by default the one of the process.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY, *, max_strata: int = 1_000) -> None:
        self.registry = registry
        self.refused = 0
        self._max_strata = max_strata
        self._lock = threading.Lock()
        self._tallies: dict[tuple[str, str], Tally] = {}
        self._reasons: dict[tuple[str, str], int] = {}
        registry.register(self)

    def report(
        self,
        site: str,
        outcome: Outcome | str,
        *,
        reason: Reason | str | None = None,
        route: str = "direct",
        seconds: float | None = None,
        bytes: int = 0,
        retries: int = 0,
        credits: float = 0.0,
        records_valid: int | None = None,
        records_invalid: int = 0,
        fields_missing: Sequence[str] | None = None,
        count: int = 1,
    ) -> None:
        """Count one request, or `count` equal ones. Raises nothing."""
        try:
            _check((count - 1, bytes, retries, records_valid or 0, records_invalid), credits, seconds)
            observation = Observation(
                site=site,
                route=route,
                source=Source.TRAFFIC,
                outcome=Outcome(outcome),
                reason=Reason.CUSTOM if reason is None else Reason(reason),
                at=0.0,
                count=count,
                seconds=seconds,
                bytes=bytes,
                retries=retries,
                credits=credits,
                records_valid=records_valid or 0,
                records_invalid=records_invalid,
                extracted=_extracted(records_valid, records_invalid, fields_missing),
            )
            with self._lock:
                self._add(observation, told=reason is not None)
        except Exception:
            with self._lock:
                self.refused += 1
            log.debug("a report was not taken", exc_info=True)

    def _add(self, observation: Observation, *, told: bool) -> None:
        stratum = (observation.site, observation.route)
        tally = self._tallies.get(stratum)
        if tally is None:
            if len(self._tallies) >= self._max_strata:
                self.refused += observation.count
                return
            "".join(stratum).encode()  # what is no text would break every scrape
            tally = self._tallies.setdefault(stratum, Tally())
        tally.add(observation)
        if told and observation.reason is not Reason.SERVED:
            key = (observation.site, observation.reason.value)
            self._reasons[key] = self._reasons.get(key, 0) + observation.count

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry needs no metric before there is a report."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """The counters now."""
        with self._lock:
            tallies = {stratum: _copy(tally) for stratum, tally in sorted(self._tallies.items())}
            reasons = sorted(self._reasons.items())
        yield from _by_route(tallies)
        yield from _by_site(tallies)
        counted = metrics.REASONS.counter()
        for (site, reason), number in reasons:
            counted.add_metric([site, TRAFFIC, reason], number)
        yield counted


def _check(whole: Iterable[int], credits: float, seconds: float | None) -> None:
    """Raises ValueError, TypeError for numbers that no counter may take: what is counted stays for good."""
    for number in whole:
        if not 0 <= index(number) <= _MOST:
            raise ValueError(f"out of range: {number}")
    if not 0 <= credits <= _MOST or not 0 <= (seconds or 0) <= _MOST_SECONDS:
        raise ValueError(f"out of range: {credits}, {seconds}")


def _extracted(valid: int | None, invalid: int, missing: Sequence[str] | None) -> bool | None:
    """Whether extraction worked, as the push API reads it; None when nothing was expected, or said."""
    if missing:
        return False
    if valid is not None or invalid:
        return bool(valid)
    return None if missing is None else True


def _copy(tally: Tally) -> Tally:
    copy = Tally()
    copy.merge(tally)
    return copy


def _by_route(tallies: dict[tuple[str, str], Tally]) -> Iterable[Metric]:
    requests = metrics.REQUESTS.counter()
    for (site, route), tally in tallies.items():
        for outcome in Outcome:
            requests.add_metric([site, route, TRAFFIC, outcome.value], tally.of(outcome))
    yield requests
    for spec, name in ((metrics.BYTES, "bytes"), (metrics.RETRIES, "retries"), (metrics.CREDITS, "credits")):
        counter = spec.counter()
        for (site, route), tally in tallies.items():
            counter.add_metric([site, route, TRAFFIC], getattr(tally, name))
        yield counter


def _by_site(tallies: dict[tuple[str, str], Tally]) -> Iterable[Metric]:
    sites: dict[str, Tally] = {}
    for (site, _), tally in tallies.items():
        sites.setdefault(site, Tally()).merge(tally)
    duration, extractions, records = (
        metrics.DURATION.histogram(),
        metrics.EXTRACTIONS.counter(),
        metrics.RECORDS.counter(),
    )
    for site, tally in sites.items():
        buckets = list(stats.published(tally.latency, metrics.HISTOGRAM_FIRST, metrics.HISTOGRAM_LAST))
        duration.add_metric([site, TRAFFIC], buckets, tally.latency_sum)
        extractions.add_metric([site, TRAFFIC, "ok"], tally.extractions_ok)
        extractions.add_metric([site, TRAFFIC, "failed"], tally.extractions_failed)
        records.add_metric([site, "valid"], tally.records_valid)
        records.add_metric([site, "invalid"], tally.records_invalid)
    yield from (duration, extractions, records)
