"""Who many visitors are, asked all at once and waited for: for reports and imports, never for logs in use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from crawlhealth.searchbots.bots import BOTS
from crawlhealth.searchbots.dns import Dns
from crawlhealth.searchbots.facts import Facts
from crawlhealth.searchbots.model import Bot, Identify, Identity
from crawlhealth.searchbots.names import IP, canonical, fits
from crawlhealth.searchbots.rangefolder import RangeFolder
from crawlhealth.searchbots.verify import by_dns, by_ranges
from crawlhealth.searchbotsettings import SearchbotSettings

MOST: Final = 100_000
"""Addresses that are looked up; visits from more are unverified."""


def inquire(
    visitors: Iterable[tuple[str, Bot]],
    settings: SearchbotSettings,
    *,
    now: float,
    advance: Callable[[], object] = lambda: None,
) -> Identify:
    """Look up all visitors and give an `Identify` that knows them; `advance` is called with each address looked up."""
    folder = RangeFolder(BOTS)
    folder.read(settings.ranges)
    known: dict[tuple[str, str], Identity] = {}
    asked: dict[IP, list[tuple[str, Bot]]] = {}
    for address, bot in visitors:
        ip = canonical(address)
        if ip is None:
            continue
        identity, _ = by_ranges(bot, ip, folder.ranges, now)
        if identity is not None:
            known[address, bot.name] = identity
        elif ip in asked or len(asked) < MOST:
            asked.setdefault(ip, []).append((address, bot))
    for ip, facts in asyncio.run(_look(asked, settings, now, advance)).items():
        for address, bot in asked[ip]:
            known[address, bot.name] = by_dns(bot, ip, facts, folder.ranges)[0]

    def identify(address: str, bot: Bot) -> Identity | None:
        return known.get((address, bot.name), Identity.UNVERIFIED)

    return identify


async def _look(
    addresses: Iterable[IP], settings: SearchbotSettings, now: float, advance: Callable[[], object]
) -> Mapping[IP, Facts]:
    """Facts on each address, a bounded number of look-ups at once."""
    dns = Dns(settings.resolver.endpoints, timeout=settings.resolver.timeout.total_seconds())
    found: dict[IP, Facts] = {}
    waiting = iter(addresses)

    async def work() -> None:
        for ip in waiting:
            found[ip] = await dns.facts(ip, _followed, now=now)
            advance()

    await asyncio.gather(*(work() for _ in range(settings.resolver.concurrency)))
    return found


def _followed(name: str) -> bool:
    return any(fits(name, bot) for bot in BOTS)
