"""One fetch of a canary, explained step by step: what `crawlhealth probe` prints."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry

from crawlhealth.canary import Engine
from crawlhealth.checks import Check, ValueSpec
from crawlhealth.collector import Exposition, HealthCollector
from crawlhealth.config import Canary, Config
from crawlhealth.history import FILE_NAME, History
from crawlhealth.history.reading import stored_runs
from crawlhealth.model import CanaryRun, Structure, ValueResult
from crawlhealth.outcome import Source
from crawlhealth.sketch import likeness, short


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One run through one route, the canary as configured, and the lines of /metrics that it would set."""

    canary: Canary
    run: CanaryRun
    samples: tuple[str, ...]


def choose(config: Config, target: str, route: str | None) -> list[Canary]:
    """The canaries that `SITE` or `SITE/CANARY` names, narrowed to one route. Raises LookupError with the remedy."""
    site, _, name = target.partition("/")
    if site not in config.sites:
        raise LookupError(f"no site {site!r} in the configuration; there are: {', '.join(config.sites) or 'none'}")
    of_site = [canary for canary in config.canaries if canary.site == site]
    chosen = [canary for canary in of_site if not name or canary.name == name]
    if not chosen:
        names = ", ".join(canary.name for canary in of_site) or "none"
        raise LookupError(f"no canary {name!r} of site {site!r}; there are: {names}")
    if route is None:
        return chosen
    through = [dataclasses.replace(canary, routes=(route,)) for canary in chosen if route in canary.routes]
    if not through:
        routes = ", ".join(sorted({name for canary in chosen for name in canary.routes}))
        raise LookupError(f"route {route!r} is not one of {target!r}; there are: {routes}")
    return through


def probe(config: Config, canary: Canary) -> Iterator[Explained]:
    """Fetch a canary once over each of its routes. Nothing is scheduled or kept.

    What a running exporter knows of the page's size and structure is taken from its history. Raises HistoryError where
    there is one that cannot be read.
    """
    known = stored_runs(config.data_dir / FILE_NAME)
    sizes = {key: stored.sizes for key, stored in known.items()}
    structures = {key: stored.structures for key, stored in known.items()}
    with Engine.once(config, sizes=sizes, structures=structures) as runner:
        for run in runner.run(canary, canary.routes):
            yield Explained(canary=canary, run=run, samples=tuple(_samples(config, run)))


def _samples(config: Config, run: CanaryRun) -> Iterator[str]:
    """The samples that this run alone would set, as /metrics writes them; of buckets the first it fills."""
    exposition = _exposition_of(config, run)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(HealthCollector(lambda: exposition))
    buckets: set[str] = set()
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            concerns = all(sample.labels.get(name, value) == value for name, value in _labels(run).items())
            if not concerns or "site" not in sample.labels or not (sample.value or family.type == "gauge"):
                continue
            if "le" in sample.labels:
                if sample.name in buckets:
                    continue
                buckets.add(sample.name)
            written = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
            yield f"{sample.name}{{{written}}} {sample.value!r}"


def _exposition_of(config: Config, run: CanaryRun) -> Exposition:
    """What /metrics would be made of if this run were all that ever happened."""
    with tempfile.TemporaryDirectory(prefix="crawlhealth-probe-") as folder:
        history = History.open(Path(folder) / FILE_NAME, config.history, now=run.at)
        try:
            history.add_run(run)
            history.commit(time.time())
            return Exposition(config=config, committed=history.committed(), verdicts=(), now=time.time())
        finally:
            history.close()


def _labels(run: CanaryRun) -> dict[str, str]:
    return {"site": run.site, "canary": run.canary, "route": run.route, "source": Source.CANARY.value}


def as_text(explained: Explained) -> str:
    """The explanation for people."""
    return "\n".join((*_fetch_lines(explained), *_judgement_lines(explained)))


