"""Windows and verdicts as OpenMetrics with times, for `promtool tsdb create-blocks-from openmetrics`.

Counters begin at 0 with the first window and have a sample at the end of each, gauges one for each recorded verdict.
Of visits there is what the rules would have recorded, too, for a bot's volume is judged by that: see `volumerecords`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from crawlhealth import metrics, stats
from crawlhealth.history.visits import HOUR, HourKey
from crawlhealth.metrics import MetricSpec
from crawlhealth.outcome import Outcome
from crawlhealth.tally import Slot, Tally
from crawlhealth.traffic import volumerecords
from crawlhealth.verdict import Band, Verdict

Labels = tuple[str, ...]
_VERIFIED: Final = "verified"
"""The identity of visits whose volume is judged: `searchbots.model.Identity.VERIFIED`."""
Amounts = Callable[[Slot], Iterable[tuple[Labels, float]]]
"""What a window adds to which series of a counter, by label values."""


def _requests(slot: Slot) -> Iterator[tuple[Labels, float]]:
    for outcome in Outcome:
        yield (slot.site, slot.route, slot.source.value, outcome.value), slot.tally.of(outcome)


def _stratum(name: str) -> Amounts:
    def amounts(slot: Slot) -> Iterator[tuple[Labels, float]]:
        if value := getattr(slot.tally, name):
            yield (slot.site, slot.route, slot.source.value), value

    return amounts


def _extractions(slot: Slot) -> Iterator[tuple[Labels, float]]:
    yield (slot.site, slot.source.value, "ok"), slot.tally.extractions_ok
    yield (slot.site, slot.source.value, "failed"), slot.tally.extractions_failed


def _records(slot: Slot) -> Iterator[tuple[Labels, float]]:
    yield (slot.site, "valid"), slot.tally.records_valid
    yield (slot.site, "invalid"), slot.tally.records_invalid


_COUNTERS: Final[tuple[tuple[MetricSpec, Amounts], ...]] = (
    (metrics.REQUESTS, _requests),
    (metrics.BYTES, _stratum("bytes")),
    (metrics.RETRIES, _stratum("retries")),
    (metrics.CREDITS, _stratum("credits")),
    (metrics.EXTRACTIONS, _extractions),
    (metrics.RECORDS, _records),
)
_GAUGES: Final[tuple[tuple[MetricSpec, Callable[[Verdict], Iterable[tuple[Labels, float | None]]]], ...]] = (
    (metrics.SCORE, lambda verdict: [((verdict.site,), verdict.score)]),
    (metrics.SCORE_RAW, lambda verdict: [((verdict.site,), verdict.score_raw)]),
    (metrics.PARSER_SCORE, lambda verdict: [((verdict.site,), verdict.parser_score)]),
    (metrics.BAND, lambda verdict: [((verdict.site, band.value), float(band is verdict.band)) for band in Band]),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """The whole text. `windows` and `verdicts` begin anew at every call: each family reads them once.

    `labels` are put on every series, as a scrape would have: `{"job": "crawlhealth"}`. What rules record has them
    without `job` and `instance`: the rest is taken for group labels. Nothing is later than `end` (unix seconds).
    """

    windows: Callable[[], Iterable[tuple[str, list[Slot]]]]
    verdicts: Callable[[], Iterable[tuple[str, list[Verdict]]]]
    labels: Mapping[str, str]
    end: float
    visits: Callable[[], Iterable[tuple[HourKey, int]]] = tuple

    def lines(self) -> Iterator[str]:
        """The lines of the text; the whole history of one site is in memory at a time."""
        for spec, amounts in _COUNTERS:
            yield from _head(spec)
            for _, slots in self.windows():
                yield from self._counters(spec, amounts, slots)
        yield from _head(metrics.DURATION)
        for _, slots in self.windows():
            yield from self._durations(slots)
        for spec, values in _GAUGES:
            yield from _head(spec)
            for _, verdicts in self.verdicts():
                yield from self._gauges(spec, values, verdicts)
        yield from self._visits()
        yield "# EOF\n"

    def _visits(self) -> Iterator[str]:
        """Visits of search bots: of each series a sample at the beginning of the first hour, and at the end of each."""
        spec = metrics.SEARCHBOT_VISITS
        series: dict[Labels, list[tuple[int, int]]] = defaultdict(list)
        for (hour, *labels), visits in self.visits():
            series[tuple(map(str, labels))].append((hour, visits))
        if series:
            yield from _head(spec)
        for labels_, hours in series.items():
            written = self._written(spec, labels_)
            total, last = 0, None
            for hour, visits in sorted(hours):
                if last is None or hour > last:
                    yield f"{spec.name}{{{written}}} {float(total)!r} {hour}\n"
                total, last = total + visits, min(hour + HOUR, max(int(self.end), hour))
                yield f"{spec.name}{{{written}}} {float(total)!r} {last}\n"
        yield from self._visits_recorded()

    def _visits_recorded(self) -> Iterator[str]:
        """What the rules record of the visits of verified bots."""
        known: set[int] = set()
        volumes: dict[Labels, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for (hour, tenant, domain, bot, identity, _), visits in self.visits():
            known.add(hour)
            if identity == _VERIFIED:
                volumes[tenant, domain, bot][hour] += visits
        group = {name: value for name, value in self.labels.items() if name not in ("job", "instance")}
        for record in volumerecords.RECORDS if volumes else ():
            name = f"{metrics.VISITS_RECORDED}:{record}"
            yield f"# TYPE {name} gauge\n"
            for labels, hours in volumes.items():
                written = _pairs({**group, **dict(zip(("tenant", "domain", "bot"), labels, strict=True))})
                for at, value in volumerecords.recorded(hours, known, record, end=int(self.end)):
                    yield f"{name}{{{written}}} {value!r} {at}\n"

    def _counters(self, spec: MetricSpec, amounts: Amounts, slots: Iterable[Slot]) -> Iterator[str]:
        series: dict[Labels, list[tuple[Slot, float]]] = defaultdict(list)
        for slot in slots:
            for labels, amount in amounts(slot):
                series[labels].append((slot, amount))
        for labels, parts in series.items():
            written = self._written(spec, labels)
            total: float = 0
            amount_at = {id(slot): amount for slot, amount in parts}
            for at, its in _steps([slot for slot, _ in parts]):
                total += sum(amount_at[id(slot)] for slot in its)
                yield f"{spec.name}{{{written}}} {total!r} {at:.0f}\n"

    def _durations(self, slots: Iterable[Slot]) -> Iterator[str]:
        spec = metrics.DURATION
        series: dict[Labels, list[Slot]] = defaultdict(list)
        for slot in slots:
            if slot.tally.latency:
                series[slot.site, slot.source.value].append(slot)
        for labels, parts in series.items():
            written = self._written(spec, labels)
            so_far = Tally()
            for at, its in _steps(parts):
                for slot in its:
                    so_far.merge(slot.tally)
                for bound, count in stats.published(so_far.latency, metrics.HISTOGRAM_FIRST, metrics.HISTOGRAM_LAST):
                    yield f'{spec.name}_bucket{{{written},le="{bound}"}} {count} {at:.0f}\n'
                yield f"{spec.name}_count{{{written}}} {sum(so_far.latency.values())} {at:.0f}\n"
                yield f"{spec.name}_sum{{{written}}} {so_far.latency_sum!r} {at:.0f}\n"

    def _gauges(
        self,
        spec: MetricSpec,
        values: Callable[[Verdict], Iterable[tuple[Labels, float | None]]],
        verdicts: Iterable[Verdict],
    ) -> Iterator[str]:
        series: dict[Labels, list[tuple[float, float]]] = defaultdict(list)
        for verdict in verdicts:
            for labels, value in values(verdict):
                if value is not None:
                    series[labels].append((verdict.at, value))
        for labels, samples in series.items():
            written = self._written(spec, labels)
            for at, value in samples:
                yield f"{spec.name}{{{written}}} {value!r} {at:.3f}\n"

    def _written(self, spec: MetricSpec, values: Labels) -> str:
        return _pairs({**self.labels, **dict(zip(spec.labels, values, strict=True))})


def _steps(slots: list[Slot]) -> Iterator[tuple[float, list[Slot]]]:
    """The times at which a sum over windows has a sample, each with the windows that have ended by then.

    One stands at the beginning, and one after every gap, so that no increase is spread over a time without windows.
    """
    last: float | None = None
    ending: dict[float, list[Slot]] = defaultdict(list)
    for slot in slots:
        ending[slot.start + slot.seconds].append(slot)
    for end, its in sorted(ending.items()):
        begin = min(map(attrgetter("start"), its))
        if last is None or begin > last:
            yield begin, []
        yield end, its
        last = end


def _head(spec: MetricSpec) -> Iterator[str]:
    family = spec.name.removesuffix("_total") if spec.kind == "counter" else spec.name
    yield f"# HELP {family} {spec.help}\n"
    yield f"# TYPE {family} {spec.kind}\n"


def _pairs(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
