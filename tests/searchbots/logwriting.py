"""Access logs as a server writes and a rotation moves them, and an exporter's log service to read them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from crawlhealth.history.visitstore import VisitStore
from crawlhealth.searchbots.model import Identify, unverified
from crawlhealth.searchbots.service import LogService
from crawlhealth.searchbots.visits import Stealth
from crawlhealth.searchbotsettings import LogSettings, SearchbotSettings, Target

NOON = 1_796_040_000.0
"""2026-11-30T12:00:00Z."""
GOOGLE = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"


def line(number: int = 0, *, agent: str = GOOGLE, address: str = "192.0.2.1", status: int = 200) -> str:
    """One combined line; numbers make lines differ."""
    time = f"30/Nov/2026:12:{number // 60 % 60:02d}:{number % 60:02d} +0000"
    return f'{address} - - [{time}] "GET /page/{number} HTTP/1.1" {status} 512 "-" "{agent}"\n'


class Written:
    """A log that is written, one bot line after another."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._file = path.open("ab", buffering=0)

    def write(self, lines: int) -> None:
        """Write so many lines more."""
        text = "".join(line(self.count + number) for number in range(lines))
        self.count += lines
        self._file.write(text.encode())

    def write_raw(self, data: bytes) -> None:
        """Write some bytes as they are."""
        self._file.write(data)

    def rename(self, to: str) -> None:
        """Rotate as nginx has it: rename, then begin a new file."""
        self.path.rename(self.path.with_name(to))
        self._file.close()
        self._file = self.path.open("ab", buffering=0)

    def copytruncate(self, to: str) -> None:
        """Rotate a log whose writer never opens it again."""
        shutil.copyfile(self.path, self.path.with_name(to))
        self._file.truncate(0)


class Reading:
    """The service that reads one log into a history; `again` is a restart after a kill."""

    def __init__(
        self,
        folder: Path,
        log: LogSettings,
        *,
        identify: Identify = unverified,
        stealth: Callable[[], Stealth | None] = lambda: None,
        targets: tuple[Target, ...] = (),
    ) -> None:
        self.now = NOON
        self._folder = folder
        self._settings = SearchbotSettings(logs=(log,), targets={each.name: each for each in targets})
        self._identify = identify
        self._stealth = stealth
        self.service = self._opened()

    def again(self) -> None:
        """A new process."""
        self.service.stop()
        self.service = self._opened()

    @property
    def store(self) -> VisitStore:
        """What is on disk."""
        return self.service.store

    def _opened(self) -> LogService:
        return LogService(
            self._folder / "history.db",
            lambda: self._settings,
            identify=self._identify,
            stealth=self._stealth,
            clock=lambda: self.now,
        )

    def metrics(self) -> dict[str, float]:
        """What /metrics shows, by name and label values."""
        found: dict[str, float] = {}

        def put(spec: object, labels: tuple[str, ...], value: float | None) -> None:
            if value is not None:
                found[" ".join((getattr(spec, "name", "").removeprefix("crawlhealth_"), *labels))] = value

        self.service.show(put)
        return found

    def total(self, name: str) -> float:
        """The sum of a counter over all its series."""
        return sum(value for series, value in self.metrics().items() if series.split(" ")[0] == name)
