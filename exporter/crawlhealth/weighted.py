"""Weighted sums: what a window holds at one moment, in all and by route and source. Pure, and cheap to make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

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


class View:
    """One site's window of one half-life at one moment: the sums in all, and by route and source.

    `latency_p95` is over ok responses, None where none was timed. The sums of `rows` belong to the (route, source) of
    `keys`; all become objects when they are asked for, as most are not.
    """

    __slots__ = ("_keys", "_rows", "_total", "half_life", "latency_p95")

    def __init__(
        self,
        half_life: float,
        total: Sequence[float] = (),
        latency_p95: float | None = None,
        keys: Sequence[tuple[str, Source]] = (),
        rows: Sequence[Sequence[float]] = (),
    ) -> None:
        self.half_life = half_life
        self._total = total
        self.latency_p95 = latency_p95
        self._keys = keys
        self._rows = rows

    @property
    def requests(self) -> float:
        """All requests, weighted."""
        return sum(self._total[:OUTCOMES])

    @property
    def extractions(self) -> float:
        """Pages that extraction was tried on, weighted."""
        return sum(self._total[OUTCOMES : OUTCOMES + 2])

    @property
    def total(self) -> Sums:
        """The sums of all routes and sources."""
        return Sums(*self._total)

    @property
    def strata(self) -> dict[tuple[str, Source], Sums]:
        """The sums by route and source."""
        return {key: Sums(*row) for key, row in zip(self._keys, self._rows, strict=True)}

    def of(self, source: Source) -> Sums:
        """The sums of one source, all routes together."""
        rows = [row for key, row in zip(self._keys, self._rows, strict=True) if key[1] is source]
        return self.total if len(rows) == len(self._rows) else _sum(rows)

    def routes(self) -> dict[str, Sums]:
        """The sums by route, both sources together; only routes with requests."""
        found: dict[str, list[Sequence[float]]] = {}
        for (route, _), row in zip(self._keys, self._rows, strict=True):
            if any(row[:OUTCOMES]):
                if route in found:
                    found[route].append(row)
                else:
                    found[route] = [row]
        return {route: _sum(rows) for route, rows in found.items()}


def _sum(rows: Sequence[Sequence[float]]) -> Sums:
    return Sums(*rows[0]) if len(rows) == 1 else Sums(*map(sum, zip(*rows, strict=True)))
