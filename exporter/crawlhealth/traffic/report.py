"""What a push is answered: how many items were taken, and every one that was not, by its index and with the reason."""

from __future__ import annotations

from typing import Final

import msgspec

MAX_NAMED: Final = 100
"""Rejected items that are named; of the others only the number is given."""
MAX_REASON_CHARS: Final = 200


class Rejected(msgspec.Struct, frozen=True):
    """One item that was not taken. `index` counts the items of the push from 0; blank lines are none."""

    index: int
    reason: str


class Report(msgspec.Struct, kw_only=True):
    """The answer to one push. An accumulator. `rejected` has the first of them, `rejected_items` is how many."""

    accepted: int = 0
    rejected_items: int = 0
    rejected: list[Rejected] = []

    @property
    def items(self) -> int:
        """All items of the push."""
        return self.accepted + self.rejected_items

    def reject(self, reason: str) -> None:
        """Note that the next item was not taken."""
        if self.rejected_items < MAX_NAMED:
            self.rejected.append(Rejected(self.items, reason[:MAX_REASON_CHARS]))
        self.rejected_items += 1


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Report)


def encode(report: Report) -> bytes:
    """A report as JSON."""
    return _encoder.encode(report)


def decode(data: bytes) -> Report:
    """The report that `encode` wrote. Raises ValueError."""
    return _decoder.decode(data)
