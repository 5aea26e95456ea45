"""The incidents of a site as rows of text, for its page. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from crawlhealth.incident import Incident
from crawlhealth.verdict import Diagnosis, IncidentLabel
from crawlhealth.web import words

LABEL = {None: "not labelled", IncidentLabel.TRUE: "true", IncidentLabel.FALSE_ALARM: "false alarm"}


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentView:
    """One incident; `name` is what its form posts to, `said` and `note` are what a person said of it.

    `label` and `reason` are what the form begins with, blank where nobody has said anything.
    """

    name: str
    start: str
    lasted: str
    band: str
    worst: str
    first_reason: str
    said: str
    note: str
    label: str
    reason: str
    facts: tuple[tuple[str, str], ...]


def incident_view(incident: Incident, now: float) -> IncidentView:
    """An incident at the moment of the page."""
    length = words.span(incident.seconds(now))
    score = "no score" if incident.worst_score is None else str(incident.worst_score)
    return IncidentView(
        name=incident.name,
        start=words.moment(incident.start),
        lasted=f"for {length}, still on" if incident.end is None else f"for {length}",
        band=incident.worst_band.value,
        worst=f"{score} {incident.worst_band.value}",
        first_reason="no reason" if incident.first_reason is None else words.name(incident.first_reason),
        said=LABEL[incident.label],
        note=incident.note,
        label=incident.label.value if incident.label is not None else "",
        reason=incident.right_reason.value if incident.right_reason is not None else "",
        facts=_facts(incident, now),
    )


def _facts(incident: Incident, now: float) -> tuple[tuple[str, str], ...]:
    facts = [
        ("worst", f"at {words.moment(incident.worst_at)}"),
        ("paused", words.span(incident.paused(now)) if incident.paused(now) else "never"),
    ]
    if incident.warned_at is not None:
        facts.insert(0, ("early warning", f"{words.span(incident.start - incident.warned_at)} before"))
    if incident.diagnosis is not Diagnosis.NONE:
        facts.append(("diagnosis", words.DIAGNOSIS[incident.diagnosis]))
    if incident.right_reason is not None:
        facts.append(("right first reason", words.name(incident.right_reason)))
    if incident.note:
        facts.append(("note", incident.note))
    return tuple(facts)
