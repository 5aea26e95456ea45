"""The folder of ranges: read again when a file changes, fetched anew where an address is given, last good kept."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from crawlhealth.searchbots.bots import BOTS
from crawlhealth.searchbots.model import Bot
from crawlhealth.searchbots.ranges import MAX_BYTES, RangeFile, Ranges, RangesError, belongs, parse
from crawlhealth.searchbotsettings import RangeSource, SearchbotSettings

log = logging.getLogger(__name__)

MOST_FILES: Final = 1000
RETRY: Final = 3600.0
"""Seconds until a fetch that failed is tried again."""

Get = Callable[[str], bytes]
"""Fetches a URL whole; raises OSError."""
_Stamp = tuple[int, int]


class RangeFolder:
    """The files of a folder that belong to a bot. A file that is not good leaves its last good state in force.

    `warn` is told of each that is not, once and again when that changes.
    """

    def __init__(self, bots: Iterable[Bot], *, warn: Callable[[str], object] = log.warning) -> None:
        self._bots = tuple(bots)
        self._warn = warn
        self._folder: Path | None = None
        self._seen: dict[str, _Stamp] = {}
        self._due: dict[str, float] = {}
        self._bad: dict[str, str] = {}
        self._unfetched: dict[str, str] = {}
        self.ranges = Ranges()

    @property
    def problems(self) -> dict[str, str]:
        """Why files are not used or could not be fetched anew, by name, the folder's under an empty one; else empty."""
        return {**self._unfetched, **self._bad}

    def read(self, folder: Path | None) -> bool:
        """Look for what has changed; whether anything has. Never raises for what a file or the folder holds."""
        if folder != self._folder:
            self._folder, self._seen, self._due, self._bad, self._unfetched = folder, {}, {}, {}, {}
            files = {}
        else:
            files = dict(self.ranges.files)
        try:
            found, bad = self._found()
        except OSError as error:
            bad = {**self._bad, "": _said(error)}
        else:
            files = {name: file for name, file in files.items() if name in found or name in bad}
            self._take(found, files, bad)
        for name, why in sorted(bad.items()):
            if self._bad.get(name) != why:
                kept = "what was known of it holds" if name in files or (not name and files) else "it is left out"
                self._warn(f"ranges {folder if not name or folder is None else folder / name} {why}: {kept}")
        self._bad = bad
        unread = {name: why for name, why in self.problems.items() if name not in files}
        changed = files != self.ranges.files or unread != self.ranges.unread
        if changed:
            self.ranges = Ranges(files, unread)
        return changed

    def _take(self, found: dict[str, _Stamp], files: dict[str, RangeFile], bad: dict[str, str]) -> None:
        """Read the files that have changed. One that cannot be opened is tried again each time: rights may change."""
        seen = dict(found)
        for name, stamp in found.items():
            if self._seen.get(name) == stamp:
                if name in self._bad:
                    bad[name] = self._bad[name]
                continue
            try:
                files[name] = self._read(name)
            except RangesError as error:
                bad[name] = str(error)
            except OSError as error:
                bad[name] = _said(error)
                del seen[name]
        self._seen = seen

    def refresh(self, sources: Mapping[str, RangeSource], get: Get, now: float) -> None:
        """Fetch what is due, into the folder: a file is replaced by a good one only, and at once."""
        if self._folder is None:
            return
        self._unfetched = {name: why for name, why in self._unfetched.items() if name in sources}
        for name, source in sources.items():
            if name not in self._due:
                written = self._written(name)
                self._due[name] = now if written is None else written + source.every.total_seconds()
            if now < self._due[name]:
                continue
            try:
                data = get(source.url)
                parse(name, data, at=now)
                self._replace(name, data, now)
            except (RangesError, OSError) as error:
                self._due[name] = now + min(RETRY, source.every.total_seconds())
                self._unfetched[name] = f"could not be fetched anew: {error}"
                log.warning("ranges %s could not be fetched anew, the last ones hold: %s", name, error)
            else:
                self._due[name] = now + source.every.total_seconds()
                self._unfetched.pop(name, None)

    def _found(self) -> tuple[dict[str, _Stamp], dict[str, str]]:
        """The files that belong to bots, and why others of such a name are none. OSError: the folder cannot be read."""
        if self._folder is None:
            return {}, {}
        found: dict[str, _Stamp] = {}
        bad: dict[str, str] = {}
        with os.scandir(self._folder) as entries:
            named = sorted(entry.name for entry in entries if any(belongs(entry.name, bot) for bot in self._bots))
        for name in named[:MOST_FILES]:
            try:
                status = (self._folder / name).stat()
            except OSError as error:
                bad[name] = _said(error)
                continue
            if stat.S_ISREG(status.st_mode):
                found[name] = (status.st_mtime_ns, status.st_size)
            else:
                bad[name] = "is no file"
        for name in named[MOST_FILES : MOST_FILES + 1]:
            bad[name] = f"is one file too many, as are all after it: at most {MOST_FILES} are read"
        return found, bad

    def _read(self, name: str) -> RangeFile:
        """One file. Raises RangesError or OSError."""
        assert self._folder is not None, "a file was found in it"
        with (self._folder / name).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
            at = os.fstat(stream.fileno()).st_mtime
        if len(data) > MAX_BYTES:
            raise RangesError(f"is larger than {MAX_BYTES} bytes")
        return parse(name, data, at=at)

    def _written(self, name: str) -> float | None:
        assert self._folder is not None, "sources need one"
        try:
            return (self._folder / name).stat().st_mtime
        except OSError:
            return None

    def _replace(self, name: str, data: bytes, now: float) -> None:
        assert self._folder is not None, "sources need one"
        self._folder.mkdir(parents=True, exist_ok=True)
        part = self._folder / f".{name}.part"
        part.write_bytes(data)
        os.utime(part, (now, now))
        part.replace(self._folder / name)


def _said(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"


def faults(settings: SearchbotSettings) -> tuple[str, ...]:
    """What is wrong with the files of ranges as they are now, a line each. A folder still to be fetched into is not."""
    found: list[str] = []
    folder = settings.ranges
    if folder is not None and (os.path.lexists(folder) or not settings.refresh):
        RangeFolder(BOTS, warn=found.append).read(folder)
    return tuple(found)
