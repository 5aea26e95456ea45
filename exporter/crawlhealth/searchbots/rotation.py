"""Which file of a log is which: rotated by rename, copied and truncated, or new. Nothing here reads on.

A file is known by its inode, its first bytes and those before the place that is read up to: an inode may be used again,
and a copy has another one.
"""

from __future__ import annotations

import functools
import os
import re
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from crawlhealth.history.visits import Place, PlaceKey

HEAD_BYTES: Final = 1024
TAIL_BYTES: Final = 256
DATE_DIGITS: Final = 6
"""A number of so many digits in a name is a date."""
STEADY_SECONDS: Final = 2.0
"""A file that changed longer ago has another time when it changes again."""
PACKED_SUFFIX: Final = ".gz"
_NUMBER: Final = re.compile(r"[.\-_]\d[\dTZ:._\-]*")
_AFTER: Final = re.compile(rf"{_NUMBER.pattern}|[.\-_](?:old|bak|prev)")


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that stands in a log's folder now. `head` are its first bytes, `own` whether it is the log's own path.

    A `steady` one had not changed for a while when it was read: what is read of it holds until its times change.
    """

    key: PlaceKey
    path: str
    size: int
    modified: float
    head: bytes
    own: bool
    steady: bool = False
    _ends: dict[tuple[int, int], bytes] = field(default_factory=dict, compare=False, repr=False)

    def has(self, place: Place) -> bool:
        """Whether its contents go on where a place ends, or at least begin as what that was in."""
        if not place.head or not self.head.startswith(place.head):
            return False
        return self.size < place.offset or self._end(place.offset, len(place.tail)) == place.tail

    def _end(self, offset: int, size: int) -> bytes:
        """So many bytes before an offset."""
        known = self._ends.get((offset, size))
        if known is None:
            known = _read(self.path, offset - size, size)
            if self.steady:
                self._ends.clear()
                self._ends[offset, size] = known
        return known


Seen = dict[str, tuple[tuple[int, ...], File]]
"""Files by their paths as they were seen, each with what says whether it has changed."""


def files(log: str, base: str, paths: Iterable[str], seen: Seen) -> list[File]:
    """The log at a path and what was rotated away from it, the oldest first; for packed ones see `packed.py`.

    `seen` are files as they were before: what has not changed since is not read again.
    """
    found: dict[PlaceKey, File] = {}
    for path in sorted(paths, key=lambda each: each != base):  # its own path first, should two names be one file
        if path.endswith(PACKED_SUFFIX):
            continue
        try:
            status = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            file = _file(log, base, path, status, seen)
            found.setdefault(file.key, file)
    return sorted(found.values(), key=lambda file: (file.own, file.modified, file.path))


def _file(log: str, base: str, path: str, status: os.stat_result, seen: Seen) -> File:
    """A file; as it was seen before where nothing says that it has changed."""
    sign = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    before = seen.get(path)
    if before is not None and before[0] == sign and before[1].steady:
        return before[1]
    file = File(
        key=(log, status.st_dev, status.st_ino),
        path=path,
        size=status.st_size,
        modified=status.st_mtime,
        head=_read(path, 0, HEAD_BYTES),
        own=path == base,
        steady=abs(time.time() - status.st_ctime) > STEADY_SECONDS,
    )
    seen[path] = (sign, file)
    return file


@functools.lru_cache(maxsize=16_384)
def origins(name: str) -> tuple[tuple[str, bool], ...]:
    """The names of logs that are called so when they are rotated, the longest first, each with whether that is sure.

    access.log.1 and access.log-20261130 are, and access-20261130.log; access-2.log may be a log of its own.
    """
    stem, suffix = os.path.splitext(name)
    found: dict[str, bool] = {}
    for at in range(len(name) - 1, 0, -1):
        if name[at] in ".-_" and _AFTER.fullmatch(name, at):
            found[name[:at]] = True
    for at in range(len(stem) - 1, 0, -1):
        if suffix and stem[at] in ".-_" and _NUMBER.fullmatch(stem, at):
            other = stem[:at] + suffix
            if os.path.splitext(other)[0] == stem[:at]:
                found.setdefault(other, sum(map(str.isdigit, stem[at:])) >= DATE_DIGITS)
    return tuple(sorted(found.items(), key=lambda each: -len(each[0])))


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
