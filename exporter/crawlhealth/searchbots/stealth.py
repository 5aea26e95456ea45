"""Where browsers are suspect: the published ranges of search engines, as the log reader needs them."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator

from crawlhealth.searchbots.bots import BOTS
from crawlhealth.searchbots.model import Bot
from crawlhealth.searchbots.names import canonical
from crawlhealth.searchbots.ranges import RangeFile, Ranges
from crawlhealth.searchbots.scan import Network
from crawlhealth.searchbots.visits import Stealth


class Suspects:
    """Gives the `Stealth` of the ranges in force: the same object until they change, None where there are none."""

    def __init__(self, ranges: Callable[[], Ranges], wanted: Callable[[], bool], bots: Iterable[Bot] = BOTS) -> None:
        self._ranges = ranges
        self._wanted = wanted
        self._engines = tuple(bot for bot in bots if bot.search_engine)
        self._made_of: Ranges | None = None
        self._made: Stealth | None = None

    def __call__(self) -> Stealth | None:
        """What the log reader needs now."""
        if not self._wanted():
            return None
        ranges = self._ranges()
        if ranges is not self._made_of:
            self._made_of, self._made = ranges, self._of(ranges)
        return self._made

    def _of(self, ranges: Ranges) -> Stealth | None:
        owners = [(file, bot) for bot in self._engines for file in ranges.of(bot)]
        networks = tuple(network for file in {file.name: file for file, _ in owners}.values() for network in _of(file))
        if not networks:
            return None

        def owner(address: str) -> Bot | None:
            ip = canonical(address)
            return None if ip is None else next((bot for file, bot in owners if file.span.has(ip)), None)

        return Stealth(networks, owner)


def _of(file: RangeFile) -> Iterator[Network]:
    """The networks of a file, joined where they touch."""
    for version, make in ((4, ipaddress.IPv4Address), (6, ipaddress.IPv6Address)):
        for start, end in zip(file.span.starts[version], file.span.ends[version], strict=True):
            yield from ipaddress.summarize_address_range(make(start), make(end))
