"""Rotated logs that were compressed while nobody read them: known again by what they hold, and read on within."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from crawlhealth.history.visits import Place, PlaceKey
from crawlhealth.searchbots import rotation
from crawlhealth.searchbots.source import CHUNK_BYTES, UNPACKING_FAILED, Unpacked

SUFFIX: Final = rotation.PACKED_SUFFIX
AS_OLD_SECONDS: Final = 2.0
"""Compressing keeps the time of a file, or cuts its fraction off."""
LATER_SECONDS: Final = 60.0
"""A server may write into a file that was rotated away for a moment; one that is so much later is another one."""
CANNOT_BE_READ: Final = (OSError, *UNPACKING_FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A compressed file in a log's folder; `modified` is when its contents were written last."""

    key: PlaceKey
    path: str
    modified: float


def is_packed(place: Place) -> bool:
    """Whether a place is in a compressed file: its offset counts bytes of the contents."""
    return place.path.endswith(SUFFIX)


def files(log: str, paths: Iterable[str]) -> list[Packed]:
    """The compressed files among those that were rotated away from a log, the oldest first.

    One that stands beside its original is not whole yet, and left out.
    """
    found = []
    for path in paths:
        if not path.endswith(SUFFIX):
            continue
        try:
            status = os.stat(path)
        except OSError:
            continue
        if not os.path.exists(path.removesuffix(SUFFIX)):
            key = (log, status.st_dev, status.st_ino)
            found.append(Packed(key=key, path=path, modified=status.st_mtime))
    return sorted(found, key=lambda file: (file.modified, file.path))


def continued(base: str, found: Sequence[Packed], gone: Iterable[Place], *, unseen: bool) -> dict[PlaceKey, Place]:
    """Where to read on in compressed files when the files of some places are gone: in the order of reading.

    That is the file that holds what a place was in, and each later one from its beginning. Where none holds it and the
    log was `unseen` for a while, all are later that were written after that was read last.
    """
    places: dict[PlaceKey, Place] = {}
    later = len(found)
    for place in gone:
        at = next((number for number, file in enumerate(found) if _holds(file, place)), None)
        if at is not None:
            places[found[at].key] = msgspec.structs.replace(place, path=found[at].path)
            later = min(later, at + 1)
        elif unseen and place.modified:
            written = (number for number, file in enumerate(found) if file.modified > place.modified + LATER_SECONDS)
            later = min(later, next(written, len(found)))
    for file in found[later:]:
        places.setdefault(file.key, Place(base=base, path=file.path, modified=file.modified))
    return {file.key: places[file.key] for file in found if file.key in places}


def _holds(file: Packed, place: Place) -> bool:
    if not place.head or file.modified < place.modified - AS_OLD_SECONDS:
        return False
    try:
        with open(file.path, "rb") as raw:
            contents = Unpacked(raw)
            if contents.read(len(place.head)) != place.head:
                return False
            raw.seek(0)
            contents = Unpacked(raw)
            contents.skip(place.offset - len(place.tail))
            return contents.read(len(place.tail)) == place.tail
    except CANNOT_BE_READ:
        return False


class Contents:
    """The contents of a compressed file from a place on, in pieces of whole lines. Raises CANNOT_BE_READ."""

    def __init__(self, place: Place) -> None:
        self._raw = open(place.path, "rb")  # noqa: SIM115 - closed by `close`
        self._stream = Unpacked(self._raw)
        self._left = b""
        try:
            self._stream.skip(place.offset - len(place.tail))
            if self._stream.read(len(place.tail)) != place.tail:
                raise OSError("another file by now")
        except BaseException:
            self.close()
            raise

    def read(self) -> bytes:
        """The next lines; at the end what is left of one, without its end; then nothing."""
        data = self._left + self._stream.read(CHUNK_BYTES)
        cut = data.rfind(b"\n") + 1
        if not cut:
            cut = len(data)
        self._left = data[cut:]
        return data[:cut]

    @property
    def unread(self) -> int:
        """About how many bytes of the file are not read yet, at least 1."""
        return max(1, os.fstat(self._raw.fileno()).st_size - self._raw.tell())

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
