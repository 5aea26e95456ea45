"""The folder of ranges: read again when a file changes, fetched anew where an address is given, last good kept."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from crawlhealth.searchbots.model import Bot
from crawlhealth.searchbots.ranges import MAX_BYTES, RangeFile, Ranges, RangesError, belongs, parse
from crawlhealth.searchbotsettings import RangeSource

log = logging.getLogger(__name__)

MOST_FILES: Final = 1000
RETRY: Final = 3600.0
"""Seconds until a fetch that failed is tried again."""

Get = Callable[[str], bytes]
"""Fetches a URL whole; raises OSError."""
_Stamp = tuple[int, int]


class RangeFolder:
    """The files of a folder that belong to a bot. A file that is not good leaves its last good state in force."""

    def __init__(self, bots: Iterable[Bot]) -> None:
        self._bots = tuple(bots)
        self._folder: Path | None = None
        self._seen: dict[str, _Stamp] = {}
        self._due: dict[str, float] = {}
        self.ranges = Ranges()
        self.problems: dict[str, str] = {}
        """Why files are not used, by name; empty while all are good."""

    def read(self, folder: Path | None) -> bool:
        """Look for what has changed; whether anything has. Never raises for what a file holds."""
        if folder != self._folder:
            self._folder, self._seen, self.problems = folder, {}, {}
            changed = bool(self.ranges.files)
            self.ranges = Ranges()
        else:
            changed = False
        found = self._found()
        if found is None:
            return changed
        files = {name: file for name, file in self.ranges.files.items() if name in found}
        changed = changed or len(files) != len(self.ranges.files)
        self.problems = {name: why for name, why in self.problems.items() if name in found}
        for name, stamp in found.items():
            if self._seen.get(name) != stamp:
                good = self._read(name)
                changed = changed or good is not None
                if good is not None:
                    files[name] = good
        self._seen = found
        if changed:
            self.ranges = Ranges(files)
        return changed

    def refresh(self, sources: Mapping[str, RangeSource], get: Get, now: float) -> None:
        """Fetch what is due, into the folder: a file is replaced by a good one only, and at once."""
        if self._folder is None:
            return
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
                self.problems[name] = f"could not be fetched anew: {error}"
                log.warning("ranges %s could not be fetched anew, the last ones hold: %s", name, error)
            else:
                self._due[name] = now + source.every.total_seconds()
                self.problems.pop(name, None)

    def _found(self) -> dict[str, _Stamp] | None:
        """The files that belong to bots; None where the folder cannot be looked at, so that all stay as they are."""
        if self._folder is None:
            return {}
        try:
            with os.scandir(self._folder) as entries:
                named = [entry for entry in entries if any(belongs(entry.name, bot) for bot in self._bots)]
                stats = [(entry.name, entry.stat()) for entry in named[:MOST_FILES] if entry.is_file()]
        except OSError as error:
            if self.problems.get("") != str(error):
                log.warning("the folder of ranges cannot be read: %s", error)
            self.problems[""] = str(error)
            return None
        self.problems.pop("", None)
        return {name: (stat.st_mtime_ns, stat.st_size) for name, stat in stats}

    def _read(self, name: str) -> RangeFile | None:
        assert self._folder is not None, "a file was found in it"
        path = self._folder / name
        try:
            with path.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
                at = os.fstat(stream.fileno()).st_mtime
            if len(data) > MAX_BYTES:
                raise RangesError(f"is larger than {MAX_BYTES} bytes")
            good = parse(name, data, at=at)
        except (RangesError, OSError) as error:
            kept = "its last good state holds" if name in self.ranges.files else "it is left out"
            self.problems[name] = str(error)
            log.warning("ranges %s: %s: %s", path, error, kept)
            return None
        self.problems.pop(name, None)
        return good

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
