"""Weighted sums: what a window holds at one moment, in all and by route and source. Pure, and cheap to make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

from crawlhealth.outcome import Source
from crawlhealth.verdict import Rates


class Sums(msgspec.Struct, frozen=True, gc=False):
    """Weighted sums of observations: the fields of a Tally, each request counted with its weight.

    `answered_squares` and `error_squares` sum the squared weights of requests that were answered, and of errors: the
    effective size of a window is (sum of weights)^2 / (sum of squares).
    """

    ok: float = 0.0
    hard_block: float = 0.0
    challenge: float = 0.0
    soft_block: float = 0.0
    error: float = 0.0
    extractions_ok: float = 0.0
    extractions_failed: float = 0.0
    records_valid: float = 0.0
    records_invalid: float = 0.0
    bytes: float = 0.0
    retries: float = 0.0
    credits: float = 0.0
    answered_squares: float = 0.0
    error_squares: float = 0.0

    @property
    def requests(self) -> float:
        """All requests, whatever came of them."""
        return self.ok + self.hard_block + self.challenge + self.soft_block + self.error

    @property
    def refused(self) -> float:
        """Requests that were refused in any way."""
        return self.hard_block + self.challenge + self.soft_block

    @property
    def extractions(self) -> float:
        """Pages that extraction was tried on."""
        return self.extractions_ok + self.extractions_failed

    def rates(self, latency_p95: float | None, *, extraction: float | None) -> Rates | None:
        """The signals, with those that are measured elsewhere; None without a request."""
        requests = self.requests
        if requests <= 0:
            return None
        return Rates(
            hard_block=self.hard_block / requests,
            challenge=self.challenge / requests,
            soft_block=self.soft_block / requests,
            latency_p95=latency_p95,
            extraction=extraction,
        )


COLUMNS: Final = Sums.__struct_fields__
OUTCOMES: Final = 5
"""How many of the first columns are outcomes: together they are the requests."""
SQUARED: Final = 2
"""How many of the last columns are sums of squared weights."""


class Strata(msgspec.Struct, frozen=True, gc=False):
    """All that the windows hold of one site at one moment, as the arrays in which it was computed.

    `totals` is by half-life and column, `rows` by stratum, half-life and column, in the order of `keys`.
    """

    keys: Sequence[tuple[str, Source]]
    totals: NDArray[np.float64]
    rows: NDArray[np.float64]


class View(msgspec.Struct, frozen=True, gc=False):
    """One site's window of one half-life at one moment: the sums in all, and by route and source.

    `requests` and `extractions` (pages that extraction was tried on) are weighted, `latency_p95` is over ok responses,
    None where none was timed. What else the window (`number` in the arrays) `holds` becomes objects when it is asked
    for: most never is.
    """

    half_life: float
    requests: float = 0.0
    extractions: float = 0.0
    latency_p95: float | None = None
    holds: Strata | None = None
    number: int = 0

    @property
    def total(self) -> Sums:
        """The sums of all routes and sources."""
        return Sums() if self.holds is None else Sums(*self.holds.totals[self.number].tolist())

    @property
    def strata(self) -> dict[tuple[str, Source], Sums]:
        """The sums by route and source."""
        if self.holds is None:
            return {}
        rows = self.holds.rows[:, self.number].tolist()
        return {key: Sums(*row) for key, row in zip(self.holds.keys, rows, strict=True)}


def of_source(strata: Mapping[tuple[str, Source], Sums], source: Source) -> Sums:
    """The sums of one source, all routes together."""
    return added([sums for key, sums in strata.items() if key[1] is source])


def by_route(strata: Mapping[tuple[str, Source], Sums]) -> dict[str, Sums]:
    """The sums by route, both sources together; only routes with requests."""
    found: dict[str, Sums] = {}
    for (route, _), sums in strata.items():
        if sums.requests:
            found[route] = sums if route not in found else added([found[route], sums])
    return found


def added(several: Sequence[Sums]) -> Sums:
    """The sums of several strata together."""
    return several[0] if len(several) == 1 else Sums(*map(sum, zip(*map(astuple, several), strict=True)))
