"""Maintenance: planned stops, and whether one is on. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from crawlhealth.config import Maintenance

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


def moment(text: str) -> float:
    """A moment written as in 2026-12-01T22:00:00Z, as unix seconds. Raises ValueError without a time zone."""
    if "T" not in text:
        raise ValueError("write a moment as in 2026-12-01T22:00:00Z")
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError("a moment needs a time zone: write for instance 2026-12-01T22:00:00Z")
    if not 1971 <= when.year <= 9000:
        raise ValueError("write a year of this time")
    return when.timestamp()


def clock(text: str) -> timedelta:
    """A time of day written as in 22:00, as the time since midnight. Raises ValueError."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise ValueError("write a time of day as in 22:00")
    return timedelta(hours=int(found[1]), minutes=int(found[2]))


def under_maintenance(windows: Iterable[Maintenance], site: str, now: float) -> bool:
    """Whether any of the windows covers the site at `now` (unix seconds); an end is not part of its window."""
    return any(_covers(window, now) for window in windows if not window.sites or site in window.sites)


@lru_cache(maxsize=1024)  # asked for thousands of sites at the same moment
def _covers(window: Maintenance, now: float) -> bool:
    if not window.days:
        return moment(window.start) <= now < moment(window.end)
    start, end = clock(window.start), clock(window.end)
    if end <= start:
        end += timedelta(days=1)
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for midnight in (today - timedelta(days=1), today):
        if _DAYS[midnight.weekday()] in window.days:
            begun = (midnight + start).timestamp()
            if begun <= now < begun + (end - start).total_seconds():
                return True
    return False
