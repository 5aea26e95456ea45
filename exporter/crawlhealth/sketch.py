"""Sketch: a large set of features as a short text that can be held against another. Pure.

The 128 smallest hashes of a set stand for it (bottom-k sketch, Cohen and Kaplan 2007): exact for sets up to that size,
and within a few percent beyond.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

SIZE: Final = 128
"""Hashes that are kept."""


def sketch(features: Iterable[str]) -> str:
    """The sketch of a set of features."""
    hashes = {
        int.from_bytes(blake2b(feature.encode("utf-8", "replace"), digest_size=4).digest()) for feature in features
    }
    kept = sorted(hashes)[:SIZE]
    return b64encode(struct.pack(f">{len(kept)}I", *kept)).decode("ascii")


def likeness(one: str, other: str) -> float:
    """What two sets have in common of what they have together (Jaccard), 0 to 1. Raises ValueError for no sketch."""
    first, second = _hashes(one), _hashes(other)
    together = sorted(first | second)[:SIZE]
    if not together:
        return 1.0
    return sum(1 for value in together if value in first and value in second) / len(together)


def short(text: str) -> str:
    """A name of eight characters for a sketch, to be shown to people."""
    return blake2b(text.encode(), digest_size=4).hexdigest()


def _hashes(text: str) -> frozenset[int]:
    data = b64decode(text, validate=True)
    if len(data) % 4 or len(data) > 4 * SIZE:
        raise ValueError("not a sketch")
    return frozenset(struct.unpack(f">{len(data) // 4}I", data))
