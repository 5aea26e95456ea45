"""A process that follows a log into a history until it is killed: `python logreader.py FOLDER LOG`."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from crawlhealth.searchbots.service import LogService
from crawlhealth.searchbotsettings import LogSettings, SearchbotSettings


def main(folder: Path, log: Path) -> None:
    """Read as `serve` does, but ten times a second: more chances to be killed in the middle."""
    settings = SearchbotSettings(logs=(LogSettings(path=log, name="log"),))
    service = LogService(folder / "history.db", lambda: settings, clock=time.time)
    pause = threading.Event()
    while True:
        service.read()
        pause.wait(0.1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
