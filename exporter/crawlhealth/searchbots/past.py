"""Old logs as hours of visits: what `crawlhealth logs import` brings into the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from crawlhealth.history.visits import HOUR, HourKey
from crawlhealth.history.visitstore import KEPT_SECONDS
from crawlhealth.searchbots.bots import BOTS
from crawlhealth.searchbots.count import AHEAD_SECONDS, domain_of
from crawlhealth.searchbots.model import Bot, Identify, Identity
from crawlhealth.searchbots.report import class_of
from crawlhealth.searchbots.visits import Found
from crawlhealth.searchbotsettings import LogSettings

_BOTS = {bot.name: bot for bot in BOTS}


class Past:
    """Sums the visits of any number of old logs of one kind. With `addresses` it can say later who they were.

    Visits that the history would not keep at `now`, and those of times to come, are `left_out`.
    """

    def __init__(self, settings: LogSettings, *, addresses: bool, now: float) -> None:
        self._tenant = settings.tenant
        self._domain = domain_of(settings)
        self._addresses = addresses
        self._first, self._last = now - KEPT_SECONDS, now + AHEAD_SECONDS
        self._kinds: Counter[tuple[int, str, str, bytes, int]] = Counter()
        self.left_out = 0

    def add(self, visits: Iterable[Found]) -> None:
        """Take the visits of a chunk."""
        for entry, address, bot, stealth in visits:
            hour = int(entry.at) // HOUR * HOUR
            if stealth:
                continue
            if not self._first <= hour <= entry.at <= self._last:
                self.left_out += 1
                continue
            who = address if self._addresses else b""
            self._kinds[hour, self._domain(entry), bot.name, who, entry.status // 100] += 1

    @property
    def visits(self) -> int:
        """How many visits there are."""
        return self._kinds.total()

    def visitors(self) -> Iterator[tuple[str, Bot]]:
        """Each address with the bot that it names, once."""
        for name, address in {(kind[2], kind[3]) for kind in self._kinds}:
            yield address.decode("ascii", "replace"), _BOTS[name]

    def hours(self, identify: Identify) -> Mapping[HourKey, int]:
        """The sums as the history keeps them."""
        hours: Counter[HourKey] = Counter()
        for (hour, domain, name, address, status), visits in self._kinds.items():
            identity = identify(address.decode("ascii", "replace"), _BOTS[name]) or Identity.UNVERIFIED
            hours[hour, self._tenant, domain, name, identity.value, class_of(status * 100)] += visits
        return hours
