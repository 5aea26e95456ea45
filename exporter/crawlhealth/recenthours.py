"""Recent hours: what came of some strata in each of the last hours, and how their sites were judged. Pure.

A replay keeps here what the running exporter reads from its history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from crawlhealth import marks as hours_judged
from crawlhealth.baseline import HOUR, Hours
from crawlhealth.outcome import Source

Array = NDArray[np.float64]
Number = TypeVar("Number", np.float64, np.uint8)
COLUMNS: Final = 12
"""Columns of a tally."""


class RecentHours:
    """The last hours of all strata, with their marks; the hour that runs is apart from them."""

    def __init__(self, length: int, places: Mapping[str, int]) -> None:
        self._length = length
        self._places = places
        self._keys: list[tuple[str, str, Source]] = []
        self._counts = np.zeros((0, COLUMNS, length))  # read column by column
        self._p95 = np.full((0, length), np.nan)
        self._marks = np.full((len(places), length), hours_judged.NONE, dtype=np.uint8)
        self._hour: float | None = None
        self.count = 0
        self._running = np.zeros((0, COLUMNS))
        self._slow = np.zeros((0, 2))
        self._mark = np.full(len(places), hours_judged.NONE, dtype=np.uint8)

    def __len__(self) -> int:
        return self._length

    def enter(self, keys: Sequence[tuple[str, str, Source]]) -> None:
        """Know strata; those known before come first among them."""
        more = len(keys) - len(self._keys)
        if more > 0:
            self._keys.extend(keys[len(self._keys) :])
            self._counts = np.concatenate([self._counts, np.zeros((more, COLUMNS, self._length))])
            self._p95 = np.concatenate([self._p95, np.full((more, self._length), np.nan)])
            self._running = np.concatenate([self._running, np.zeros((more, COLUMNS))])
            self._slow = np.concatenate([self._slow, np.zeros((more, 2))])

    def add(self, start: float, rows: NDArray[np.intp], values: Array, slow: Array | None) -> None:
        """Add what came of some strata in a step."""
        if self._hour is None:
            self._hour = start // HOUR * HOUR
        self._running[rows] += values
        if slow is not None:
            timed = ~np.isnan(slow)
            served = values[timed, 0]
            self._slow[rows[timed], 0] += np.log(slow[timed]) * served
            self._slow[rows[timed], 1] += served

    def mark(self, marks: NDArray[np.uint8]) -> None:
        """Note how the sites were judged in the hour that runs."""
        self._mark = hours_judged.worse(self._mark, marks)

    def over(self, now: float) -> int:
        """How many hours there will be at `now`."""
        return self.count + (0 if self._hour is None else max(0, int((now - self._hour) // HOUR)))

    def close(self, now: float) -> None:
        """End the hour when it is over."""
        if self._hour is None or now < self._hour + HOUR:
            return
        place = self.count % self._length
        self._counts[:, :, place] = self._running
        served = self._slow[:, 1]
        self._p95[:, place] = np.where(served > 0, np.exp(self._slow[:, 0] / np.where(served > 0, served, 1.0)), np.nan)
        self._marks[:, place] = self._mark
        self._running[:] = 0.0
        self._slow[:] = 0.0
        self._mark[:] = hours_judged.NONE
        self.count += 1
        self._hour += HOUR

    def told(self, sites: Sequence[str]) -> Hours | None:
        """The hours, oldest first; None before the first."""
        held = min(self.count, self._length)
        if self._hour is None or not held:
            return None
        begin = (self.count - held) % self._length
        rows = np.argsort([self._places[key[0]] for key in self._keys], kind="stable")
        return Hours(
            sites=sites,
            keys=[self._keys[row][1:] for row in rows.tolist()],
            owner=np.array([self._places[self._keys[row][0]] for row in rows.tolist()], dtype=np.intp),
            counts=_in_order(self._counts[rows], begin, held).transpose(0, 2, 1),
            p95=_in_order(self._p95[rows], begin, held),
            marks=_in_order(self._marks, begin, held),
            end=self._hour,
        )


def _in_order(ring: NDArray[Number], begin: int, held: int) -> NDArray[Number]:
    """So many entries of a ring along its last axis, from the one at `begin` on."""
    beyond = max(0, begin + held - ring.shape[-1])
    return np.concatenate([ring[..., begin : begin + held], ring[..., :beyond]], axis=-1)
