"""Verification: who a visitor really is that names a bot, answered at once from what is known."""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from crawlhealth.searchbots.answers import RETRY_FIRST, Answers
from crawlhealth.searchbots.bots import BOTS
from crawlhealth.searchbots.facts import Facts, Reverse, dns_verdict
from crawlhealth.searchbots.model import Bot, Identity, Method
from crawlhealth.searchbots.names import IP, canonical, derived, fits, is_private, network, serves_network
from crawlhealth.searchbots.rangefolder import Get, RangeFolder
from crawlhealth.searchbots.ranges import Ranges
from crawlhealth.searchbots.resolver import Resolver
from crawlhealth.searchbots.shelf import Shelf
from crawlhealth.searchbotsettings import SearchbotSettings

MOST_VERDICTS: Final = 50_000
VERDICT_GOOD_FOR: Final = 60.0
"""Seconds for which a verdict is repeated without a look at what it came from."""
MOST_FAILURES: Final = 8
"""Look-ups that may fail in a row before an address is left alone until its next visit: about two hours."""
RANGES_EVERY: Final = 60.0
SAVE_EVERY: Final = 10.0


def by_ranges(bot: Bot, ip: IP, ranges: Ranges, now: float) -> tuple[Identity | None, str]:
    """Who published ranges say an address is that names the bot, and why; None where the DNS decides."""
    if bot.method is Method.NONE:
        return Identity.UNVERIFIABLE, f"the operator of {bot.name} publishes no way to tell"
    if bot.method is not Method.DNS:
        held, why = ranges.holds(bot, ip, now)
        if held:
            return Identity.VERIFIED, why
        if bot.method is Method.RANGES:
            return (Identity.UNVERIFIED if held is None else Identity.FAKE), why
    return None, f"the DNS decides on {bot.name}"


def by_dns(bot: Bot, ip: IP, facts: Facts, ranges: Ranges) -> tuple[Identity, str]:
    """Who the DNS says an address is that names the bot, and why.

    One of a private network is a proxy's: never fake. Nor is any while a file that may name it cannot be read.
    """
    identity, why = dns_verdict(bot, facts)
    unread = ranges.unread_of(bot)
    if identity is Identity.FAKE and unread:
        return Identity.UNVERIFIED, f"{why}; but it may be in its operator's ranges: {unread}"
    if identity is Identity.FAKE and is_private(ip):
        return Identity.UNVERIFIED, f"{why}; but a private address is a proxy's: is it missing in trusted_proxies?"
    return identity, why


