"""How many visits a target may get on a day: a number, or a ramp that grows by the week."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Final

from crawlhealth.searchbotsettings import Quota

DAY: Final = 86_400
WEEK_DAYS: Final = 7


def day_of(at: float) -> int:
    """The start of the day (UTC) of a time, both in unix seconds."""
    return int(at) // DAY * DAY


def allowed(quota: Quota, *, today: float, first_sent: float | None) -> int | None:
    """The visits of the day of a time; None without a quota.

    A ramp that has not begun yet stands at its first step. `first_sent` is when the first visit was sent, if any was.
    """
    if not quota.ramp:
        return quota.day
    begins = quota.first_day or (None if first_sent is None else _date(first_sent))
    weeks = 0 if begins is None else max(0, (_date(today) - begins).days // WEEK_DAYS)
    return quota.ramp[min(weeks, len(quota.ramp) - 1)]


def _date(at: float) -> date:
    return datetime.fromtimestamp(at, UTC).date()
