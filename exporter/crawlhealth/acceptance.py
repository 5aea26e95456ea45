"""A new normal as people accept it, on the command line or to the API, and what follows from it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from crawlhealth import quantities
from crawlhealth.maintenance import moment
from crawlhealth.scoresettings import BaselineSettings
from crawlhealth.verdict import Accepted, Band, Unknown, Verdict

LEAST_HOURS: Final = 6
"""So many hours since an accepted change begin a baseline."""
LONGEST: Final = timedelta(days=366)
MAX_NOTE: Final = 500
MAX_BY: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """Since when a site is what is accepted of it, where nobody names a time, and why since then."""

    since: float
    why: str


def begun(verdict: Verdict | None, incident: float | None, *, now: float, settings: BaselineSettings) -> Begun:
    """When a site left its normal, by its latest verdict and the start of its open incident; else now.

    Of a site whose first baseline was not adopted because it is refused, all that this would be learnt from.
    """
    if incident is not None:
        return Begun(since=min(incident, now), why="when it left its normal")
    if verdict is not None and verdict.band in (Band.DEGRADING, Band.RESISTING):
        return Begun(since=min(verdict.state.since, now), why=f"when it became {verdict.band.value}")
    if verdict is not None and verdict.unknown is Unknown.BASELINE_REFUSED:
        return Begun(since=now - settings.length.total_seconds(), why="the whole of its first baseline")
    return Begun(since=now, why="now, since it is not outside its normal")


def parse(site: str, *, now: float, usual: Begun, since: str | None = None, by: str = "", note: str = "") -> Accepted:
    """What is meant: `since` is a moment (2026-12-01T22:00:00Z) or so long ago (2h), `usual` unless written.

    Raises ValueError with what to write instead.
    """
    if len(note) > MAX_NOTE:
        raise ValueError(f"note: write at most {MAX_NOTE} characters")
    if len(by) > MAX_BY:
        raise ValueError(f"by: write at most {MAX_BY} characters")
    began = _since(since, now) if since else usual.since
    return Accepted(site=site, at=now, since=began, by=" ".join(by.split()), note=" ".join(note.split()))


def consequence(settings: BaselineSettings) -> str:
    """How the baseline of a site is made from then on, in a sentence."""
    whole, last = quantities.show(settings.length), quantities.show(settings.exclude_last)
    return (
        f"Its baseline is made of the hours since then, {LEAST_HOURS} at least and the last {last} too,"
        f" until there are {whole} of them."
    )


def told(accepted: Accepted) -> str:
    """What was accepted, since when and by whom, in words."""
    by = f" by {accepted.by}" if accepted.by else ""
    note = f": {accepted.note}" if accepted.note else ""
    return f"Accepted as normal since {shown(accepted.since)}{by}{note}"


def shown(at: float) -> str:
    """A time to the second, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _since(text: str, now: float) -> float:
    try:
        at = moment(text) if "T" in text else now - quantities.duration(text).total_seconds()
    except ValueError as error:
        said = str(error)
        remedy = said if "write" in said else "write a moment as in 2026-12-01T22:00:00Z, or so long ago as in 2h"
        raise ValueError(f"since: {remedy}") from None
    if at > now:
        raise ValueError("since: is in the future: write an earlier moment, or so long ago as in 2h")
    if now - at > LONGEST.total_seconds():
        raise ValueError("since: is more than a year ago: write a later moment")
    return at
