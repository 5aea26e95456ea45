"""Following one configured log: every line of all its files once, over rotations and restarts."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from crawlhealth.history.visits import Place, PlaceKey
from crawlhealth.searchbots import packed, rotation
from crawlhealth.searchbots.claims import PACKED, Claims, Folders, origin
from crawlhealth.searchbots.source import BOM, CHUNK_BYTES, MAX_LINE_BYTES
from crawlhealth.searchbots.troubles import why_unread

log = logging.getLogger(__name__)

MAX_FILES: Final = 1000
"""Paths of one log."""
MAX_LOOKS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Whole lines of one file, and the place after them: to be kept in the same transaction as what they say."""

    key: PlaceKey
    place: Place
    chunk: bytes


class Follower:
    """Reads what is new of one log, from the places that are on disk. When a transaction fails, begin with a new one.

    `behind` is how many bytes were there and not read at the end of the last pass, `left_out` how many paths are too
    many for one log. The file at each path is kept open,
    so that one that is deleted right after its rotation is read to its end.
    """

    def __init__(self, name: str, pattern: Path, places: Mapping[PlaceKey, Place]) -> None:
        self._name = name
        self._pattern = pattern
        self._places = dict(places)
        self._open: dict[PlaceKey, int] = {}
        self._sizes: dict[PlaceKey, int] = {}
        self._modified: dict[PlaceKey, float] = {}
        self._unpacked: dict[PlaceKey, packed.Contents] = {}
        self._over: set[PlaceKey] = set()
        """Compressed files that are read to their end."""
        self._sought: set[PlaceKey] = set()
        """Files that are gone and need not be looked for among compressed ones (again)."""
        self._first = True
        self._seen: rotation.Seen = {}
        self._own: set[str] = set()
        self._refused: dict[str, str] = {}
        self._folders = Folders(Claims({}, frozenset()), ())
        self.behind = 0
        self.left_out = 0

    def close(self) -> None:
        """Close all files."""
        for descriptor in self._open.values():
            os.close(descriptor)
        for contents in self._unpacked.values():
            contents.close()
        self._open.clear()
        self._unpacked.clear()

    def look(self, claims: Claims | None = None) -> dict[PlaceKey, Place | None]:
        """See which files are there; the places that change by it, which belong into the next transaction.

        `claims` say which paths are this log's and which another's; without them it is the only one.
        """
        changes: dict[PlaceKey, Place | None] = {}
        self._sizes.clear()
        self._modified.clear()
        self._own.clear()
        bases = self._bases(claims or Claims.of({self._name: self._pattern}), changes)
        by_base: dict[str, dict[PlaceKey, Place]] = {}
        for key, place in self._places.items():
            by_base.setdefault(place.base, {})[key] = place
        for base in bases:
            every = by_base.get(base, {})
            known = {key: place for key, place in every.items() if not packed.is_packed(place)}
            present = self._present(base, known)
            found = rotation.settled(base, present, known, begun=bool(every))
            self._own |= {file.path for file in present if file.own}
            self._sizes |= {file.key: file.size for file in present}
            self._modified |= {file.key: file.modified for file in present}
            for key in [key for key, place in found.changes.items() if place is None]:
                if key not in self._sizes and key not in found.moved and self._unread(key, known[key]):
                    del found.changes[key]  # deleted, but still open and not read to its end
            changes |= found.changes
            lost = {key: known[key] for key in rotation.lost(present, known) - found.moved}
            changes |= self._compressed(base, lost, every, here={file.key for file in present})
        changes |= dict.fromkeys(self._over)
        self._over.clear()
        self._first = False
        self._take(changes)
        return changes

    def trouble(self, claims: Claims) -> str:
        """Why the log, or a part of it, is not read; nothing where all is well."""
        for path, label, owner in claims.twice:
            if label == self._name:
                return f"{path} is not read for it: the log {owner} has it already"
        if self.left_out:
            return f"{self.left_out:,} of its paths are not read: one log has at most {MAX_FILES:,}; make it several"
        if self._refused:
            return f"{next(iter(self._refused))} cannot be read: {next(iter(self._refused.values()))}"
        return why_unread(self._pattern, claims.of_log(self._name), self._own)

    def pieces(self, most_bytes: int) -> Iterator[Piece]:
        """What is new, at most about so many bytes: each piece is read when the one before is dealt with."""
        self.behind = 0
        self._refused.clear()
        for key in sorted(self._places, key=self._turn):
            size = self._sizes.get(key)
            while most_bytes > 0 and (size is None or self._places[key].offset < size):
                piece = self._piece(key, self._places[key])
                if piece is None:
                    break
                most_bytes -= piece.place.offset - self._places[key].offset
                self._places[key] = piece.place
                yield piece
            place = self._places[key]
            self.behind += max(0, (size or 0) - place.offset)
            if key in self._unpacked:
                self.behind += self._unpacked[key].unread
            if key in self._open and place.path != place.base and size is not None and place.offset >= size:
                os.close(self._open.pop(key))
                self._sought.add(key)

    def keep(self, key: PlaceKey, state: bytes) -> Place:
        """Keep with a place what its format must remember; the place."""
        place = self._places[key]
        if place.state != state:
            place = self._places[key] = msgspec.structs.replace(place, state=state)
        return place

    def place(self, key: PlaceKey) -> Place:
        """Where a file is read up to."""
        return self._places[key]

    def _bases(self, claims: Claims, changes: rotation.Changes) -> list[str]:
        """The paths that the log is written to, less what was rotated away from one of them.

        A known file that stands at the path of another log of the same pattern by now goes on there.
        """
        taken = {place.base for place in self._places.values()}
        mine = {
            *claims.of_log(self._name),
            *(base for base in taken if claims.owners.get(base, self._name) == self._name),
        }
        claimed = claims.owners.keys() | mine
        found = [
            path
            for path in sorted(mine or {str(self._pattern)})
            if path in claims.named or not (path.endswith(PACKED) or origin(path, claimed, sure=True))
        ]
        doubtful = [path for path in found if path not in claims.named and origin(path, claimed)]
        for path in doubtful:
            for file in rotation.files(self._name, path, [path], self._seen):
                place = self._places.get(file.key)
                if (
                    place is not None
                    and path not in (place.base, place.path)
                    and place.base in doubtful
                    and file.has(place)
                ):
                    self._places[file.key] = changes[file.key] = msgspec.structs.replace(place, base=path, path=path)
        taken = {place.base for place in self._places.values()}
        copies = {path for path in doubtful if path not in taken and self._comes_from(path, origin(path, claimed))}
        bases = [path for path in found if path not in copies]
        self.left_out = max(0, len(bases) - MAX_FILES)
        self._folders = Folders(claims, bases[:MAX_FILES])
        return bases[:MAX_FILES]

    def _comes_from(self, path: str, base: str | None) -> bool:
        """Whether what stands at a path is a file, or a copy of one, that was read at another."""
        places = [place for place in self._places.values() if place.base == base]
        return any(file.has(place) for file in rotation.files(self._name, path, [path], self._seen) for place in places)

    def _present(self, base: str, known: Mapping[PlaceKey, Place]) -> list[rotation.File]:
        """The files of a log, looked at again when one is missing: it was rotated away while they were listed."""
        present = rotation.files(self._name, base, self._folders.paths(base), self._seen)
        missing: frozenset[PlaceKey] = frozenset()
        for _ in range(MAX_LOOKS):
            before, missing = missing, rotation.lost(present, known)
            if missing == before:
                break
            present = rotation.files(self._name, base, self._folders.paths(base, anew=True), self._seen)
        return present

    def _turn(self, key: PlaceKey) -> tuple[bool, bool]:
        """Compressed files are read first, a log's own path last."""
        place = self._places[key]
        return place.path == place.base, not packed.is_packed(place)

    def _compressed(
        self, base: str, lost: Mapping[PlaceKey, Place], every: Mapping[PlaceKey, Place], *, here: Set[PlaceKey]
    ) -> rotation.Changes:
        """Where to read on in compressed files: what is gone, and not open, is looked for in them once.

        `here` are the files that are not compressed; one of them that is lost was truncated.
        """
        gone = {
            key: place
            for key, place in lost.items()
            if key in here or (key not in self._open and key not in self._sought)
        }
        known = {
            key: place
            for key, place in every.items()
            if packed.is_packed(place) and key not in self._unpacked and key not in self._over
        }
        if not gone and not known:
            return {}
        found = packed.files(self._name, self._folders.paths(base, anew=True))
        paths = {file.key: file.path for file in found}
        gone |= {key: place for key, place in known.items() if key not in paths}
        changes: rotation.Changes = {
            key: msgspec.structs.replace(place, path=paths[key])
            for key, place in known.items()
            if key in paths and place.path != paths[key]
        }
        places = packed.continued(base, found, gone.values(), unseen=self._first)
        changes |= {key: None for key in gone if key in known or (places and key not in here)}
        changes |= {key: place for key, place in places.items() if key not in known}  # an inode may be used again
        self._sought |= gone.keys() - here
        lost_for_good = [
            place for key, place in gone.items() if key not in here and (place.path == base or key in known)
        ]
        if lost_for_good and not places:
            log.warning("%s: a file was rotated away and is nowhere to be found: the rest of it is not counted", base)
        return changes

    def _unpacked_piece(self, key: PlaceKey, place: Place) -> Piece | None:
        """The next lines of a compressed file; None at its end, or where it cannot be read."""
        try:
            if key not in self._unpacked:
                self._unpacked[key] = packed.Contents(place)
            data = self._unpacked[key].read()
        except packed.CANNOT_BE_READ as error:
            log.warning("%s cannot be read on, the rest of it is not counted: %s", place.path, error)
            data = b""
        if not data:
            if key in self._unpacked:
                self._unpacked.pop(key).close()
            self._over.add(key)
            return None
        further = rotation.advanced(place, place.tail + data, len(data))
        if within_line(place):
            return Piece(key=key, place=further, chunk=whole(data[data.find(b"\n") + 1 or len(data) :]))
        return Piece(key=key, place=further, chunk=whole(data))

    def _piece(self, key: PlaceKey, place: Place) -> Piece | None:
        """The next lines of a file; None where there is no whole line, or it is not the file any more that it was."""
        if packed.is_packed(place):
            return self._unpacked_piece(key, place)
        data = self._data(key, place)
        if data is None:
            return None
        if within_line(place) and len(data) > len(place.tail):
            size = (data.find(b"\n", len(place.tail)) + 1 or len(data)) - len(place.tail)
            return Piece(key=key, place=self._advanced(key, data, size), chunk=b"")
        size = data.rfind(b"\n", len(place.tail)) + 1 - len(place.tail)
        if size > 0:
            chunk = data[len(place.tail) : len(place.tail) + size]
            chunk = chunk if place.offset else chunk.removeprefix(BOM)
            return Piece(key=key, place=self._advanced(key, data, size), chunk=chunk)
        size = len(data) - len(place.tail)
        if size < MAX_LINE_BYTES:
            return None  # the rest of the line will come
        return Piece(key=key, place=self._advanced(key, data, size), chunk=b"a line that is too long\n")

    def _data(self, key: PlaceKey, place: Place) -> bytes | None:
        """The place's tail and what comes after it; None where it is not the file any more, or cannot be read."""
        try:
            descriptor = self._descriptor(key, place)
            data = os.pread(descriptor, len(place.tail) + CHUNK_BYTES, place.offset - len(place.tail))
        except FileNotFoundError:
            return None
        except OSError as error:
            self._refused[place.path] = error.strerror or str(error)
            return None
        return data if data.startswith(place.tail) else None  # truncated just now: the next look will see it

    def _advanced(self, key: PlaceKey, data: bytes, size: int) -> Place:
        place = rotation.advanced(self._places[key], data, size)
        return msgspec.structs.replace(place, modified=self._modified.get(key, place.modified))

    def _descriptor(self, key: PlaceKey, place: Place) -> int:
        known = self._open.get(key)
        if known is None:
            known = os.open(place.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            status = os.fstat(known)
            if (status.st_dev, status.st_ino) != key[1:]:
                os.close(known)
                raise FileNotFoundError("another file by now")
            self._open[key] = known
        return known

    def _unread(self, key: PlaceKey, place: Place) -> bool:
        """Whether a file that is gone from its folder is open here and has whole lines left."""
        return key in self._open and self._piece(key, place) is not None

    def _take(self, changes: Mapping[PlaceKey, Place | None]) -> None:
        for key, place in changes.items():
            if place is None:
                self._places.pop(key, None)
            else:
                self._places[key] = place
                self._sought.discard(key)
            if place is None and key in self._open:
                os.close(self._open.pop(key))


def within_line(place: Place) -> bool:
    """Whether a place is inside a line: one that was too long, whose rest is to be passed over."""
    return place.tail != b"" and not place.tail.endswith(b"\n")


def whole(data: bytes) -> bytes:
    """Lines whose last one may lack its end, as whole ones."""
    if not data or data.endswith(b"\n"):
        return data
    return data + b"\n" if len(data) < MAX_LINE_BYTES else b"a line that is too long\n"
