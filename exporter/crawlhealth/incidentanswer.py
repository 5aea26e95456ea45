"""What the API and the commands say of an incident, as records for JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from crawlhealth.incident import Incident


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsAnswer:
    """A signal and the points that it cost."""

    signal: str
    points: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonsAnswer:
    """The reasons from a moment on."""

    at: str
    reasons: tuple[PointsAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceAnswer:
    """The advice from a moment on."""

    at: str
    concurrency_ratio: float
    revisit_multiplier: float
    cost_multiplier: float
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAnswer:
    """What a person said of it, and when."""

    label: str
    note: str
    reason: str | None
    at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentAnswer:
    """One incident; `end` is null while it lasts, `seconds` and `paused_seconds` then reach up to now."""

    site: str
    start: str
    end: str | None
    seconds: float
    worst_score: int | None
    worst_band: str
    worst_at: str
    first_reason: str | None
    reasons: tuple[ReasonsAnswer, ...]
    advice: tuple[AdviceAnswer, ...]
    diagnosis: str
    warned_at: str | None
    degrading_at: str | None
    resisting_at: str | None
    paused_seconds: float
    label: LabelAnswer | None
    links: Mapping[str, str]


def answer(incident: Incident, now: float) -> IncidentAnswer:
    """What is said of an incident at `now` (unix seconds)."""
    return IncidentAnswer(
        site=incident.site,
        start=incident.name,
        end=_moment(incident.end),
        seconds=round(incident.seconds(now), 3),
        worst_score=incident.worst_score,
        worst_band=incident.worst_band.value,
        worst_at=moment(incident.worst_at),
        first_reason=incident.first_reason.value if incident.first_reason is not None else None,
        reasons=tuple(
            ReasonsAnswer(
                at=moment(at),
                reasons=tuple(PointsAnswer(signal=signal.value, points=points) for signal, points in reasons),
            )
            for at, reasons in incident.reasons
        ),
        advice=tuple(
            AdviceAnswer(
                at=moment(at),
                concurrency_ratio=advice.concurrency_ratio,
                revisit_multiplier=advice.revisit_multiplier,
                cost_multiplier=advice.cost_multiplier,
                paused=advice.paused,
            )
            for at, advice in incident.advice
        ),
        diagnosis=incident.diagnosis.value,
        warned_at=_moment(incident.warned_at),
        degrading_at=_moment(incident.degrading_at),
        resisting_at=_moment(incident.resisting_at),
        paused_seconds=round(incident.paused(now), 3),
        label=_label(incident),
        links={
            "page": f"/sites/{quote(incident.site, safe='')}",
            "label": f"/api/v1/sites/{quote(incident.site, safe='')}/incidents/{incident.name}/label",
        },
    )


def moment(at: float) -> str:
    """A time in unix seconds as the API writes it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _moment(at: float | None) -> str | None:
    return None if at is None else moment(at)


def _label(incident: Incident) -> LabelAnswer | None:
    if incident.label is None:
        return None
    return LabelAnswer(
        label=incident.label.value,
        note=incident.note,
        reason=incident.right_reason.value if incident.right_reason is not None else None,
        at=_moment(incident.labelled_at),
    )
