"""A verifier with a clock of its own, on a DNS server of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from crawlhealth.searchbots.bots import BOTS
from crawlhealth.searchbots.model import Bot, Identity
from crawlhealth.searchbots.shelf import FILE_NAME, Shelf
from crawlhealth.searchbots.verify import Verifier
from crawlhealth.searchbotsettings import ResolverSettings, SearchbotSettings
from waiting import until

NOW = 1_780_000_000.0


@dataclass
class Clock:
    """A clock that moves when it is told to."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


def bot(name: str) -> Bot:
    return next(each for each in BOTS if each.name == name)


def nowhere(url: str) -> bytes:
    raise OSError(f"nothing is fetched in this test: {url}")


@dataclass
class Bench:
    """A verifier, its clock and settings."""

    verifier: Verifier
    clock: Clock
    settings: SearchbotSettings = field(default_factory=SearchbotSettings)

    def who(self, address: str, name: str, seconds: float = 10.0) -> Identity:
        """Who an address is, as soon as that is known."""
        found: list[Identity] = []

        def asked() -> bool:
            identity = self.verifier.identify(address, bot(name))
            found.extend([] if identity is None else [identity])
            return bool(found)

        until(asked, seconds, f"{address} is found out")
        return found[0]

    def settle(self, seconds: float = 10.0) -> None:
        """Wait until nothing is being looked up."""
        until(lambda: self.verifier.resolver.waiting == 0, seconds, "everything is looked up")


@contextmanager
def verifying(
    server: str,
    folder: Path,
    *,
    clock: Clock | None = None,
    timeout: float = 0.3,
    concurrency: int = 16,
    ranges: Path | None = None,
) -> Iterator[Bench]:
    """Run a verifier that asks this server."""
    settings = SearchbotSettings(
        ranges=ranges,
        resolver=ResolverSettings(servers=(server,), timeout=timedelta(seconds=timeout), concurrency=concurrency),
    )
    clock = clock or Clock()
    shelf = Shelf(folder / FILE_NAME, now=clock())
    verifier = Verifier(lambda: settings, shelf=shelf, clock=clock, get=nowhere)
    try:
        yield Bench(verifier, clock, settings)
    finally:
        verifier.stop()
        shelf.close()
