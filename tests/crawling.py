"""Real Scrapy as a process: a crawl that is awaited, or watched while it runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("crawlprogram.py")


class Crawl:
    """A crawl under way; a context manager that kills it at its end."""

    def __init__(self, folder: Path, pages: list[Any], spider: str = "shop", **settings: Any) -> None:
        self._log = folder / "crawl.log"
        orders = {"pages": pages, "spider": spider, "settings": settings}
        environ = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        with self._log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, str(PROGRAM), json.dumps(orders)], stdout=out, stderr=out, cwd=folder, env=environ
            )

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self, seconds: float = 60) -> str:
        """Wait for its end, without an error in any part of ours; returns its log."""
        assert self._process.wait(timeout=seconds) == 0, self.log()
        for trouble in ("Error caught on signal handler", "ERROR: cannot ", "Scraper bug"):
            assert trouble not in self.log(), self.log()
        return self.log()

    def stop(self) -> str:
        """End it the way Ctrl-C does; returns its log."""
        self._process.send_signal(signal.SIGINT)
        return self.wait(30)

    def __enter__(self) -> Crawl:
        return self

    def __exit__(self, *_: object) -> None:
        if self.running():
            self._process.kill()
            self._process.wait()
