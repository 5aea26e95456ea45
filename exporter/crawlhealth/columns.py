"""Columns: many tallies as arrays, also straight from their packed bytes: a fifth of the time that objects would take.

A packed tally (`tally.pack`) is a MessagePack array of numbers and, last, a map of the latency histogram. All tallies
are read in step, number by number; one that is not what `pack` writes today is made so first, or refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth import stats
from crawlhealth.tally import Tally, pack, unpack

FIELDS: Final = Tally.__struct_fields__[:-2]
"""The sums that are columns: all of a tally but the seconds of its latency histogram."""
BUCKETS: Final = len(stats.BOUNDS) + 1
AT_ONCE: Final = 8192
"""So many tallies are read together: their bytes stay in the processor's cache."""

_ARRAY: Final = 0x90 + len(Tally.__struct_fields__)
_MAP, _MAP_16 = 0x80, 0xDE
_FLOAT: Final = 0xCB
_WHOLE: Final = np.zeros(256, dtype=np.intp)  # length of a count by its first byte; 0 is none that a tally has
_WHOLE[:0x80] = 1
_WHOLE[[0xCC, 0xCD, 0xCE, 0xCF]] = [2, 3, 5, 9]
_ANY: Final = _WHOLE.copy()  # the same of an amount, which may be broken
_ANY[_FLOAT] = 9
_AMOUNTS: Final = [name in ("credits", "latency_sum") for name in Tally.__struct_fields__[:-1]]
_SHIFTS: Final = np.zeros(256, dtype=np.uint64)  # what follows the first byte, in the eight bytes that are read there
_SHIFTS[[0xCC, 0xCD, 0xCE]] = [56, 48, 32]
_PADDING: Final = bytes(16)

_sums = attrgetter(*FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The sums of n tallies by FIELDS (n, 12), and their latency histograms one after another.

    That of tally i is `bucket` (fine buckets of stats.BOUNDS, in any order) and `count` from `timed[i]` to
    `timed[i + 1]`.
    """

    values: NDArray[np.float64]
    timed: NDArray[np.intp]
    bucket: NDArray[np.uint16]
    count: NDArray[np.float32]


def of_tallies(tallies: Sequence[Tally]) -> Columns:
    """Tallies as arrays."""
    histograms = [tally.latency for tally in tallies]
    buckets = [index for histogram in histograms for index in histogram]
    return Columns(
        values=np.array([_sums(tally) for tally in tallies], dtype=np.float64).reshape(-1, len(FIELDS)),
        timed=_begins([len(histogram) for histogram in histograms]),
        bucket=np.clip(np.array(buckets, dtype=np.int64), 0, BUCKETS - 1).astype(np.uint16),
        count=np.array([n for histogram in histograms for n in histogram.values()], dtype=np.float64).astype(
            np.float32
        ),
    )


def unpacked(blobs: Sequence[bytes]) -> Columns:
    """Packed tallies as arrays. Raises ValueError for one that is none."""
    pieces = [_piece(blobs[first : first + AT_ONCE]) for first in range(0, len(blobs), AT_ONCE)]
    if not pieces:
        return of_tallies(())
    lengths = np.concatenate([np.diff(piece.timed) for piece in pieces])
    return Columns(
        values=np.concatenate([piece.values for piece in pieces]),
        timed=_begins(lengths),
        bucket=np.concatenate([piece.bucket for piece in pieces]),
        count=np.concatenate([piece.count for piece in pieces]),
    )


def _begins(lengths: Iterable[int] | NDArray[np.intp]) -> NDArray[np.intp]:
    ends = np.cumsum(np.fromiter(lengths, dtype=np.intp), dtype=np.intp)
    return np.concatenate([np.zeros(1, dtype=np.intp), ends])


def _piece(blobs: Sequence[bytes]) -> Columns:
    columns, strange = _parsed(blobs)
    if len(strange):
        again = list(blobs)
        for number in strange.tolist():
            again[number] = pack(unpack(again[number]))
        columns, strange = _parsed(again)
        if len(strange):
            raise ValueError("not a packed tally")
    return columns


class _Bytes:
    """The joined bytes of tallies. To be at `lost` is not to have understood: it lies beyond all of them."""

    def __init__(self, blobs: Sequence[bytes]) -> None:
        joined = b"".join(blobs)
        self.lost = len(joined) + 1
        self.octets = np.frombuffer(joined + _PADDING, dtype=np.uint8)
        self.words: NDArray[np.uint64] = np.ndarray((self.lost + 2,), ">u8", joined + _PADDING, 0, (1,))
        self.ends = np.cumsum(np.fromiter(map(len, blobs), dtype=np.intp, count=len(blobs)))
        self.starts = np.concatenate([np.zeros(1, dtype=np.intp), self.ends[:-1]])

    def numbers(
        self, at: NDArray[np.intp], known: NDArray[np.intp] = _WHOLE
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """The numbers at these places, of the `known` kinds, and the places behind them."""
        first = self.octets[at]
        lengths = known[first]
        found = first.astype(np.float64)
        long = np.flatnonzero(lengths > 1)
        if len(long):
            kinds = first[long]
            words = self.words[at[long] + 1].astype(np.uint64)
            numbers = (words >> _SHIFTS[kinds]).astype(np.float64)
            floats = kinds == _FLOAT
            numbers[floats] = words[floats].view(np.float64)
            found[long] = numbers
        return found, np.where(lengths > 0, np.minimum(at + lengths, self.lost), self.lost)

    def maps(self, at: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """How many entries the maps at these places have, and the places of the first ones."""
        first = self.octets[at]
        small, large = (first & 0xF0) == _MAP, first == _MAP_16
        counts = np.where(small, first & 0x0F, 0).astype(np.intp)
        counts[large] = self.octets[at[large] + 1].astype(np.intp) * 256 + self.octets[at[large] + 2]
        behind = at + np.where(large, 3, 1)
        good = (small | large) & (2 * counts <= self.ends - behind)
        return np.where(good, counts, 0), np.where(good, behind, self.lost)


def _parsed(blobs: Sequence[bytes]) -> tuple[Columns, NDArray[np.intp]]:
    """Packed tallies as arrays, and the numbers of those that are packed in another way: their arrays are wrong."""
    data = _Bytes(blobs)
    at = np.where(data.octets[data.starts] == _ARRAY, data.starts + 1, data.lost)
    values = np.empty((len(blobs), len(FIELDS) + 1))
    for column, amount in enumerate(_AMOUNTS):
        values[:, column], at = data.numbers(at, _ANY if amount else _WHOLE)
    lengths, at = data.maps(at)
    timed = _begins(lengths)
    parts = np.empty((2, timed[-1]))
    some = np.flatnonzero(lengths)
    done, here, left = timed[some], at[some], lengths[some]
    while len(some):
        for part in parts:
            part[done], here = data.numbers(here)
        at[some] = here
        done, left = done + 1, left - 1
        if not left.all():
            going = left > 0
            some, done, here, left = some[going], done[going], here[going], left[going]
    strange = (at != data.ends) | ~np.isfinite(values[:, -2:]).all(axis=1)
    columns = Columns(
        values=values[:, : len(FIELDS)],
        timed=timed,
        bucket=np.minimum(parts[0], BUCKETS - 1).astype(np.uint16),
        count=parts[1].astype(np.float32),
    )
    return columns, np.flatnonzero(strange)
