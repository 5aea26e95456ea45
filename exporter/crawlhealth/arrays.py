"""Arrays: weighted sums and latency histograms by row and half-life, and the arithmetic of their weights.

What is added bears a weight that grows with its time, 2^((t - landmark) / half-life), and a reader divides by the
weight of now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth import stats
from crawlhealth.outcome import Source
from crawlhealth.weighted import COLUMNS, OUTCOMES, SQUARED

Stratum = tuple[str, str, Source]
"""site, route, source."""
Latency = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]
"""Counts of histograms: of which of the rows that are added, in which fine bucket, how many."""

MAX_EXPONENT: Final = 60.0
"""The landmark moves before a weight exceeds 2 to this: float32 holds 2^127, and a square has twice the exponent."""
MAX_SCALE: Final = 500.0
"""Of a time before the landmark: float64 holds 2^1023, and a square has twice the exponent."""
PLAIN: Final = len(COLUMNS) - SQUARED
"""How many columns are plain sums."""
ANSWERED: Final = OUTCOMES - 1
"""How many of the first columns are requests that were answered."""
BUCKETS: Final = len(stats.BOUNDS) + 1
FIRST_ROWS: Final = 64
GROWTH: Final = 1.25


@dataclass(slots=True, kw_only=True)
class Arrays:
    """The sums of all strata, a row each: by half-life and column, and by half-life and fine latency bucket.

    `half_lives` are in seconds, shortest first. Weights count from `landmark` (unix seconds); `newest` is the latest
    start of a slot that was added, or time of a reset. Only the fine buckets of `span` have ever held something.
    """

    half_lives: NDArray[np.float64]
    keys: list[Stratum] = field(default_factory=list)
    sums: NDArray[np.float64]
    latency: NDArray[np.float32]
    landmark: float = 0.0
    newest: float = -np.inf
    span: tuple[int, int] | None = None

    @classmethod
    def empty(cls, half_lives: NDArray[np.float64], rows: int = 0) -> Arrays:
        """Room for so many rows."""
        lives = len(half_lives)
        return cls(
            half_lives=half_lives,
            sums=np.zeros((rows, lives, len(COLUMNS))),
            latency=np.zeros((rows, lives, BUCKETS), dtype=np.float32),
        )

    def weights(
        self,
        starts: NDArray[np.float64],
        seconds: NDArray[np.float64],
        resolution: float,
        lives: NDArray[np.float64],
        shift: NDArray[np.float64] | float = 0.0,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean weight, and the mean squared weight, of the fine slots that each slot stands for, by half-life.

        Fine slots are `resolution` seconds wide. `lives` are the half-lives by which each slot fades, the same for all
        or by slot; `shift` is added to the exponents.
        """
        step = np.log(2) * resolution / lives
        parts = np.maximum(1.0, np.round(seconds / resolution))[:, None]
        last = (starts[:, None] - self.landmark + (parts - 1) * resolution) / lives + shift
        mean = np.expm1(-step * parts) / (parts * np.expm1(-step))  # by the newest part: the oldest may weigh nothing
        mean_square = np.expm1(-2 * step * parts) / (parts * np.expm1(-2 * step))
        return np.exp2(last) * mean, np.exp2(2 * last) * mean_square

    def add(
        self,
        rows: NDArray[np.intp],
        values: NDArray[np.float64],
        weights: tuple[NDArray[np.float64], NDArray[np.float64]],
        latency: Latency | None,
    ) -> None:
        """Add plain columns to rows, which may come repeatedly, with weights and squared weights by half-life."""
        mean, squares = weights
        block = np.empty((len(rows), len(self.half_lives), len(COLUMNS)))
        np.multiply(values[:, None, :], mean[:, :, None], out=block[:, :, :PLAIN])
        block[:, :, -2] = values[:, None, :ANSWERED].sum(axis=2) * squares
        block[:, :, -1] = values[:, None, ANSWERED] * squares
        size = len(self.half_lives) * len(COLUMNS)
        places = rows[:, None] * size + np.arange(size)
        np.add.at(self.sums.reshape(-1), places.reshape(-1), block.reshape(-1))  # plain indices are much faster
        if latency is not None and len(latency[0]):
            self._add_latency(rows, np.broadcast_to(mean, (len(rows), len(self.half_lives))), latency)

    def _add_latency(self, rows: NDArray[np.intp], weights: NDArray[np.float64], latency: Latency) -> None:
        at, buckets, counts = latency
        low, high = self.span or (BUCKETS, 0)
        self.span = (min(low, int(buckets.min())), max(high, int(buckets.max()) + 1))
        flat = self.latency.reshape(-1)
        first = rows[at] * (len(self.half_lives) * BUCKETS) + buckets
        for k in range(len(self.half_lives)):
            np.add.at(flat, first + k * BUCKETS, (counts * weights[at, k]).astype(np.float32))

    def at(self, rows: NDArray[np.intp], now: float) -> NDArray[np.float64]:
        """The sums of some rows as they weigh at `now`, by half-life and column."""
        scale = np.exp2(np.minimum((self.landmark - now) / self.half_lives, MAX_SCALE))
        scales = np.repeat(scale[:, None], len(COLUMNS), axis=1)
        scales[:, -SQUARED:] *= scale[:, None]
        block = self.sums[rows]
        block *= scales
        return block

    def spread(self, rows: NDArray[np.intp], window: int, now: float) -> None:
        """Let every longer window of some rows become what the window of this number holds at `now`."""
        ahead = 1 / self.half_lives[window + 1 :] - 1 / self.half_lives[window]
        scale = np.exp2(np.minimum((now - self.landmark) * ahead, MAX_EXPONENT))
        sums = self.sums[rows, None, window] * scale[:, None]
        sums[:, :, -SQUARED:] *= scale[:, None]
        self.sums[rows, window + 1 :] = sums
        self.latency[rows, window + 1 :] = self.latency[rows, None, window] * scale[:, None]

    def clear(self, rows: NDArray[np.intp]) -> None:
        """Set some rows to nothing."""
        self.sums[rows] = 0.0
        self.latency[rows] = 0.0

    def due(self, last: float) -> bool:
        """Whether requests of this time, the latest that come now, are too far from the landmark."""
        return last >= self.landmark + MAX_EXPONENT * float(self.half_lives[0])

    def move_landmark(self, to: float) -> None:
        """Let weights count from a later time on."""
        scale = np.exp2((self.landmark - to) / self.half_lives)
        self.sums *= scale[:, None]
        self.sums[:, :, -SQUARED:] *= scale[:, None]
        self.latency *= scale[:, None].astype(np.float32)
        self.landmark = to

    def grow(self, rows: int) -> None:
        """Make room for at least so many rows."""
        more = max(FIRST_ROWS, int(rows * GROWTH) - len(self.sums))
        self.sums = np.concatenate([self.sums, np.zeros((more, *self.sums.shape[1:]))])
        self.latency = np.concatenate([self.latency, np.zeros((more, *self.latency.shape[1:]), np.float32)])

    def copy(self) -> Arrays:
        """A copy of everything, to be kept; strata whose weights have vanished are left out."""
        alive = np.flatnonzero(self.sums[: len(self.keys)].any(axis=(1, 2)))
        return Arrays(
            half_lives=self.half_lives,
            keys=[self.keys[row] for row in alive.tolist()],
            sums=self.sums[alive],
            latency=self.latency[alive],
            landmark=self.landmark,
            newest=self.newest,
            span=self.span,
        )
