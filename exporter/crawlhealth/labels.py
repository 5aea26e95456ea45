"""Labels: what a person says of an incident afterwards, on the command line or to the API. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crawlhealth.verdict import IncidentLabel, Signal

MAX_NOTE: Final = 500
REASONS: Final = (Signal.HARD_BLOCK, Signal.CHALLENGE, Signal.SOFT_BLOCK, Signal.REFUSED, Signal.LATENCY)
"""What can have been the reason of an incident; `refused` is any kind of refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a person said at `at` of the incident of a site that began at `start`.

    `reason` is what its first reason should have been.
    """

    site: str
    start: float
    at: float
    label: IncidentLabel
    note: str = ""
    reason: Signal | None = None


def parse(site: str, start: float, label: str, *, now: float, note: str = "", reason: str | None = None) -> Label:
    """The label that is meant. Raises ValueError with what to write instead; blank is no reason."""
    try:
        meant = IncidentLabel(label)
    except ValueError:
        raise ValueError(f"label: write {' or '.join(IncidentLabel)}") from None
    if len(note) > MAX_NOTE:
        raise ValueError(f"note: write at most {MAX_NOTE} characters")
    if reason and reason not in REASONS:
        raise ValueError(f"reason: write one of {', '.join(REASONS)}")
    return Label(
        site=site,
        start=start,
        at=now,
        label=meant,
        note=" ".join(note.split()),
        reason=Signal(reason) if reason else None,
    )
