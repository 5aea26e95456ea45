"""Ranges: the addresses that operators publish as their bots' own, in JSON files of one folder."""

from __future__ import annotations

import ipaddress
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from crawlhealth.searchbots.model import Bot
from crawlhealth.searchbots.names import IP

MAX_BYTES: Final = 5_000_000
MAX_PREFIXES: Final = 100_000
WIDEST: Final = {4: 8, 6: 16}
"""Prefix lengths: no operator has more, and whoever was in such a range would count as verified."""
MOST_ADDRESSES: Final = {4: 2 << (32 - WIDEST[4]), 6: 2 << (128 - WIDEST[6])}
"""Addresses of one file in all, merged, for the same reason: as many as two of the widest prefixes."""
OLD_AFTER: Final = 90 * 86_400.0
"""Seconds after which a file proves nothing any more on an address that it does not name."""
_KEYS: Final = re.compile(
    r"(?i)(ip)?_?(v?[46])?_?(prefix|prefixes|cidr|cidrs|range|ranges|address|addresses)|ipv?[46]?"
)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class RangesError(Exception):
    """A file of ranges that cannot be used as a whole; the message says why."""


@dataclass(frozen=True, slots=True)
class Span:
    """Addresses of one file, merged and in order, as numbers: of IPv4 and of IPv6."""

    starts: Mapping[int, tuple[int, ...]]
    ends: Mapping[int, tuple[int, ...]]

    def has(self, ip: IP) -> bool:
        """Whether an address is in it."""
        number = int(ip)
        place = bisect_right(self.starts[ip.version], number)
        return place > 0 and number <= self.ends[ip.version][place - 1]

    def addresses(self, version: int) -> int:
        """How many addresses of IPv4 or IPv6 it has."""
        return sum(self.ends[version]) - sum(self.starts[version]) + len(self.starts[version])


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeFile:
    """One good file: its name, when it was written (unix seconds), and how many prefixes it has."""

    name: str
    at: float
    size: int
    prefixes: int
    span: Span


@dataclass(frozen=True, slots=True)
class Ranges:
    """All good files by name; and why others, though they are there or should be, are not among them.

    The reason under an empty name holds for all: the folder cannot be read.
    """

    files: Mapping[str, RangeFile] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    def of(self, bot: Bot) -> Iterator[RangeFile]:
        """The files that belong to a bot."""
        return (file for name, file in self.files.items() if belongs(name, bot))

    def holds(self, bot: Bot, ip: IP, now: float) -> tuple[bool | None, str]:
        """Whether an address is in the bot's published ranges, and by which file.

        None where that cannot be said: not every file of the bot is there, or one that should name it is old.
        """
        files = tuple(self.of(bot))
        for file in files:
            if file.span.has(ip):
                return True, f"{file.name} has it"
        unread = self.unread_of(bot)
        if unread:
            return None, unread
        lacking = self._lacking(bot)
        if lacking:
            return None, f"no file {lacking[0]} among the ranges"
        old = [file.name for file in files if now - file.at > OLD_AFTER]
        if old:
            return None, f"{old[0]} lacks it, and is too old to prove anything by that"
        return False, f"not in {' or '.join(file.name for file in files)}"

    def unread_of(self, bot: Bot) -> str:
        """Why a file of the bot cannot be used that may name any address; empty where there is none."""
        broken = next((f"{name} {why}" for name, why in self.unread.items() if name and belongs(name, bot)), "")
        if not broken and "" in self.unread and self._lacking(bot):
            return f"the folder of ranges {self.unread['']}"
        return broken

    def _lacking(self, bot: Bot) -> list[str]:
        """What the bot's files are called of which none is there."""
        return [pattern for pattern in bot.ranges if not any(map(_glob(pattern).fullmatch, self.files))]


def belongs(name: str, bot: Bot) -> bool:
    """Whether a file of that name is one of the bot's."""
    return any(_glob(pattern).fullmatch(name) for pattern in bot.ranges)


def parse(name: str, data: bytes, *, at: float) -> RangeFile:
    """The ranges in an operator's JSON. A file that is not good as a whole is none: RangesError says why."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RangesError("is not JSON") from error
    networks: list[Network] = []
    for written in _written(document):
        if len(networks) >= MAX_PREFIXES:
            raise RangesError(f"has more than {MAX_PREFIXES} prefixes")
        networks.append(_network(written))
    if not networks:
        raise RangesError("names no prefix")
    span = _span(networks)
    for version, most in MOST_ADDRESSES.items():
        if span.addresses(version) > most:
            raise RangesError(f"names too many addresses of IPv{version} in all: more than two /{WIDEST[version]}")
    return RangeFile(name=name, at=at, size=len(data), prefixes=len(networks), span=span)


def _written(document: object) -> Iterator[str]:
    """Every prefix as written: `{"prefixes": [{"ipv4Prefix": …}]}` and the like, or a bare list."""
    waiting = [(document, isinstance(document, list))]
    while waiting:
        node, meant = waiting.pop()
        if isinstance(node, str):
            if meant and node:  # of IPv4 and IPv6 one may be left empty
                yield node
        elif isinstance(node, list):
            waiting += [(item, meant) for item in reversed(node)]
        elif isinstance(node, dict):
            waiting += [(value, bool(_KEYS.fullmatch(key))) for key, value in reversed(node.items())]


def _network(written: str) -> Network:
    try:
        network = ipaddress.ip_network(written.strip(), strict=False)
    except ValueError as error:
        raise RangesError(f"has a prefix that is none: {written[:60]!r}") from error
    if network.prefixlen < WIDEST[network.version]:
        raise RangesError(f"has a prefix that is too wide: {written[:60]}")
    return network


def _span(networks: Iterable[Network]) -> Span:
    starts: dict[int, list[int]] = {4: [], 6: []}
    ends: dict[int, list[int]] = {4: [], 6: []}
    for network in sorted(networks, key=lambda network: (network.version, int(network.network_address))):
        first, last = int(network.network_address), int(network.broadcast_address)
        begun, ended = starts[network.version], ends[network.version]
        if ended and first <= ended[-1] + 1:
            ended[-1] = max(ended[-1], last)
        else:
            begun.append(first)
            ended.append(last)
    return Span(
        {version: tuple(found) for version, found in starts.items()},
        {version: tuple(found) for version, found in ends.items()},
    )


@lru_cache(maxsize=256)
def _glob(written: str) -> re.Pattern[str]:
    return re.compile("[A-Za-z0-9_-]*".join(map(re.escape, written.split("*"))))
