"""Windows as JSON Lines that `read_windows` takes back exactly."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from crawlhealth import stats
from crawlhealth.tally import Slot, Tally

_encode = msgspec.json.Encoder().encode
_COUNTS = (
    "hard_block", "challenge", "soft_block", "error", "extractions_ok", "extractions_failed", "bytes", "retries",
    "credits", "records_valid", "records_invalid",
)  # fmt: skip


def as_line(slot: Slot) -> bytes:
    """One window of the wire format, with what is not 0; latency in buckets at our own bounds, with its sum."""
    tally = slot.tally
    window: dict[str, object] = {
        "site": slot.site,
        "route": slot.route,
        "source": slot.source.value,
        "start": datetime.fromtimestamp(slot.start, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "window_seconds": int(slot.seconds),
        "requests": tally.requests,
    }
    window.update((name, value) for name in _COUNTS if (value := getattr(tally, name)))
    if tally.latency:
        window["latency_seconds"] = {"sum": tally.latency_sum, "buckets": dict(_buckets(tally))}
    return _encode(window) + b"\n"


def _buckets(tally: Tally) -> Iterator[tuple[str, int]]:
    """Cumulative counts at both bounds of every fine bucket that has some: nothing is left to be spread."""
    below, last = 0, -1
    for index, count in sorted(tally.latency.items()):
        if index > last + 1:
            yield repr(stats.BOUNDS[index - 1]), below
        below += count
        yield (repr(stats.BOUNDS[index]) if index < len(stats.BOUNDS) else "+Inf"), below
        last = index
