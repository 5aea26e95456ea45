"""Panel: what the windows hold of many sites at one moment, as plain arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from crawlhealth.outcome import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What the windows hold of N sites at one moment, by K half-lives (shortest first) and C columns.

    The columns are weighted.COLUMNS. The R rows are strata, those of one site side by side, in the order of `sites`. A
    site without rows has totals of 0. Latencies are over ok responses, NaN where none was timed.
    """

    sites: Sequence[str]
    """N."""
    half_lives: NDArray[np.float64]
    """K, seconds."""
    keys: Sequence[tuple[str, Source]]
    """R: route and source, made when they are asked for."""
    owner: NDArray[np.intp]
    """R: the place of the row's site in `sites`, ascending."""
    row_ids: NDArray[np.intp]
    """R: the number of the row in the windows, the same as long as the process lives."""
    rows: NDArray[np.float64]
    """R, K, C: weighted sums (squares weigh by squared weights)."""
    totals: NDArray[np.float64]
    """N, K, C: the sums of all rows of a site."""
    p95: NDArray[np.float64]
    """R, K: seconds."""
    p95_low: NDArray[np.float64]
    """R, K: the lower bound of p95, one-sided, 90 % (quantiles.low_shares)."""
    site_p95: NDArray[np.float64]
    """N, K: p95 of all rows of a site together."""


class Keys(Sequence[tuple[str, Source]]):
    """Route and source of some strata of a growing list, by their place in it."""

    __slots__ = ("_ids", "_strata")

    def __init__(self, strata: Sequence[tuple[str, str, Source]], ids: NDArray[np.intp]) -> None:
        self._strata = strata
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> tuple[str, Source]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[str, Source]]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, Source] | Sequence[tuple[str, Source]]:
        if isinstance(index, slice):
            return Keys(self._strata, self._ids[index])
        _, route, source = self._strata[self._ids[index]]
        return route, source

    def __iter__(self) -> Iterator[tuple[str, Source]]:
        strata = self._strata
        return (strata[row][1:] for row in self._ids.tolist())
