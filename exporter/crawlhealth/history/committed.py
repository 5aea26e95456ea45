"""What is on disk, as readers see it: immutable by convention, replaced and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crawlhealth.metrics import MetricSpec
from crawlhealth.model import CanaryRun, Structure
from crawlhealth.outcome import Reason, Source
from crawlhealth.recovery import Streak
from crawlhealth.tally import Tally

SIZES_KEPT = 20
"""How many sizes of served pages are remembered of a canary and route."""

Stratum = tuple[str, str, Source]
"""site, route, source."""
RunKey = tuple[str, str, str]
"""site, canary, route."""
CounterKey = tuple[str, tuple[str, ...]]
"""Name of a metric, its label values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """The latest run of one canary through one route, when it last succeeded, and its last sizes when served.

    `structures` are those of its values that must stay unchanged, by name, as they were first. `streak` says how many
    runs in a row came to the same.
    """

    run: CanaryRun
    last_success: float | None = None
    sizes: tuple[int, ...] = ()
    structures: Mapping[str, Structure] = field(default_factory=dict)
    streak: Streak = field(default_factory=Streak)

    @classmethod
    def after(cls, previous: StoredRun | None, run: CanaryRun) -> StoredRun:
        """What is stored after one more run."""
        last_success = previous.last_success if previous is not None else None
        sizes = previous.sizes if previous is not None else ()
        return cls(
            run=run,
            last_success=run.at if run.success else last_success,
            sizes=(*sizes, run.bytes)[-SIZES_KEPT:] if run.classification.reason is Reason.SERVED else sizes,
            structures={**(previous.structures if previous is not None else {}), **_references(run)},
            streak=(previous.streak if previous is not None else Streak()).after(run),
        )


def _references(run: CanaryRun) -> Mapping[str, Structure]:
    return {value.name: value.reference for value in run.values if value.reference is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """A histogram of seconds: counts by fine bucket (stats.BOUNDS), and their sum."""

    counts: Mapping[int, int] = field(default_factory=dict)
    total: float = 0.0

    def plus(self, other: Timings) -> Timings:
        """Both together."""
        counts = dict(self.counts)
        for index, count in other.counts.items():
            counts[index] = counts.get(index, 0) + count
        return Timings(counts=counts, total=self.total + other.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Everything that /metrics shows of the history: it is on disk, so that no counter steps back after a crash.

    `at` is the last commit (unix seconds, None before the first), `failures` the failed ones since the start, `size`
    the bytes on disk.
    """

    totals: Mapping[Stratum, Tally] = field(default_factory=dict)
    last: Mapping[tuple[str, Source], float] = field(default_factory=dict)
    counters: Mapping[CounterKey, float] = field(default_factory=dict)
    timings: Mapping[CounterKey, Timings] = field(default_factory=dict)
    runs: Mapping[RunKey, StoredRun] = field(default_factory=dict)
    at: float | None = None
    failures: int = 0
    size: int = 0

    def counter(self, spec: MetricSpec) -> Mapping[tuple[str, ...], float]:
        """All series of one counter, by label values."""
        return {labels: value for (name, labels), value in self.counters.items() if name == spec.name}
