"""The shop's past: sixteen calm days in hourly windows, so that a baseline exists at once. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

HOUR: Final = 3600
DAYS: Final = 16


def windows(site: str, *, now: float) -> Iterator[str]:
    """Hourly windows of one site as JSON lines, oldest first, up to the last full hour before `now` (unix seconds).

    A thousand requests an hour more or less, by the time of day; half a percent refused outright, one percent
    challenged, half a percent answered with something else, and a p95 latency of 200 ms.
    """
    last = int(now // HOUR) * HOUR
    for start in range(last - DAYS * 24 * HOUR, last, HOUR):
        requests = 1000 + round(300 * math.sin(start / HOUR / 24 * 2 * math.pi))
        refused = round(requests * 0.005)
        failed = round(requests * 0.004)
        served = requests - 4 * refused - 1
        yield json.dumps(
            {
                "site": site,
                "route": "direct",
                "source": "traffic",
                "start": datetime.fromtimestamp(start, UTC).isoformat().replace("+00:00", "Z"),
                "window_seconds": HOUR,
                "requests": requests,
                "hard_block": refused,
                "challenge": 2 * refused,
                "soft_block": refused,
                "error": 1,
                "latency_seconds": {"p50": 0.1, "p95": 0.2},
                "extractions_ok": served - failed,
                "extractions_failed": failed,
                "bytes": served * 8000,
            }
        )
