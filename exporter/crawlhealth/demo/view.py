"""What can be seen of the shop at one moment: its gauges on /metrics, and the alerts that arrived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from crawlhealth import metrics
from crawlhealth.demo.sink import Notice

LEAST_POINTS: Final = 1.0
"""From here on a signal counts as a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One site as /metrics shows it; None where a gauge is absent. `penalties` are points by signal."""

    band: str | None = None
    score: float | None = None
    score_raw: float | None = None
    parser_score: float | None = None
    penalties: Mapping[str, float] = field(default_factory=dict)
    signals: Mapping[str, float] = field(default_factory=dict)
    latency: float | None = None
    requests: float | None = None
    decoys: frozenset[str] = frozenset()
    failing: frozenset[str] = frozenset()
    canaries: int = 0
    notices: tuple[Notice, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """The signals that cost at least one point, dearest first; the cap is a consequence and not among them."""
        dear = {s: p for s, p in self.penalties.items() if p >= LEAST_POINTS and s != "refused_cap"}
        return tuple(sorted(dear, key=lambda signal: -dear[signal]))

    def last(self, alert: str) -> Notice | None:
        """The latest notice of an alert."""
        return next((notice for notice in reversed(self.notices) if notice.alert == alert), None)


def view(text: str, site: str, notices: tuple[Notice, ...] = ()) -> View:
    """The view of one site in an exposition. Raises ValueError if that is not one."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.labels.get("site") == site:
                found.setdefault(sample.name, []).append((sample.labels, sample.value))

    def one(spec: metrics.MetricSpec) -> float | None:
        return next((value for _, value in found.get(spec.name, ())), None)

    def by(spec: metrics.MetricSpec, label: str) -> dict[str, float]:
        return {labels[label]: value for labels, value in found.get(spec.name, ())}

    success = by(metrics.CANARY_SUCCESS, "canary")
    return View(
        band=next((band for band, value in by(metrics.BAND, "band").items() if value == 1), None),
        score=one(metrics.SCORE),
        score_raw=one(metrics.SCORE_RAW),
        parser_score=one(metrics.PARSER_SCORE),
        penalties=by(metrics.PENALTY, "signal"),
        signals=by(metrics.SIGNAL, "signal"),
        latency=one(metrics.LATENCY),
        requests=one(metrics.WINDOW_REQUESTS),
        decoys=frozenset(name for name, value in by(metrics.CANARY_DECOY, "canary").items() if value == 1),
        failing=frozenset(name for name, value in success.items() if value == 0),
        canaries=len(success),
        notices=notices,
    )
