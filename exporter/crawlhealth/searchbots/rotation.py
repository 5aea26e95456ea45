"""Which file of a log is which: rotated by rename, copied and truncated, or new. Nothing here reads on.

A file is known by its inode, its first bytes and those before the place that is read up to: an inode may be used again,
and a copy has another one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from crawlhealth.history.visits import Place, PlaceKey

HEAD_BYTES: Final = 1024
TAIL_BYTES: Final = 256
_PACKED: Final = (".gz", ".bz2", ".xz", ".zst", ".zip", ".lz4")


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that stands in a log's folder now. `head` are its first bytes, `own` whether it is the log's own path."""

    key: PlaceKey
    path: str
    size: int
    modified: float
    head: bytes
    own: bool

    def has(self, place: Place) -> bool:
        """Whether its contents go on where a place ends, or at least begin as what that was in."""
        if not place.head or not self.head.startswith(place.head):
            return False
        return self.size < place.offset or _read(self.path, place.offset - len(place.tail), len(place.tail)) == (
            place.tail
        )


def files(log: str, base: str) -> list[File]:
    """The log at a path and what was rotated away from it, the oldest first; for packed ones see `packed.py`."""
    folder, name = os.path.split(base)
    found: dict[PlaceKey, File] = {}
    try:
        names = [each for each in os.listdir(folder or ".") if each == name or _rotated(name).fullmatch(each)]
    except OSError:
        return []
    for each in sorted(names, key=lambda each: each != name):  # its own path first, should two names be one file
        path = os.path.join(folder, each)
        try:
            status = os.stat(path)
            if not os.path.isfile(path):
                continue
            head = _read(path, 0, HEAD_BYTES)
        except OSError:
            continue
        key = (log, status.st_dev, status.st_ino)
        file = File(
            key=key, path=path, size=status.st_size, modified=status.st_mtime, head=head, own=each == name
        )  # fmt: skip
        found.setdefault(key, file)
    return sorted(found.values(), key=lambda file: (file.own, file.modified, file.path))


def rotated(base: str, suffix: str) -> list[str]:
    """The paths of what was rotated away from the log at a path and has this suffix besides."""
    folder, name = os.path.split(base)
    form = _rotated(name)
    try:
        names = [each for each in os.listdir(folder or ".") if each.endswith(suffix)]
    except OSError:
        return []
    return [os.path.join(folder, each) for each in names if form.fullmatch(each.removesuffix(suffix))]


def _rotated(name: str) -> re.Pattern[str]:
    """What a log of this name is called when it is rotated: access.log.1, access.log-20261130, access-20261130.log."""
    stem, suffix = os.path.splitext(name)
    number = r"[.\-_]\d[\dTZ:._\-]*"
    return re.compile(
        f"{re.escape(name)}(?:{number}|[.\\-_](?:old|bak|prev))|{re.escape(stem)}{number}{re.escape(suffix)}"
    )


Changes = dict[PlaceKey, Place | None]
"""Places that change; None: dropped."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Where to read on: the places that change (None: dropped), and the files whose rest is in a copy of them."""

    changes: dict[PlaceKey, Place | None]
    moved: frozenset[PlaceKey]


def settled(base: str, present: Sequence[File], known: Mapping[PlaceKey, Place], *, begun: bool) -> Settled:
    """Where to read on in each file, by what is there and what is known.

    A log that is seen for the first time (`begun` is false) is read from its beginning, and nothing that was rotated
    away from it before. Later, a file that is not known is new, unless it is a copy: of one that was truncated then
    (its rest is read from the copy), or of one that still grows (it waits for the truncation).
    """
    by_key = {file.key: file for file in present}
    intact = {key: place for key, place in known.items() if key in by_key and _intact(by_key[key], place)}
    gone = {key: place for key, place in known.items() if key not in intact}
    changes: dict[PlaceKey, Place | None] = {
        key: msgspec.structs.replace(place, path=by_key[key].path)
        for key, place in intact.items()
        if place.path != by_key[key].path
    }
    growing = [file for file in present if file.own or file.key in intact]
    moved: set[PlaceKey] = set()
    for file in present:
        if file.key in intact:
            continue
        origin = None if file.own or not begun else next((key for key in gone if file.has(gone[key])), None)
        if not begun:
            changes[file.key] = _at(base, file, 0 if file.own else file.size)
        elif origin is not None and origin not in moved and file.size >= gone[origin].offset:
            changes[file.key] = msgspec.structs.replace(gone[origin], path=file.path)
            moved.add(origin)
        elif origin is not None:  # a copy of what is read already
            changes[file.key] = _at(base, file, file.size)
        elif file.own or not _copied(file, growing):
            changes[file.key] = _at(base, file, 0)
    if intact or any(changes.values()):  # else the log is away for a moment
        changes |= {key: None for key in gone if key not in changes}
    return Settled(changes, frozenset(moved))


def lost(present: Sequence[File], known: Mapping[PlaceKey, Place]) -> frozenset[PlaceKey]:
    """The files that are not there any more as they were."""
    by_key = {file.key: file for file in present}
    return frozenset(key for key, place in known.items() if key not in by_key or not _intact(by_key[key], place))


def _intact(file: File, place: Place) -> bool:
    """Whether a file is still the one that a place is in."""
    if file.own and place.path != place.base:
        return False  # what was rotated away never comes back: the inode is used again
    if place.offset == 0:
        return True
    return file.size >= place.offset and file.has(place)


def _copied(file: File, live: Iterable[File]) -> bool:
    """Whether a file is a copy, or a part of one, of a file that still grows."""
    if not file.head:
        return True  # nothing is in it yet
    return any(file.key != other.key and file.size <= other.size and other.head.startswith(file.head) for other in live)


def _at(base: str, file: File, offset: int) -> Place:
    tail = _read(file.path, max(0, offset - TAIL_BYTES), min(offset, TAIL_BYTES)) if offset else b""
    head = file.head[: min(offset, HEAD_BYTES)]
    return Place(base=base, path=file.path, offset=offset, head=head, tail=tail, modified=file.modified)


def _read(path: str, offset: int, size: int) -> bytes:
    """Some bytes of a file, fewer where it has no more; nothing where it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            return os.pread(file.fileno(), size, max(0, offset))
    except OSError:
        return b""


def advanced(place: Place, data: bytes, size: int) -> Place:
    """A place `size` bytes further on, `data` being the place's tail and what was read after it."""
    read = data[: len(place.tail) + size]
    head = place.head
    if len(head) < HEAD_BYTES and len(head) == place.offset:
        head = (head + read[len(place.tail) :])[:HEAD_BYTES]
    return msgspec.structs.replace(place, offset=place.offset + size, head=head, tail=read[-TAIL_BYTES:])


def bases(pattern: Path, known: Iterable[Place], matches: Iterable[str]) -> list[str]:
    """The paths that a log is written to: those that match now, less what was rotated away from another of them."""
    found = sorted({*matches, *(place.base for place in known)} or {str(pattern)})
    return [
        base
        for base in found
        if not base.endswith(_PACKED)
        and not any(
            other != base
            and os.path.dirname(other) == os.path.dirname(base)
            and _rotated(os.path.basename(other)).fullmatch(os.path.basename(base))
            for other in found
        )
    ]
