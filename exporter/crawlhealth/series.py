"""Series: what a scrape shows, written down once, and made into Prometheus' families or, much faster, into its text.

Both give the same text; prometheus_client's own encoders say what that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, Protocol

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import CollectorRegistry
from prometheus_client.utils import floatToGoString

from crawlhealth import metrics, stats
from crawlhealth.metrics import MetricSpec

Encoder = Callable[[CollectorRegistry], bytes]
"""One of prometheus_client's, for text or OpenMetrics."""
EXPONENT_FROM: Final = 1e6
"""From here on numbers are written with an exponent."""
PIECE_LINES: Final = 250
"""About so many strings become one piece of text: no other thread waits longer than that takes."""
_PLACES: Final = "\x00\x01\x02\x03"
"""Stand in a template for the labels of a group, which are names of the configuration: those hold no such character."""


class Series(Protocol):
    """Where the series of a scrape go."""

    def put(self, spec: MetricSpec, labels: tuple[str, ...], value: float | None) -> None:
        """Add a series; nothing for None."""

    def spread(
        self, spec: MetricSpec, labels: tuple[str, ...], names: tuple[str, ...], values: Sequence[float | None]
    ) -> None:
        """Add a series for each name as the last label, with the values in that order; nothing for None."""

    def histogram(
        self, spec: MetricSpec, labels: tuple[str, ...], counts: stats.Histogram, total: float, *, first: float
    ) -> None:
        """Add the series of one histogram of seconds, its published bounds from `first`; nothing for an empty one."""


class Families:
    """The series as families of prometheus_client, each made with its first series."""

    def __init__(self) -> None:
        self._values: dict[MetricSpec, GaugeMetricFamily | CounterMetricFamily] = {}
        self._histograms: dict[MetricSpec, HistogramMetricFamily] = {}

    def put(self, spec: MetricSpec, labels: tuple[str, ...], value: float | None) -> None:
        """See `Series`."""
        if value is None:
            return
        family = self._values.get(spec)
        if family is None:
            family = self._values[spec] = spec.gauge() if spec.kind == "gauge" else spec.counter()
        family.add_metric(labels, value)

    def spread(
        self, spec: MetricSpec, labels: tuple[str, ...], names: tuple[str, ...], values: Sequence[float | None]
    ) -> None:
        """See `Series`."""
        for name, value in zip(names, values, strict=True):
            self.put(spec, (*labels, name), value)

    def histogram(
        self, spec: MetricSpec, labels: tuple[str, ...], counts: stats.Histogram, total: float, *, first: float
    ) -> None:
        """See `Series`."""
        if not counts:
            return
        family = self._histograms.get(spec)
        if family is None:
            family = self._histograms[spec] = spec.histogram()
        family.add_metric(labels, list(stats.published(counts, first, metrics.HISTOGRAM_LAST)), total)

    def all(self) -> list[Metric]:
        """Everything added, in the order in which the metrics are declared."""
        made: dict[MetricSpec, Metric] = {**self._values, **self._histograms}
        return [made[spec] for spec in metrics.ALL if spec in made]


