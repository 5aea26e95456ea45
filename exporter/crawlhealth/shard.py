"""Shards: which of several exporters a site belongs to, the same for everybody who asks, without a word between them.

The shard of a site follows from its name and from how many shards there are, by jump consistent hashing (Lamping and
Veach, 2014, arXiv:1406.2294) of the first eight bytes of the name's BLAKE2b digest, big-endian. Going from n to n+1
shards moves one site in n+1, and only to the new shard.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

MOST: Final = 1_000
_WRITTEN: Final = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` shards, by its number from 1. Written `2 of 3`."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number} of {self.count}"

    @property
    def written(self) -> str:
        """As `parse` reads it: `2/3`."""
        return f"{self.number}/{self.count}"

    def has(self, site: str) -> bool:
        """Whether a site belongs to this shard."""
        return number_of(site, self.count) == self.number


def parse(written: str) -> Shard:
    """A shard as written, `2/3`. Raises ValueError that says what to write instead."""
    match = _WRITTEN.fullmatch(written)
    if match is None:
        raise ValueError(f"{written!r} is no shard: write its number and how many there are, as in 1/3")
    number, count = int(match[1]), int(match[2])
    if not 1 <= count <= MOST:
        raise ValueError(f"{count} shards: write 1 to {MOST}")
    if not 1 <= number <= count:
        raise ValueError(f"there is no shard {number} of {count}: write 1/{count} to {count}/{count}")
    return Shard(number, count)


def number_of(site: str, count: int) -> int:
    """The number, from 1, of the shard out of `count` that a site belongs to. `count` is 1 or more."""
    key = int.from_bytes(blake2b(site.encode(), digest_size=64).digest()[:8], "big")
    bucket, jump = -1, 0
    while jump < count:
        bucket = jump
        key = (key * 2862933555777941757 + 1) & 0xFFFF_FFFF_FFFF_FFFF
        jump = int((bucket + 1) * ((1 << 31) / ((key >> 33) + 1)))
    return bucket + 1
