"""Stretch: what came of some sites over steps of equal width, as arrays: what replays and learning read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth import columns as tallies
from crawlhealth import stats
from crawlhealth.columns import BUCKETS, Columns
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot

Key = tuple[str, str, Source]
"""site, route, source."""

P95: Final = 0.95
ROUNDING: Final = 1e-6
"""What float32 may take from the counts of a histogram, as a share of it."""
SORTED_AT_ONCE: Final = 16_384
"""Entries whose histograms are sorted together; their numbers must fit into 16 bits, which numpy sorts by radix."""

_MIDDLES: Final = np.array([stats.middle(index) for index in range(BUCKETS)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The sums of R strata over `steps` steps of `seconds` each; step i begins at `start` + i * `seconds`.

    There are n entries, one for each step and stratum with anything in it, sorted by `step` and then `row` (the place
    in `keys`). `values` (n, 12) are sums by the columns of a tally (`columns.FIELDS`). The latency histogram of entry i
    is `bucket` (fine buckets of stats.BOUNDS, rising) and `count` from `timed[i]` to `timed[i + 1]`.
    """

    keys: Sequence[Key]
    start: float
    seconds: float
    steps: int
    step: NDArray[np.intp]
    row: NDArray[np.intp]
    values: NDArray[np.float64]
    timed: NDArray[np.intp]
    bucket: NDArray[np.uint16]
    count: NDArray[np.float32]

    @classmethod
    def of(cls, slots: Iterable[Slot], *, start: float, seconds: float, steps: int) -> Stretch:
        """The stretch of these slots (see `placed`); strata are sorted."""
        given = list(slots)
        keys = sorted({(slot.site, slot.route, slot.source) for slot in given})
        places = {key: place for place, key in enumerate(keys)}
        return cls.placed(
            keys,
            np.array([places[slot.site, slot.route, slot.source] for slot in given], dtype=np.intp),
            np.array([slot.start for slot in given], dtype=np.float64),
            np.array([slot.seconds for slot in given], dtype=np.float64),
            tallies.of_tallies([slot.tally for slot in given]),
            start=start,
            seconds=seconds,
            steps=steps,
        )

    @classmethod
    def placed(
        cls,
        keys: Sequence[Key],
        rows: NDArray[np.intp],
        starts: NDArray[np.float64],
        widths: NDArray[np.float64],
        sums: Columns,
        *,
        start: float,
        seconds: float,
        steps: int,
    ) -> Stretch:
        """The stretch of sums over some time each: the place of its stratum in `keys`, its start and its width.

        Those no wider than a step count whole in the step in which they begin; wider ones are spread evenly over the
        time that they cover. What lies outside of the steps is left out, and what comes together is added up.
        """
        source, step, share = _spread((starts - start) / seconds, widths / seconds, steps)
        place = step * max(1, len(keys)) + rows[source]
        if not np.all(place[1:] >= place[:-1]):
            order = np.argsort(place, kind="stable")
            source, share, place = source[order], share[order], place[order]
        first = np.flatnonzero(np.diff(place, prepend=-1))
        entry = np.repeat(np.arange(len(first)), np.diff(first, append=len(place)))
        values = sums.values[source] * share[:, None]
        timed, bucket, count = _histograms(sums, source, share, entry, len(first))
        return cls(
            keys=keys,
            start=start,
            seconds=seconds,
            steps=steps,
            step=place[first] // max(1, len(keys)),
            row=place[first] % max(1, len(keys)),
            values=values if len(first) == len(values) else np.add.reduceat(values, first, axis=0),
            timed=timed,
            bucket=bucket,
            count=count,
        )


def dense(stretch: Stretch) -> NDArray[np.float64]:
    """The sums by stratum, step and column; 0 where nothing came."""
    block = np.zeros((len(stretch.keys), stretch.steps, stretch.values.shape[1]))
    block[stretch.row, stretch.step] = stretch.values
    return block


