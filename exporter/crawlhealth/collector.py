"""Collector: what is committed and concluded, as metric families, without state of its own.

Sites, canaries, routes and values that are not in the configuration are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from urllib.parse import urlsplit

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from crawlhealth import metrics
from crawlhealth.config import Canary, Config
from crawlhealth.history import Committed, StoredRun, Stratum
from crawlhealth.hosts import HostIndex
from crawlhealth.model import CanaryRun
from crawlhealth.outcome import Outcome, Source
from crawlhealth.series import Families, Series
from crawlhealth.tally import Tally
from crawlhealth.verdict import Accepted, Band, Rates, Signal, Verdict

_OUTCOMES = tuple(outcome.value for outcome in Outcome)
_BANDS = tuple(band.value for band in Band)
_RATIO_NAMES = tuple(
    signal.value
    for signal in (Signal.HARD_BLOCK, Signal.CHALLENGE, Signal.SOFT_BLOCK, Signal.REFUSED, Signal.EXTRACTION)
)
_SHARE_NAMES = _RATIO_NAMES[:-1]
_COSTS = (
    (metrics.REQUESTS_PER_RECORD, metrics.RETRIES_PER_RECORD, metrics.BYTES_PER_RECORD, metrics.CREDITS_PER_RECORD),
    (
        metrics.REQUESTS_PER_RECORD_BASELINE,
        metrics.RETRIES_PER_RECORD_BASELINE,
        metrics.BYTES_PER_RECORD_BASELINE,
        metrics.CREDITS_PER_RECORD_BASELINE,
    ),
)
"""What a valid record costs now, and normally."""
LAG_FIRST = 0.001
"""The first published bound of the schedule lag, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposition:
    """All that is shown at one moment: the configuration, what is on disk, the verdicts, and the time.

    `awaited` says since when each pushed canary (site, name) could have arrived here. `accepted` is what people
    accepted as normal and is in force, by site. `certificates` are ends of those of the user's own domains, by host.
    """

    config: Config
    committed: Committed
    verdicts: tuple[Verdict, ...]
    now: float
    awaited: Mapping[tuple[str, str], float] = field(default_factory=dict)
    accepted: Mapping[str, Accepted] = field(default_factory=dict)
    certificates: Mapping[str, float] = field(default_factory=dict)

    def stored_runs(self) -> Iterator[tuple[Canary, StoredRun]]:
        """The latest run of every configured canary through each of its routes, where there is one."""
        runs = self.committed.runs
        for canary in self.config.canaries:
            for route in canary.routes:
                stored = runs.get((canary.site, canary.name, route))
                if stored is not None:
                    yield canary, stored

    def late(self, canary: Canary, route: str) -> bool | None:
        """Whether nothing of a pushed canary has arrived in its time; None for one that is fetched here."""
        since = self.awaited.get((canary.site, canary.name))
        if canary.fetch != "push" or since is None:
            return None
        stored = self.committed.runs.get((canary.site, canary.name, route))
        seen = since if stored is None else max(since, stored.run.at)
        return self.now - seen > canary.late_after.total_seconds()

    def runs(self) -> Iterator[CanaryRun]:
        """The latest run of every configured canary through each of its routes, where there is one."""
        return (stored.run for _, stored in self.stored_runs())


