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


class _Kept(Report):
    forbidden: bool = False


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Kept)


def encode(report: Report) -> bytes:
    """A report as JSON."""
    return _encoder.encode(report)


def keep(report: Report, *, forbidden: bool) -> bytes:
    """A report as it is kept for repeats of its push; `forbidden` as in intake.Taken."""
    return _encoder.encode(
        _Kept(
            accepted=report.accepted,
            rejected_items=report.rejected_items,
            rejected=report.rejected,
            forbidden=forbidden,
        )
    )


def kept(data: bytes) -> tuple[Report, bool]:
    """What `keep` was given, or an earlier version that kept no more than the report. Raises ValueError."""
    found = _decoder.decode(data)
    report = Report(accepted=found.accepted, rejected_items=found.rejected_items, rejected=found.rejected)
    return report, found.forbidden
