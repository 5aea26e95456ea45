"""From chunks of a log to the visits of bots in them: who came, by which address, and which bot its agent names."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from crawlhealth.searchbots.bots import BOTS, Agents
from crawlhealth.searchbots.formats import LINE_END, Entry, Format, count, is_address
from crawlhealth.searchbots.model import Bot
from crawlhealth.searchbots.scan import Network, Scanner

Owner = Callable[[str], Bot | None]
"""The search engine whose published ranges have an address, None for all others. At once, and never raises."""
MAX_KNOWN: Final = 100_000
"""Addresses remembered with their owner."""
_SELF_TOLD: Final = (b"bot", b"spider", b"crawl", b"http", b"fetch", b"google", b"slurp")
"""What a browser's user agent does not have; whoever has it does not hide."""


class Stealth(NamedTuple):
    """Where browsers are suspect: the networks that search engines publish, and who owns an address."""

    networks: Sequence[Network]
    owner: Owner


class Found(NamedTuple):
    """One visit in a log. `address` is the visitor's behind all trusted proxies, as written."""

    entry: Entry
    address: bytes
    bot: Bot
    stealth: bool


class LogReader:
    """Reads the chunks of one log, in order. `lines`, `unreadable` and `bytes` count what it has read so far.

    Of lines that name no bot, those are unreadable that have not the shape of their format (see `Format.unreadable`).
    """

    def __init__(
        self,
        form: Format,
        *,
        bots: Iterable[Bot] = BOTS,
        stealth: Stealth | None = None,
        trusted: Sequence[Network] = (),
    ) -> None:
        bots = tuple(bots)
        self.form = form
        self.lines = self.unreadable = self.bytes = 0
        self._agents = Agents(bots)
        self._scanner = Scanner(bots, stealth.networks if stealth else ())
        self._owner = stealth.owner if stealth else None
        self._trusted = Proxies(trusted) if trusted else None
        self._owners: dict[bytes, Bot | None] = {}

    def visits(self, chunk: bytes) -> Iterator[Found]:
        """The visits of bots (and of browsers from their ranges) in a chunk of whole lines, in order."""
        lines = count(chunk, LINE_END)
        self.lines += lines
        self.bytes += len(chunk)
        unreadable, refused = self.form.unreadable(chunk, lines), 0
        read, named, owner, trusted = self.form.read, self._agents.bot, self._owner, self._trusted
        for line in self._scanner.lines(chunk):
            entry = read(line)
            if entry is None:
                refused += not line.startswith(b"#")
                continue
            bot = named(entry.agent)
            if bot is None and owner is None:
                continue
            address = entry.address if trusted is None else trusted.visitor(entry.address, entry.forwarded)
            if bot is not None:
                yield Found(entry, address, bot, False)
            elif (bot := self._owned(address)) is not None and _is_browser(entry.agent):
                yield Found(entry, address, bot, True)
        self.unreadable += unreadable or refused

    def _owned(self, address: bytes) -> Bot | None:
        known = self._owners
        if address not in known:
            if len(known) >= MAX_KNOWN:
                known.clear()
            assert self._owner is not None
            known[address] = self._owner(address.decode("ascii", "replace"))
        return known[address]


def _is_browser(agent: bytes) -> bool:
    lower = agent.lower()
    return lower.startswith(b"mozilla/") and not any(word in lower for word in _SELF_TOLD)


class Proxies:
    """The user's own proxies: what they say of whom they forward is believed, and nobody else's word."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = tuple(networks)
        self._known: dict[bytes, bool] = {}

    def visitor(self, address: bytes, forwarded: bytes) -> bytes:
        """The last address, from right to left, that is no proxy of the user's; `address` where there is no such."""
        if not forwarded or not self._ours(address):
            return address
        for hop in reversed(forwarded.split(b",")):
            said = hop.strip().strip(b'"')
            if said.startswith(b"[") or said.count(b":") == 1:
                said = said.rpartition(b":")[0].strip(b"[]") if not said.endswith(b"]") else said.strip(b"[]")
            if not is_address(said):
                return address
            address = said
            if not self._ours(said):
                return said
        return address

    def _ours(self, address: bytes) -> bool:
        known = self._known
        if address not in known:
            if len(known) >= MAX_KNOWN:
                known.clear()
            known[address] = self._looked_up(address)
        return known[address]

    def _looked_up(self, address: bytes) -> bool:
        try:
            parsed = ipaddress.ip_address(address.decode("ascii", "replace"))
        except ValueError:
            return False
        return any(parsed in network for network in self._networks if network.version == parsed.version)
