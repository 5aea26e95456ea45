"""Weighted sums: what a window holds at one moment. Pure, and cheap to make."""

from __future__ import annotations

from typing import Final

import msgspec


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


COLUMNS: Final = Sums.__struct_fields__
OUTCOMES: Final = 5
"""How many of the first columns are outcomes: together they are the requests."""
SQUARED: Final = 2
"""How many of the last columns are sums of squared weights."""
