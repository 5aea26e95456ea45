"""Overrides as people write them, on the command line or to the API. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from crawlhealth import quantities
from crawlhealth.maintenance import moment
from crawlhealth.verdict import Override, OverrideKind

DEFAULT_FOR: Final = "24h"
"""How long an override lasts for which no end is named."""
LONGEST: Final = timedelta(days=366)
MAX_NOTE: Final = 500


def parse(
    site: str,
    kind: str,
    *,
    now: float,
    until: str | None = None,
    concurrency: float | None = None,
    note: str = "",
) -> Override:
    """The override that is meant, from `now` on. Raises ValueError with what to write instead.

    `until` is a moment (2026-12-01T22:00:00Z) or a duration from now (2h). `concurrency` is the ratio of a limit, and
    may be that of a resumption, which otherwise is 1.
    """
    try:
        meant = OverrideKind(kind)
    except ValueError:
        raise ValueError(f"kind: write one of {', '.join(OverrideKind)}") from None
    end = _end(until if until is not None else DEFAULT_FOR, now)
    if len(note) > MAX_NOTE:
        raise ValueError(f"note: write at most {MAX_NOTE} characters")
    return Override(
        site=site, kind=meant, at=now, until=end, concurrency=_ratio(meant, concurrency), note=" ".join(note.split())
    )


def _end(text: str, now: float) -> float:
    try:
        end = moment(text) if "T" in text else now + quantities.duration(text).total_seconds()
    except ValueError as error:
        said = str(error)
        remedy = said if "write" in said else "write a moment as in 2026-12-01T22:00:00Z, or a duration as in 2h"
        raise ValueError(f"until: {remedy}") from None
    if end <= now:
        raise ValueError("until: is in the past: write a later moment, or a duration as in 2h")
    if end - now > LONGEST.total_seconds():
        raise ValueError("until: is more than a year away: write an earlier moment")
    return end


def _ratio(kind: OverrideKind, concurrency: float | None) -> float:
    if kind is OverrideKind.PAUSE:
        if concurrency:
            raise ValueError("concurrency_ratio: a pause has none: leave it out, or write limit")
        return 0.0
    if concurrency is None:
        if kind is OverrideKind.LIMIT:
            raise ValueError("concurrency_ratio: a limit needs one: write a share from 0 to 1")
        return 1.0
    if not 0 < concurrency <= 1:
        raise ValueError("concurrency_ratio: write a share over 0 and up to 1; to stop, pause")
    return concurrency