class Verifier:
    """Who visitors are. `identify` may be called from any thread; `tick` from one.

    What is known stays on the `shelf`, over restarts. `clock` gives unix seconds.
    """

    def __init__(
        self,
        settings: Callable[[], SearchbotSettings],
        *,
        shelf: Shelf,
        clock: Callable[[], float],
        get: Get,
        bots: Iterable[Bot] = BOTS,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._get = get
        self._bots = tuple(bots)
        self._folder = RangeFolder(self._bots)
        self._answers = Answers()
        self._shelf = shelf
        self._answers.load(shelf.answers(clock()))
        self._served: dict[str, tuple[str, float]] = {}
        """Networks that a proof serves, by the name that was proven and until when; an empty name serves none."""
        self._verdicts: dict[tuple[str, str], tuple[Identity, float]] = {}
        self._due: list[tuple[float, str]] = []
        self._lock = threading.Lock()
        self._looked_at_ranges = self._saved = float("-inf")
        self.hits = self.misses = self.refused = 0
        self.lookups: Counter[str] = Counter()
        """Look-ups by what came of them: confirmed, named, nameless or failed."""
        self.resolver = Resolver(
            lambda: settings().resolver, followed=self._followed, took=self._take, clock=clock
        )  # fmt: skip
        self._folder.read(settings().ranges)

    @property
    def known(self) -> int:
        """Addresses of which something is known."""
        return len(self._answers)

    @property
    def ranges(self) -> Ranges:
        """The published ranges in force."""
        return self._folder.ranges

    @property
    def range_problems(self) -> dict[str, str]:
        """Why files of ranges are not used, or could not be fetched anew, by name."""
        return dict(self._folder.problems)

    def identify(self, address: str, bot: Bot) -> Identity | None:
        """See `Identify`: None while it is being found out."""
        now = self._clock()
        known = self._verdicts.get((address, bot.name))
        if known is not None and now < known[1]:
            self.hits += 1
            return known[0]
        ip = canonical(address)
        if ip is None:
            return Identity.UNVERIFIED
        identity, _ = by_ranges(bot, ip, self._folder.ranges, now)
        if identity is None:
            identity = self._by_dns(str(ip), ip, bot, now)
        if identity is not None and identity is not Identity.UNVERIFIED:
            if len(self._verdicts) >= MOST_VERDICTS:
                self._verdicts.clear()
            self._verdicts[address, bot.name] = (identity, now + VERDICT_GOOD_FOR)
        return identity

    def tick(self) -> None:
        """What is due: asking again, and writing down what was found. Raises HistoryError."""
        now = self._clock()
        for address in self._again(now):
            if not self.resolver.submit(address):
                self._put_off(address, now)
        if now - self._saved >= SAVE_EVERY:
            self._saved = now
            self._save(now)

    def renew(self) -> None:
        """Once a minute, look at the folder of ranges, and fetch those anew that are due; from one thread."""
        now = self._clock()
        if now - self._looked_at_ranges < RANGES_EVERY:
            return
        self._looked_at_ranges = now
        settings = self._settings()
        changed = self._folder.read(settings.ranges)
        self._folder.refresh(settings.refresh, self._get, now)
        if self._folder.read(settings.ranges) or changed:
            self._verdicts.clear()

    def stop(self) -> None:
        """End, and write down what was found. Raises HistoryError."""
        self.resolver.stop()
        self._save(self._clock())

    def _save(self, now: float) -> None:
        with self._lock:
            found = self._answers.unsaved()
        self._shelf.save_answers(found, now)

    def _by_dns(self, address: str, ip: IP, bot: Bot, now: float) -> Identity | None:
        known = self._answers.get(address)
        if known is None:
            if self._is_served(ip, bot, now):
                self.hits += 1
                return Identity.VERIFIED
            self.misses += 1
            self._submit(address)
            return None
        self.hits += 1
        if now >= known.until:
            self._submit(address)
        identity, _ = by_dns(bot, ip, known.facts, self._folder.ranges)
        stale = known.failures > 0 and not known.facts.failed
        return Identity.UNVERIFIED if stale and identity is Identity.FAKE else identity

    def _submit(self, address: str) -> None:
        if not self.resolver.submit(address):
            self.refused += 1

    def _followed(self, name: str) -> bool:
        return any(fits(name, bot) for bot in self._bots)

    def _take(self, address: str, facts: Facts) -> None:
        """Take what the resolver found, in its thread."""
        now = self._clock()
        with self._lock:
            known = self._answers.put(address, facts, now)
            if facts.failed and known.failures <= MOST_FAILURES:
                heapq.heappush(self._due, (known.until, address))
        self.lookups[_result(facts)] += 1
        ip = canonical(address)
        if ip is not None and not facts.failed:
            self._serve_network(ip, facts, known.until, now)

    def _serve_network(self, ip: IP, facts: Facts, until: float, now: float) -> None:
        """Let a proof serve the whole network of its address, unless an address of it has no proof."""
        key = network(ip)
        before, end = self._served.pop(key, ("", 0.0))
        refuted = not before and end > now
        name = facts.forwards[-1][0] if facts.confirmed else ""
        while len(self._served) >= MOST_VERDICTS:
            self._served.pop(next(iter(self._served)))
        if not facts.confirmed or refuted:
            self._served[key] = ("", until)
        elif derived(name, ip):
            self._served[key] = (name, until)
        elif before:
            self._served[key] = (before, end)

    def _is_served(self, ip: IP, bot: Bot, now: float) -> bool:
        if not bot.own_networks:
            return False
        name, end = self._served.get(network(ip), ("", 0.0))
        return end > now and serves_network(name, bot)

    def _again(self, now: float) -> list[str]:
        """Addresses whose look-up failed and is to be tried again now."""
        found = []
        with self._lock:
            while self._due and self._due[0][0] <= now:
                _, address = heapq.heappop(self._due)
                known = self._answers.get(address)
                if known is not None and known.failures and now >= known.until:
                    found.append(address)
        return found

    def _put_off(self, address: str, now: float) -> None:
        with self._lock:
            heapq.heappush(self._due, (now + RETRY_FIRST, address))


def _result(facts: Facts) -> str:
    if facts.failed:
        return "failed"
    if facts.confirmed:
        return "confirmed"
    return "named" if facts.reverse is Reverse.NAMES else "nameless"
