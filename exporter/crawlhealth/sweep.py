"""Sweep: what the windows of many strata hold at the end of each of many steps, all steps at once. Pure.

The sums are those of `windows.Windows` to rounding. There, weights grow with time so that late data finds its place;
here all comes in the order of time, and every step is the one before, faded, with what came. A site whose windows are
reset is swept again from there on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from crawlhealth.arrays import ANSWERED, BUCKETS, PLAIN, Arrays
from crawlhealth.panel import Panel
from crawlhealth.quantiles import P95, by_site, cumulated, low_shares, middles, reached
from crawlhealth.weighted import COLUMNS, SQUARED

Array = NDArray[np.float64]
Floating = TypeVar("Floating", np.float64, np.float32)

RESOLUTION: Final = 60.0
"""Seconds of the finest slots: longer steps are spread over so many of them."""


@dataclass(slots=True, kw_only=True)
class Held:
    """What the windows of R strata hold at one moment: sums (R, K, C) and histograms (R, K, buckets)."""

    sums: Array
    latency: NDArray[np.float32]

    @classmethod
    def empty(cls, rows: int, half_lives: int) -> Held:
        """Nothing."""
        return cls(
            sums=np.zeros((rows, half_lives, len(COLUMNS))),
            latency=np.zeros((rows, half_lives, BUCKETS), dtype=np.float32),
        )

    def more(self, rows: int) -> Held:
        """With room for so many rows in all."""
        empty = Held.empty(rows - len(self.sums), self.sums.shape[1])
        return Held(sums=np.concatenate([self.sums, empty.sums]), latency=np.concatenate([self.latency, empty.latency]))

    def of(self, rows: NDArray[np.intp]) -> Held:
        """A copy of what some rows hold."""
        return Held(sums=self.sums[rows], latency=self.latency[rows])

    def reset(self, rows: NDArray[np.intp], window: int) -> None:
        """Let every longer window of some rows become what the window of this number holds."""
        self.sums[rows, window + 1 :] = self.sums[rows, None, window]
        self.latency[rows, window + 1 :] = self.latency[rows, None, window]


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What came to R strata in T steps of `seconds` each: sums (T, R, columns of a tally), and latencies.

    `timed` is (T, R, buckets of `span`), None where nothing was timed; `span` is the first fine bucket that has ever
    held something, and the one behind the last.
    """

    seconds: float
    values: Array
    timed: NDArray[np.float32] | None
    span: tuple[int, int]

    def of(self, rows: NDArray[np.intp], first: int) -> Came:
        """What came to some rows from a step on."""
        return Came(
            seconds=self.seconds,
            values=self.values[first:, rows],
            timed=None if self.timed is None else self.timed[first:, rows],
            span=self.span,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What the windows of R strata hold at the end of each of T steps: sums (T, R, K, C), histograms (T, R, K, span).

    `half_lives` are in seconds; `latency` is None where nothing has ever been timed.
    """

    half_lives: Array
    sums: Array
    latency: NDArray[np.float32] | None
    span: tuple[int, int]

    def at(self, step: int, rows: NDArray[np.intp] | slice = slice(None)) -> Held:
        """A copy of what some rows hold at the end of one step."""
        sums = self.sums[step, rows].copy()
        latency = np.zeros((*sums.shape[:2], BUCKETS), dtype=np.float32)
        if self.latency is not None:
            latency[..., self.span[0] : self.span[1]] = self.latency[step, rows]
        return Held(sums=sums, latency=latency)

    def hold(self, held: Held, step: int, rows: NDArray[np.intp]) -> None:
        """Let some rows hold something else at the end of one step."""
        self.sums[step, rows] = held.sums
        if self.latency is not None:
            self.latency[step, rows] = held.latency[..., self.span[0] : self.span[1]]

    def put(self, other: Swept, first: int, rows: NDArray[np.intp]) -> None:
        """Take another sweep of some rows in place of what was here from a step on."""
        self.sums[first:, rows] = other.sums
        if self.latency is not None and other.latency is not None:
            self.latency[first:, rows] = other.latency

    def panel(self, owner: NDArray[np.intp], sites: int) -> Panel:
        """All steps as one panel: the sites of the first step, those of the second, and so on; without their names.

        `owner` are the places of the sites of the rows, ascending.
        """
        steps, rows = self.sums.shape[:2]
        every = (owner[None, :] + sites * np.arange(steps)[:, None]).ravel()
        block = self.sums.reshape(steps * rows, *self.sums.shape[2:])
        begins = np.flatnonzero(np.diff(every, prepend=-1))
        totals = block
        if not len(begins) == len(every) == steps * sites:
            totals = np.zeros((steps * sites, *block.shape[1:]))
            if len(begins):
                totals[every[begins]] = np.add.reduceat(block, begins, axis=0)
        p95, low, site_p95 = self._quantiles(block, every, begins, steps * sites)
        return Panel(
            sites=("",) * (steps * sites),
            half_lives=self.half_lives,
            keys=(),
            owner=every,
            row_ids=np.zeros(0, dtype=np.intp),
            rows=block,
            totals=totals,
            p95=p95,
            p95_low=low,
            site_p95=site_p95,
        )

    def _quantiles(
        self, block: Array, owner: NDArray[np.intp], begins: NDArray[np.intp], sites: int
    ) -> tuple[Array, Array, Array]:
        """p95, its lower bound, and p95 by site, as `quantiles.Quantiles` reads them."""
        shape = block.shape[:2]
        site_p95 = np.full((sites, shape[1]), np.nan)
        if self.latency is None:
            return np.full(shape, np.nan), np.full(shape, np.nan), site_p95
        timed = cumulated(self.latency.reshape(*shape, -1))
        p95 = self._seconds(timed, P95)
        low = self._seconds(timed, low_shares(block, timed[-1].astype(np.float64)))
        together = p95 if len(begins) == len(owner) else self._seconds(by_site(timed, begins), P95)
        site_p95[owner[begins]] = together
        return p95, low, site_p95

    def _seconds(self, sums: NDArray[np.float32], shares: Array | float) -> Array:
        found = middles(self.span[0] + reached(sums, shares))
        return np.where(sums[-1] > 0, found, np.nan)


def swept(half_lives: Array, before: Held, came: Came) -> Swept:
    """What windows of these half-lives (seconds, shortest first) hold at the end of each step, from `before` on."""
    ages = np.array([-came.seconds])
    means, squares = Arrays.empty(half_lives).weights(ages, -ages, RESOLUTION, half_lives)
    mean, square, fade = means[0], squares[0], np.exp2(-came.seconds / half_lives)
    added = np.empty((*came.values.shape[:2], len(half_lives), len(COLUMNS)))
    np.multiply(came.values[:, :, None, :], mean[:, None], out=added[..., :PLAIN])
    added[..., -2] = came.values[:, :, :ANSWERED].sum(axis=-1)[..., None] * square
    added[..., -1] = came.values[:, :, ANSWERED, None] * square
    fades = np.repeat(fade[:, None], len(COLUMNS), axis=1)
    fades[:, -SQUARED:] *= fade[:, None]
    sums = _faded(before.sums, added, fades)
    low, high = came.span
    if high <= low:
        return Swept(half_lives=half_lives, sums=sums, latency=None, span=came.span)
    kept = before.latency[..., low:high]
    timed = np.zeros((len(sums), *kept.shape), dtype=np.float32)
    if came.timed is not None:
        np.multiply(came.timed[:, :, None, :], mean.astype(np.float32)[:, None], out=timed)
    latency = _faded(kept, timed, fade.astype(np.float32)[:, None])
    return Swept(half_lives=half_lives, sums=sums, latency=latency, span=came.span)


def _faded(before: NDArray[Floating], added: NDArray[Floating], fade: NDArray[Floating]) -> NDArray[Floating]:
    """Sums after each step, in the place of what is added: those before faded, and what came."""
    held = before
    for step in range(len(added)):
        added[step] += held * fade
        held = added[step]
    return added
