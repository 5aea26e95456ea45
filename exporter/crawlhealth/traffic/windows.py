"""Windows as the wire format has them: one JSON object with the sums of a minute or an hour, checked strictly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from crawlhealth.config import DIRECT, Config
from crawlhealth.history import DAY, KEEP_DAYS
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally
from crawlhealth.traffic import latency

MAX_LINE_BYTES: Final = 65_536
MAX_REASON_CHARS: Final = 300
FUTURE_SECONDS: Final = 60.0
"""How far ahead of our clock another one may be."""
MAX_LATENCY_SECONDS: Final = 86_400.0
MAX_BUCKETS: Final = 1_000

_Count = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=MAX_LATENCY_SECONDS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A line that was not taken: its number, from 1, and why."""

    line: int
    reason: str


class _Latency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    p50: _Seconds | None = None
    p95: _Seconds | None = None
    buckets: dict[str, _Count] | None = None
    sum: _Amount | None = None


class _Window(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    site: str
    start: str | float
    requests: _Count
    route: str = DIRECT
    source: Literal["canary", "traffic"] = "traffic"
    window_seconds: float = 60.0
    hard_block: _Count = 0
    challenge: _Count = 0
    soft_block: _Count = 0
    error: _Count = 0
    latency_seconds: _Latency | None = None
    extractions_ok: _Count = 0
    extractions_failed: _Count = 0
    bytes: _Count = 0
    retries: _Count = 0
    credits: _Amount = 0.0
    records_valid: _Count = 0
    records_invalid: _Count = 0


_decode = msgspec.json.Decoder(_Window).decode


def read_windows(
    lines: Iterable[bytes], *, config: Config, now: float, to_keep: bool = True
) -> Iterator[Slot | Problem]:
    """Each line of a JSON Lines file as a slot, or as the problem with it; blank lines are skipped.

    Widths are a minute, an hour or the history's resolution, and a day for what is too old to be kept by the hour;
    starts are multiples of them; sites and routes must be configured; a window must lie within what is kept, and not in
    the future of `now` (it may be of any age where it is not `to_keep`). `requests` counts all outcomes, ok is the
    rest; a negative rest is refused. Latency of the ok ones comes as quantiles (p95, and p50, else half of it) or as
    cumulative buckets by upper bound; both are approximated, unless the bounds are ours and `sum` (seconds in all) is
    there too.
    """
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        try:
            yield read_window(text, config=config, now=now, to_keep=to_keep)
        except ValueError as error:  # msgspec's errors are ValueErrors too
            yield Problem(line=number, reason=_shown(str(error)))


def _shown(reason: str) -> str:
    """A reason as a terminal may show it: it can hold names from the file."""
    return "".join(character if character.isprintable() else "?" for character in reason[:MAX_REASON_CHARS])


def read_window(line: bytes, *, config: Config, now: float, quantiles: bool = True, to_keep: bool = True) -> Slot:
    """One window as a slot (see `read_windows`). Raises ValueError with what is wrong.

    Without `quantiles`, latency must come as buckets.
    """
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"longer than {MAX_LINE_BYTES} bytes")
    window = _decode(line)
    if window.site not in config.sites:
        raise ValueError(config.unknown(window.site))
    if window.route not in config.routes:
        raise ValueError(f"unknown route: {window.route!r}")
    ok = window.requests - window.hard_block - window.challenge - window.soft_block - window.error
    if ok < 0:
        raise ValueError(f"requests is {window.requests}, fewer than the outcomes named together ({-ok} too few)")
    if window.extractions_ok + window.extractions_failed > window.requests:
        raise ValueError("more extractions than requests")
    if not quantiles and window.latency_seconds is not None and window.latency_seconds.buckets is None:
        raise ValueError("latency_seconds must have buckets: quantiles are for import only")
    histogram = _histogram(window.latency_seconds, ok) if window.latency_seconds is not None else {}
    given = None if window.latency_seconds is None else window.latency_seconds.sum
    return Slot(
        site=window.site,
        route=window.route,
        source=Source(window.source),
        start=_start(window, config, now, to_keep=to_keep),
        seconds=window.window_seconds,
        tally=Tally(
            ok=ok,
            latency=histogram,
            latency_sum=latency.total_seconds(histogram) if given is None else given,
            **{name: getattr(window, name) for name in _SAME},
        ),
    )


_SAME: Final = (
    "hard_block", "challenge", "soft_block", "error", "extractions_ok", "extractions_failed", "bytes", "retries",
    "credits", "records_valid", "records_invalid",
)  # fmt: skip


def _start(window: _Window, config: Config, now: float, *, to_keep: bool) -> float:
    width = window.window_seconds
    widths = sorted({60.0, 3600.0, config.history.resolution.total_seconds(), DAY})
    if width not in widths:
        raise ValueError(f"window_seconds is {width:g}: write one of {', '.join(f'{w:g}' for w in widths)}")
    start = _time(window.start)
    if math.floor(start / width) * width != start:
        raise ValueError(f"start is not a multiple of window_seconds ({width:g})")
    if start + width > now + max(width, FUTURE_SECONDS):
        raise ValueError("start is in the future")
    if not to_keep:
        if start < 0:
            raise ValueError("start is before 1970")
        return start
    hours_from = (now - config.history.keep_hours.total_seconds()) // DAY * DAY
    if width == DAY:
        if start >= hours_from:
            raise ValueError("a window of a day must be older than history.keep_hours: write its hours")
        if start < now - KEEP_DAYS:
            raise ValueError("start is longer ago than two years")
    elif start < hours_from:
        raise ValueError("start is longer ago than history.keep_hours")
    return start


def _time(value: str | float) -> float:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("start is not a time: write it like 2026-11-30T12:00:00Z") from None
        if moment.tzinfo is None:
            raise ValueError("start has no time zone: write it like 2026-11-30T12:00:00Z")
        return moment.timestamp()
    return value


def _histogram(written: _Latency, ok: int) -> dict[int, int]:
    if written.buckets is not None:
        if written.p50 is not None or written.p95 is not None:
            raise ValueError("latency_seconds has both buckets and quantiles: write one of them")
        return latency.from_buckets(_buckets(written.buckets, ok))
    if written.sum is not None:
        raise ValueError("latency_seconds has a sum beside quantiles: it belongs to buckets")
    if written.p95 is None:
        raise ValueError("latency_seconds has no p95")
    p50 = written.p95 / 2 if written.p50 is None else written.p50
    if p50 > written.p95:
        raise ValueError("latency_seconds: p50 is above p95")
    return latency.from_quantiles(ok, p50, written.p95)


def _buckets(written: Mapping[str, int], ok: int) -> list[tuple[float, int]]:
    if len(written) > MAX_BUCKETS:
        raise ValueError(f"latency_seconds has more than {MAX_BUCKETS} buckets")
    try:
        buckets = sorted((float(bound), count) for bound, count in written.items())
    except ValueError:
        raise ValueError("latency_seconds: a bucket's bound is not a number") from None
    if any(not bound > 0 for bound, _ in buckets):
        raise ValueError("latency_seconds: a bucket's bound is not above 0")
    counts = [count for _, count in buckets]
    if counts != sorted(counts):
        raise ValueError("latency_seconds: bucket counts fall; they are cumulative")
    if counts and counts[-1] > ok:
        raise ValueError("latency_seconds counts more than the ok requests")
    return buckets
