"""What a crawler says of one request, and how many of them travel together."""

from __future__ import annotations

import gzip
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

MAX_BODY: Final = 262_144
"""How much of a page is sent to be classified, in bytes or characters."""
MAX_TOGETHER: Final = 4_000_000
"""Characters of pages that one batch begins with at most."""
MAX_LINES: Final = 8_000_000
"""Bytes of a batch before compression, well under what a push may decode to."""
_LEVEL: Final = 1


Bytes = bytes  # the name is that of a field, too


class Report(msgspec.Struct, kw_only=False, omit_defaults=True, gc=False):
    """One observation in the words of the push API.

    A msgspec structure, for it is made on the crawler's own thread. What is None is not sent: `records_valid=0` says
    that records were expected and none was found, None says nothing.
    """

    at: float
    site: str = ""
    outcome: str | None = None
    reason: str | None = None
    route: str = "direct"
    seconds: float | None = None
    bytes: int = 0
    retries: int = 0
    credits: float = 0
    records_valid: int | None = None
    records_invalid: int = 0
    fields_missing: Sequence[str] | None = None
    page_type: str = ""
    count: int = 1
    url: str = ""
    status: int | None = None
    headers: dict[str, str] | None = None
    final_url: str = ""
    body: str | None = None
    body_base64: Bytes | None = None

    @property
    def body_size(self) -> int:
        """How much of a page it carries."""
        return len(self.body or self.body_base64 or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Reports that travel together: NDJSON, gzipped. `key` makes sure that a repeat is not counted again."""

    key: str
    count: int
    data: bytes


_encoder = msgspec.json.Encoder()


def pack(reports: Sequence[Report]) -> tuple[list[Batch], int]:
    """Reports as batches that a push takes, and how many of them cannot be written down at all."""
    try:
        lines = _encoder.encode_lines(reports)
    except (TypeError, ValueError, OverflowError):
        sound = [report for report in reports if _writable(report)]
        if len(sound) == len(reports):
            raise
        batches, unwritable = pack(sound)
        return batches, unwritable + len(reports) - len(sound)
    if len(lines) > MAX_LINES and len(reports) > 1:
        half = len(reports) // 2
        first, second = pack(reports[:half]), pack(reports[half:])
        return first[0] + second[0], first[1] + second[1]
    return ([batch(lines, len(reports))] if reports else []), 0


def batch(lines: bytes, count: int) -> Batch:
    """A batch of `count` lines with a key of its own."""
    return Batch(key=uuid.uuid4().hex, count=count, data=gzip.compress(lines, _LEVEL, mtime=0))


def halves(whole: Batch) -> tuple[Batch, Batch] | None:
    """A batch as two, None for one that has a single line."""
    lines = gzip.decompress(whole.data).splitlines(keepends=True)
    if len(lines) < 2:
        return None
    half = len(lines) // 2
    return batch(b"".join(lines[:half]), half), batch(b"".join(lines[half:]), len(lines) - half)


def _writable(report: Report) -> bool:
    try:
        _encoder.encode(report)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