class Text:
    """The series as text. A group of series is one template, filled by the interpreter's own formatting."""

    def __init__(self) -> None:
        self._lines: dict[MetricSpec, list[str]] = {}
        self._single: dict[MetricSpec, tuple[Callable[[str], None], str, Callable[[tuple[str, ...]], Any]]] = {}
        self._groups: dict[tuple[MetricSpec, tuple[str, ...]], str] = {}
        self._escaped: dict[str, str] = {}

    def put(self, spec: MetricSpec, labels: tuple[str, ...], value: float | None) -> None:
        """See `Series`."""
        if value is None:
            return
        known = self._single.get(spec)
        if known is None:
            template, ordered = _single(spec)
            known = self._single[spec] = (self._lines.setdefault(spec, []).append, template, ordered)
        append, template, ordered = known
        number = repr(value) if type(value) is float and -EXPONENT_FROM < value < EXPONENT_FROM else written(value)
        if len(labels) == 1:
            append(template % (self._escaped.get(labels[0]) or self._escape(labels[0]), number))
        else:
            append(template % (*ordered(tuple([self._escape(label) for label in labels])), number))

    def spread(
        self, spec: MetricSpec, labels: tuple[str, ...], names: tuple[str, ...], values: Sequence[float | None]
    ) -> None:
        """See `Series`."""
        if not names:
            return
        key = (spec, names)
        template = self._groups.get(key)
        if template is None:
            lines = [_line(spec.name, spec.labels, (*_PLACES[: len(labels)], self._escape(name))) for name in names]
            template = self._groups[key] = "".join(lines)
        if None in values:
            for name, value in zip(names, values, strict=True):
                self.put(spec, (*labels, name), value)
        else:
            self._fill(spec, template, labels, [written(value) for value in values if value is not None])

    def histogram(
        self, spec: MetricSpec, labels: tuple[str, ...], counts: stats.Histogram, total: float, *, first: float
    ) -> None:
        """See `Series`."""
        if not counts:
            return
        buckets = list(stats.published(counts, first, metrics.HISTOGRAM_LAST))
        key = (spec, ())
        template = self._groups.get(key)
        if template is None:
            places = tuple(_PLACES[: len(labels)])
            lines = [_line(spec.name + "_bucket", (*spec.labels, "le"), (*places, bound)) for bound, _ in buckets]
            lines += [_line(spec.name + suffix, spec.labels, places) for suffix in ("_count", "_sum")]
            template = self._groups[key] = "".join(lines)
        self._fill(spec, template, labels, [written(n) for n in (*(n for _, n in buckets), buckets[-1][1], total)])

    def pieces(self, encoder: Encoder) -> Iterator[str]:
        """The text, piece by piece, in the order in which the metrics are declared; what is given is let go.

        The encoder says how a family begins.
        """
        for spec in metrics.ALL:
            lines = self._lines.pop(spec, None)
            if lines:
                yield _head(spec, encoder)
                for first in range(0, len(lines), PIECE_LINES):
                    yield "".join(lines[first : first + PIECE_LINES])

    def _fill(self, spec: MetricSpec, template: str, labels: tuple[str, ...], values: list[str]) -> None:
        text = template % tuple(values)
        for place, label in zip(_PLACES, labels, strict=False):
            text = text.replace(place, self._escape(label))
        self._lines.setdefault(spec, []).append(text)

    def _escape(self, label: str) -> str:
        known = self._escaped.get(label)
        if known is None:
            known = label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
            self._escaped[label] = known
        return known


def written(value: float) -> str:
    """A number as prometheus_client writes it."""
    if -EXPONENT_FROM < value < EXPONENT_FROM:
        return f"{value}.0" if type(value) is int else repr(float(value))
    text: str = floatToGoString(value)  # type: ignore[no-untyped-call]  # the library has no types here
    return text


def _line(name: str, labels: Sequence[str], values: Sequence[str]) -> str:
    """A line with a place for the number."""
    pairs = ",".join(
        f'{label}="{value.replace("%", "%%")}"' for label, value in sorted(zip(labels, values, strict=True))
    )
    return f"{name}{{{pairs}}} %s\n" if pairs else f"{name} %s\n"


def _single(spec: MetricSpec) -> tuple[str, Callable[[tuple[str, ...]], Any]]:
    """The template of a single series, and what brings its labels into order."""
    order = sorted(range(len(spec.labels)), key=spec.labels.__getitem__)
    pairs = ",".join(f'{spec.labels[index]}="%s"' for index in order)
    template = f"{spec.name}{{{pairs}}} %s\n" if pairs else f"{spec.name} %s\n"
    if order == list(range(len(order))):
        return template, tuple
    return template, itemgetter(*order)


def _head(spec: MetricSpec, encoder: Encoder) -> str:
    """How the family begins: HELP and TYPE."""
    families = {"gauge": spec.gauge, "counter": spec.counter, "histogram": spec.histogram}
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_One(families[spec.kind]()))
    return encoder(registry).decode().removesuffix("# EOF\n")


class _One:
    """A registry's collector of one family."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> list[Metric]:
        return [self._family]