def _fetch_lines(explained: Explained) -> Iterator[str]:
    canary, run = explained.canary, explained.run
    yield f"{run.site}/{run.canary} through {run.route}: {canary.method} {canary.url}"
    yield f"  address     {run.address or '(not connected)'}"
    for target in run.redirects:
        yield f"  redirect    {target}"
    phases = "  ".join(f"{phase.value} {seconds * 1000:.1f} ms" for phase, seconds in run.phases.items())
    yield f"  phases      {phases or '(none reached)'}"
    for host, end in run.not_after.items():
        moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(end))
        yield f"  certificate {host} {'valid until' if end > run.at else 'EXPIRED'} {moment}"


def _judgement_lines(explained: Explained) -> Iterator[str]:
    run = explained.run
    evidence = run.classification.evidence
    if evidence.status is not None:
        yield f"  status      {evidence.status}, {run.bytes} bytes"
    for name, text in evidence.headers:
        yield f"  header      {name}: {text}"
    if evidence.title:
        yield f"  title       {evidence.title}"
    yield f"  outcome     {run.classification.outcome.value} ({run.classification.reason.value})"
    if evidence.marker:
        yield f"  decided by  {evidence.marker} in {evidence.where}"
    if evidence.excerpt:
        yield f"  excerpt     {evidence.excerpt}"
    if evidence.detail:
        yield f"  detail      {evidence.detail}"
    if evidence.vendors:
        yield f"  vendors     {', '.join(evidence.vendors)} (present, proves nothing)"
    specs = {spec.name: spec for spec in explained.canary.expect}
    for value in run.values:
        yield from _value_lines(specs[value.name], value)
    yield "  metrics it would set:"
    for sample in explained.samples:
        yield f"    {sample}"


def _value_lines(spec: ValueSpec, value: ValueResult) -> Iterator[str]:
    where = f"{spec.selector.kind} {spec.selector.expression}"
    seen = "(nothing found)" if value.seen is None else repr(value.seen)
    number = "" if value.number is None else f", number {value.number:g}"
    yield f"  value       {value.name}: {seen}{number}, {value.count} matches of {where}"
    if value.structure is not None:
        yield f"    structure {short(value.structure)}, {_likeness(value.structure, value.reference)}"
    failed = {failure.check: failure for failure in value.failures}
    for check in spec.checks:
        failure = failed.pop(check.name, None)
        if failure is None:
            yield f"    good      {_written(check)}"
        else:
            yield f"    WRONG     expected {failure.expected}, seen {failure.seen}"
    for failure in failed.values():
        yield f"    WRONG     expected {failure.expected}, seen {failure.seen}"


def _likeness(structure: str, reference: Structure | None) -> str:
    if reference is None:
        return "nothing to compare it with yet"
    if reference.sketch == structure:
        return "as it was first"
    moment = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(reference.at))
    return f"{likeness(structure, reference.sketch):.0%} of {short(reference.sketch)}, which was first, {moment}"


def _written(check: Check) -> str:
    if isinstance(check.argument, Mapping):
        bounds = (f"{str(name).replace('_', ' ')} {bound}" for name, bound in check.argument.items())
        return f"{check.name}: {', '.join(bounds)}"
    return f"{check.name}: {check.argument!r}"


def as_json(explained: Explained) -> dict[str, object]:
    """The explanation with the words of the wire formats."""
    run = explained.run
    return {
        "site": run.site,
        "canary": run.canary,
        "route": run.route,
        "url": explained.canary.url,
        "at": run.at,
        "outcome": run.classification.outcome.value,
        "reason": run.classification.reason.value,
        "success": run.success,
        "decoy_suspect": run.decoy_suspect,
        "address": run.address,
        "redirects": list(run.redirects),
        "seconds": run.seconds,
        "phases": {phase.value: seconds for phase, seconds in run.phases.items()},
        "bytes": run.bytes,
        "tls_not_after": dict(run.not_after),
        "evidence": dataclasses.asdict(run.classification.evidence),
        "values": [dataclasses.asdict(value) for value in run.values],
        "metrics": list(explained.samples),
    }
