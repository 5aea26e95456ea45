"""Failure: the one exception inside a fetch."""

from __future__ import annotations

from crawlhealth.outcome import Reason


class Failure(Exception):
    """A fetch that ends without a complete answer: its reason, and a detail for people that holds no secret."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