def p95(stretch: Stretch) -> NDArray[np.float64]:
    """The p95 latency in seconds by stratum and step, as stats.quantile; NaN where nothing was timed."""
    block = np.full((len(stretch.keys), stretch.steps), np.nan)
    lengths = np.diff(stretch.timed)
    some = np.flatnonzero(lengths)
    totals = np.add.reduceat(stretch.count, stretch.timed[some], dtype=np.float64) if len(some) else np.zeros(0)
    some, totals = some[totals > 0], totals[totals > 0]
    if not len(some):
        return block
    begins = stretch.timed[some]
    scale = np.zeros(len(lengths))
    scale[some] = 1 / totals
    upto = np.cumsum(stretch.count * np.repeat(scale, lengths))  # each histogram adds one
    below = upto[begins] - stretch.count[begins] / totals
    reached = np.searchsorted(upto, below + (P95 - ROUNDING))
    last = stretch.timed[some + 1] - 1
    block[stretch.row[some], stretch.step[some]] = _MIDDLES[stretch.bucket[np.minimum(reached, last)]]
    return block


def _spread(
    begin: NDArray[np.float64], width: NDArray[np.float64], steps: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """What falls into the steps: of which sum, into which step, and what share of it. Times are in steps."""
    end = begin + width
    wide = width > 1
    first = np.clip(np.floor(begin), 0, steps).astype(np.intp)
    behind = np.clip(np.ceil(end), 0, steps).astype(np.intp)
    whole = (begin >= 0) & (begin < steps)
    parts = np.where(wide, np.maximum(0, behind - first), whole)
    source = np.repeat(np.arange(len(begin)), parts)
    within = np.arange(len(source)) - np.repeat(np.cumsum(parts) - parts, parts)
    step = first[source] + within
    if not wide.any():
        return source, step, np.ones(len(source))
    overlap = np.minimum(step + 1, end[source]) - np.maximum(step, begin[source])
    return source, step, np.where(wide[source], overlap / width[source], 1.0)


def _histograms(
    sums: Columns, source: NDArray[np.intp], share: NDArray[np.float64], entry: NDArray[np.intp], entries: int
) -> tuple[NDArray[np.intp], NDArray[np.uint16], NDArray[np.float32]]:
    """The histograms of entries: where each begins, and its buckets and counts; each made of some of the sums."""
    lengths = np.diff(sums.timed)[source]
    begins = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(lengths)])
    item = np.arange(begins[-1]) + np.repeat(sums.timed[source] - begins[:-1], lengths)
    bucket, count = sums.bucket[item], sums.count[item]
    if np.any(share != 1):
        count = (count * np.repeat(share, lengths)).astype(np.float32)
    timed = begins[np.searchsorted(entry, np.arange(entries + 1))]
    last = timed[(timed > 0) & (timed < len(bucket))] - 1  # whatever comes behind it belongs to another entry
    falls = bucket[1:] < bucket[:-1]
    falls[last] = False
    if np.any(falls):
        owner = np.repeat(entry, lengths)
        order = np.concatenate([_sorted(owner, bucket, *timed[[a, b]]) for a, b in _runs(entries)])
        bucket, count = bucket[order], count[order]
    twice = bucket[1:] == bucket[:-1]
    twice[last] = False
    if np.any(twice):
        first = np.flatnonzero(np.concatenate([[True], ~twice]))
        bucket, count = bucket[first], np.add.reduceat(count, first)
        timed = np.searchsorted(first, timed)
    return timed, bucket, count


def _runs(entries: int) -> Iterable[tuple[int, int]]:
    for first in range(0, entries, SORTED_AT_ONCE):
        yield first, min(first + SORTED_AT_ONCE, entries)


def _sorted(owner: NDArray[np.intp], bucket: NDArray[np.uint16], begin: np.intp, end: np.intp) -> NDArray[np.intp]:
    """The places from `begin` to `end`, whose owners are less than 2^16 apart, by owner and bucket."""
    by_bucket = np.argsort(bucket[begin:end], kind="stable")
    near = (owner[begin:end] - owner[begin : begin + 1]).astype(np.uint16)
    return np.asarray(begin + by_bucket[np.argsort(near[by_bucket], kind="stable")])
