"""A snapshot of the windows: one file beside the history, so that a start does not have to read hours of slots."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from crawlhealth.arrays import BUCKETS, Arrays, Stratum
from crawlhealth.weighted import COLUMNS

FILE_NAME = "windows.npz"
"""What the file is called, beside the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a snapshot belongs to: a database by its identity, the last commit, import and reset in it.

    `rebuilt` are sites that hold later commits than `sequence`, and which.
    """

    identity: str
    sequence: int
    generation: int
    half_lives: tuple[float, ...]
    resolution: float
    rebuilt: Mapping[str, int]
    resets: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    mark: Mark
    keys: list[Stratum]
    landmark: float
    newest: float
    columns: tuple[str, ...] = COLUMNS


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Head).decode


def save(path: Path, mark: Mark, arrays: Arrays) -> None:
    """Write a snapshot in place of the one before, whole or not at all. Raises OSError."""
    head = _Head(mark=mark, keys=arrays.keys, landmark=arrays.landmark, newest=arrays.newest)
    fresh = path.with_name(path.name + ".new")
    try:
        with fresh.open("wb") as file:
            np.savez(file, head=np.frombuffer(_encode(head), dtype=np.uint8), sums=arrays.sums, latency=arrays.latency)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def load(path: Path) -> tuple[Mark, Arrays] | None:
    """The snapshot, None when there is none or it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as parts:
            head = _decode(parts["head"].tobytes())
            sums, latency = parts["sums"], parts["latency"]
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    shape = (len(head.keys), len(head.mark.half_lives))
    if head.columns != COLUMNS or sums.shape != (*shape, len(COLUMNS)) or latency.shape != (*shape, BUCKETS):
        return None
    used = np.flatnonzero(latency.any(axis=(0, 1)))
    return head.mark, Arrays(
        half_lives=np.array(head.mark.half_lives),
        keys=head.keys,
        sums=sums,
        latency=latency,
        landmark=head.landmark,
        newest=head.newest,
        span=(int(used[0]), int(used[-1]) + 1) if len(used) else None,
    )