class HealthCollector(Collector):
    """Everything that is known about sites and canaries, and about the history itself."""

    def __init__(self, snapshot: Callable[[], Exposition]) -> None:
        self._snapshot = snapshot

    def describe(self) -> Iterable[Metric]:
        """Nothing: names are fixed, and a scrape is the only reader."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """All families that have a series now, in the order of the contract."""
        families = Families()
        show(self._snapshot(), families)
        return families.all()


def show(exposition: Exposition, shown: Series) -> None:
    """Bring everything into series; with `metrics: {detail: score}` without what is only counted or measured."""
    full = exposition.config.metrics.detail == "full"
    if full:
        _requests(shown, exposition)
    for verdict in exposition.verdicts:
        if verdict.site in exposition.config.sites:
            _verdict(shown, verdict)
            _conclusions(shown, verdict)
            if full:
                _measured(shown, verdict, exposition)
    for site, accepted in exposition.accepted.items():
        if site in exposition.config.sites:
            shown.put(metrics.BASELINE_ACCEPTED, (site,), accepted.at)
    _canaries(shown, exposition)
    _history(shown, exposition.committed)


def _requests(shown: Series, exposition: Exposition) -> None:
    """Counters of requests, records and latency, from the totals of configured sites and routes."""
    config, committed = exposition.config, exposition.committed
    strata: dict[str, set[tuple[str, Source]]] = {}
    for site, route, source in chain(committed.totals, _configured(config)):
        if site in config.sites and route in config.routes:
            strata.setdefault(site, set()).add((route, source))
    for site in sorted(strata):
        by_source: dict[Source, Tally] = {}
        for route, source in sorted(strata[site]):
            tally = committed.totals.get((site, route, source), Tally())
            by_source.setdefault(source, Tally()).merge(tally)
            _stratum(shown, (site, route, source.value), tally)
        for source, tally in by_source.items():
            _source(shown, (site, source.value), tally, last=committed.last.get((site, source)))
        valid = sum(tally.records_valid for tally in by_source.values())
        invalid = sum(tally.records_invalid for tally in by_source.values())
        shown.spread(metrics.RECORDS, (site,), ("valid", "invalid"), (valid, invalid))
    for labels_, value in committed.counter(metrics.REASONS).items():
        if labels_[0] in config.sites:
            shown.put(metrics.REASONS, labels_, value)


def _stratum(shown: Series, labels: tuple[str, str, str], tally: Tally) -> None:
    """Counters of one site, route and source."""
    outcomes = (tally.ok, tally.hard_block, tally.challenge, tally.soft_block, tally.error)
    shown.spread(metrics.REQUESTS, labels, _OUTCOMES, outcomes)
    shown.put(metrics.BYTES, labels, tally.bytes or None)
    shown.put(metrics.RETRIES, labels, tally.retries or None)
    shown.put(metrics.CREDITS, labels, tally.credits or None)


def _source(shown: Series, labels: tuple[str, str], tally: Tally, *, last: float | None) -> None:
    """Counters of one site and source, all routes together."""
    extractions = (tally.extractions_ok, tally.extractions_failed)
    shown.spread(metrics.EXTRACTIONS, labels, ("ok", "failed"), extractions)
    shown.histogram(metrics.DURATION, labels, tally.latency, tally.latency_sum, first=metrics.HISTOGRAM_FIRST)
    shown.put(metrics.LAST_OBSERVATION, labels, last)


def _configured(config: Config) -> set[Stratum]:
    """Where requests are expected: canaries where there are some, traffic on every route of a site."""
    strata: set[Stratum] = {
        (site.name, route, Source.TRAFFIC) for site in config.sites.values() for route in site.routes
    }
    strata.update((canary.site, route, Source.CANARY) for canary in config.canaries for route in canary.routes)
    return strata


def _verdict(shown: Series, verdict: Verdict) -> None:
    """The score and the band of one verdict: nothing that is unknown."""
    site, band = (verdict.site,), verdict.band
    shown.put(metrics.SCORE, site, verdict.score)
    shown.put(metrics.SCORE_RAW, site, verdict.score_raw)
    shown.put(metrics.PARSER_SCORE, site, verdict.parser_score)
    shown.spread(metrics.BAND, site, _BANDS, [float(one is band) for one in Band])
    shown.put(metrics.BAND_HELD, site, float(verdict.state.held))
    shown.put(metrics.BAND_SINCE, site, verdict.state.since)


def _measured(shown: Series, verdict: Verdict, exposition: Exposition) -> None:
    """What one verdict is made of: nothing that is unknown."""
    site = (verdict.site,)
    window, baseline = verdict.window, verdict.baseline
    if window is not None:
        shown.spread(metrics.SIGNAL, site, _RATIO_NAMES, _ratios(window.rates))
        if verdict.lower is not None:
            lower = verdict.lower
            bounds = (lower.hard_block, lower.challenge, lower.soft_block, lower.refused)
            shown.spread(metrics.SIGNAL_LOWER, site, _SHARE_NAMES, bounds)
        if verdict.drift:
            shown.spread(
                metrics.DRIFT, site, tuple([signal.value for signal in verdict.drift]), list(verdict.drift.values())
            )
        shown.put(metrics.LATENCY, site, window.rates.latency_p95)
        shown.put(metrics.WINDOW_REQUESTS, site, window.requests)
        shown.put(metrics.WINDOW_SECONDS, site, window.seconds)
    if baseline is not None:
        normal = verdict.normal or baseline.rates
        shown.spread(metrics.SIGNAL_BASELINE, site, _RATIO_NAMES, _ratios(normal))
        shown.put(metrics.LATENCY_BASELINE, site, normal.latency_p95)
        shown.put(metrics.BASELINE_SECONDS, site, baseline.hours * 3600.0)
        shown.put(metrics.BASELINE_AGE, site, exposition.now - baseline.newest)
    penalties = verdict.penalties
    shown.spread(metrics.PENALTY, site, tuple([p.signal.value for p in penalties]), [p.points for p in penalties])
    for spec, ratios in ((metrics.ERROR_RATIO, verdict.route_error), (metrics.ROUTE_REFUSED, verdict.route_refused)):
        known = [route for route in ratios if route in exposition.config.routes]
        shown.spread(spec, site, tuple(known), [ratios[route] for route in known])
    costs = (window.cost if window is not None else None, baseline.cost if baseline is not None else None)
    for specs, cost in zip(_COSTS, costs, strict=True):
        if cost is not None:
            for spec, value in zip(specs, (cost.requests, cost.retries, cost.bytes, cost.credits), strict=True):
                shown.put(spec, site, value)


def _ratios(rates: Rates) -> tuple[float | None, ...]:
    return (rates.hard_block, rates.challenge, rates.soft_block, rates.refused, rates.extraction)


def _conclusions(shown: Series, verdict: Verdict) -> None:
    """Gauges of what follows from one verdict."""
    site, advice, override = (verdict.site,), verdict.advice, verdict.override
    shown.put(metrics.DIAGNOSIS, (*site, verdict.diagnosis.value), 1.0)
    shown.put(metrics.ADVICE_CONCURRENCY, site, advice.concurrency_ratio)
    shown.put(metrics.ADVICE_REVISIT, site, advice.revisit_multiplier)
    shown.put(metrics.ADVICE_COST, site, advice.cost_multiplier)
    shown.put(metrics.ADVICE_PAUSED, site, float(advice.paused))
    if override is not None:
        shown.put(metrics.OVERRIDE_UNTIL, (*site, override.kind.value), override.until)
    shown.put(metrics.MAINTENANCE, site, 1.0 if verdict.maintenance else None)


def _canaries(shown: Series, exposition: Exposition) -> None:
    """Gauges of the latest runs, and the counters of all runs, of configured canaries."""
    config, committed = exposition.config, exposition.committed
    index = HostIndex({name: site.hosts for name, site in config.sites.items()})
    ends: dict[tuple[str, str], float] = {}
    for canary, stored in exposition.stored_runs():
        _run(shown, canary, stored)
        for host, end in stored.run.not_after.items():
            if host == urlsplit(canary.url).hostname or index.site(host) == canary.site:
                ends[canary.site, host] = min(end, ends.get((canary.site, host), end))
    seen = {host for _, host in ends}
    ends.update(((host, host), end) for host, end in exposition.certificates.items() if host not in seen)
    for labels, end in ends.items():
        shown.put(metrics.TLS_NOT_AFTER, labels, end)
    known = {(canary.site, canary.name, route) for canary in config.canaries for route in canary.routes}
    for series, value in committed.counter(metrics.CANARY_RUNS).items():
        if series[:3] in known:
            shown.put(metrics.CANARY_RUNS, series, value)
    for spec in (metrics.TRANSITIONS, metrics.INCIDENTS):
        for series, value in committed.counter(spec).items():
            if series[0] in config.sites:
                shown.put(spec, series, value)
    _late(shown, exposition)
    shown.put(metrics.SKIPPED, (), committed.counter(metrics.SKIPPED).get(()))
    lag = committed.timings.get((metrics.SCHEDULE_LAG.name, ()))
    if lag is not None:
        shown.histogram(metrics.SCHEDULE_LAG, (), lag.counts, lag.total, first=LAG_FIRST)


def _late(shown: Series, exposition: Exposition) -> None:
    """Whether each pushed canary has arrived lately, by what is on disk; one that is new has its time to come."""
    for canary in exposition.config.canaries:
        for route in canary.routes:
            late = exposition.late(canary, route)
            if late is not None:
                shown.put(metrics.CANARY_LATE, (canary.site, canary.name, route), float(late))


def _run(shown: Series, canary: Canary, stored: StoredRun) -> None:
    """Gauges of the latest run of one canary through one route."""
    run = stored.run
    labels = (run.site, run.canary, run.route)
    shown.put(metrics.CANARY_SUCCESS, labels, float(run.success))
    shown.put(metrics.CANARY_DECOY, labels, float(run.decoy_suspect))
    shown.put(metrics.CANARY_LAST_RUN, labels, run.at)
    shown.put(metrics.CANARY_LAST_SUCCESS, labels, stored.last_success)
    shown.put(metrics.CANARY_INTERVAL, labels, canary.every.total_seconds())
    for phase, seconds in run.phases.items():
        shown.put(metrics.CANARY_DURATION, (*labels, phase.value), seconds)
    if not run.ok:
        return
    expected = {value.name for value in canary.expect}
    for value in run.values:
        if value.name in expected:
            shown.put(metrics.CANARY_VALUE_OK, (*labels, value.name), float(value.ok))
            shown.put(metrics.CANARY_VALUE, (*labels, value.name), value.number)


def _history(shown: Series, committed: Committed) -> None:
    shown.put(metrics.HISTORY_FAILURES, (), committed.failures)
    shown.put(metrics.HISTORY_COMMIT, (), committed.at)
    shown.put(metrics.HISTORY_SIZE, (), committed.size)
    for spec in (metrics.PUSH_BATCHES, metrics.PUSH_ITEMS):
        for labels, value in committed.counter(spec).items():
            shown.put(spec, labels, value)
