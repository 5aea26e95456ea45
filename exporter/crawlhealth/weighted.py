"""Weighted sums: what a window holds at one moment, in all and by route and source. Pure, and cheap to make."""

from __future__ import annotations

from typing import Final

import msgspec

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
