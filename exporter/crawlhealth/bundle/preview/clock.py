"""Moments on a time axis: whole hours or minutes, in UTC. Pure."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

_STEPS: Final = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 2 * 86400)


def ticks(since: float, until: float, *, most: int) -> tuple[list[float], list[str]]:
    """At most so many round moments between two, and how they are written."""
    step = next((step for step in _STEPS if (until - since) / step <= most), _STEPS[-1])
    first = math.ceil(since / step) * step
    places = [first + number * step for number in range(int((until - first) / step) + 1)]
    form = (
        "%m-%d"
        if step >= 86400
        else "%m-%d %H:%M"
        if until - since > 2 * 86400
        else "%H:%M"
        if step >= 60
        else "%H:%M:%S"
    )
    return [float(place) for place in places], [datetime.fromtimestamp(place, UTC).strftime(form) for place in places]
