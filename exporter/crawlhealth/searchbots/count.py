"""From visits in a log to committed counts: whose they are is asked of a verifier, and never waited for.

While a verifier finds out, visits wait in the history beside the place that their log is read up to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from crawlhealth import metrics
from crawlhealth.history.visits import HOUR, LogUpdate, WaitingKey
from crawlhealth.searchbots.bots import BOTS
from crawlhealth.searchbots.dispatch import Decided, Note
from crawlhealth.searchbots.formats import Entry
from crawlhealth.searchbots.model import DispatchDecision, Identify, Identity
from crawlhealth.searchbots.report import class_of
from crawlhealth.searchbots.visits import Found
from crawlhealth.searchbotsettings import LogSettings

PATIENCE_SECONDS: Final = 60.0
"""After so long a visit counts as unverified."""
MAX_WAITING: Final = 50_000
"""Addresses (by bot, hour and status) that may wait at once; visits from more count as unverified."""
AHEAD_SECONDS: Final = 3600.0
"""A log's clock may be so far ahead of ours; later times are none."""
OTHER: Final = "other"
"""The domain of visits to a host that is not configured."""
_BOTS: Final = {bot.name: bot for bot in BOTS}
_DECISIONS: Final = frozenset(decision.value for decision in DispatchDecision)
_STEALTH: Final = "\0stealth"
"""In place of an address: who it was is known, and not asked."""

Kind = tuple[str, str, str, int, int, str]
"""Domain, bot, address, status, hour, and where the dispatcher sent it with its decision, if it said so."""


def domain_of(settings: LogSettings) -> Callable[[Entry], str]:
    """Which domain a line of a log belongs to: always one of the configuration, or "other"."""
    domains = {domain.lower().encode(): domain for domain in settings.domains}
    if domains and not settings.domain:
        return lambda entry: domains.get(entry.host.lower(), OTHER)
    fixed = settings.domain or OTHER
    return lambda _: fixed


class Count:
    """Counts the visits of one log into updates. `identify` says who a visitor is, `dispatched` notes decisions."""

    def __init__(self, settings: LogSettings, identify: Identify, dispatched: Note) -> None:
        self._settings = settings
        self._identify = identify
        self._dispatched = dispatched
        self._domain = domain_of(settings)

    def add(
        self,
        visits: Iterable[Found],
        update: LogUpdate,
        waiting: Mapping[WaitingKey, tuple[int, float]],
        *,
        now: float,
    ) -> None:
        """Take the visits of a chunk; `waiting` are those that wait on disk."""
        kinds: list[tuple[str, str, bytes, int, int, str, str]] = []
        latest: dict[tuple[str, str, bytes], float] = {}
        for entry, address, bot, stealth in visits:
            domain = self._domain(entry)
            seen = entry.at if entry.at <= now + AHEAD_SECONDS else now
            name = bot.name
            kinds.append(
                (domain, name, _STEALTH.encode() if stealth else address, entry.status, int(seen) // HOUR * HOUR,
                 entry.target, entry.decision)
            )  # fmt: skip
            if not stealth and seen > latest.get((domain, name, address), 0.0):
                latest[domain, name, address] = seen
        for (domain, name, address, status, hour, target, decision), number in Counter(kinds).items():
            text = address.decode("ascii", "replace")
            identity = Identity.STEALTH if text == _STEALTH else self._identify(text, _BOTS[name])
            if decision in _DECISIONS:
                said = Decided(self._settings.tenant, domain, name, target, DispatchDecision(decision), hour)
                self._dispatched(update, said, number)
            key = (self._settings.tenant, domain, name, text, class_of(status), hour, self._settings.target)
            if identity is None and (key in waiting or len(waiting) + len(update.waiting) < MAX_WAITING):
                before = update.waiting.get(key) or waiting.get(key) or (0, now)
                update.waiting[key] = (before[0] + number, before[1])
                continue
            seen = latest.get((domain, name, address), float(hour))
            counted(update, key, identity or Identity.UNVERIFIED, number, seen)


def settle(
    waiting: Mapping[WaitingKey, tuple[int, float]], identify: Identify, update: LogUpdate, *, now: float
) -> None:
    """Count those who waited and are known by now, or have waited long enough."""
    for key, (number, since) in waiting.items():
        bot = _BOTS.get(key[2])
        identity = identify(key[3], bot) if bot is not None else Identity.UNVERIFIED
        if identity is None and 0 <= now - since < PATIENCE_SECONDS:
            continue
        update.waiting[key] = None
        counted(update, key, identity or Identity.UNVERIFIED, number, min(since, float(key[5] + HOUR)))


def counted(update: LogUpdate, key: WaitingKey, identity: Identity, number: int, seen: float) -> None:
    """Count visits of one kind; `seen` is when the latest of them was."""
    tenant, domain, bot, _, status, hour, target = key
    if target:
        if identity is not Identity.FAKE:
            update.increase(metrics.DISPATCH_ARRIVALS.name, (tenant, bot, target), number)
        return
    update.increase(metrics.SEARCHBOT_VISITS.name, (tenant, domain, bot, identity.value, status), number)
    kind = (hour, tenant, domain, bot, identity.value, status)
    update.hours[kind] = update.hours.get(kind, 0) + number
    if identity is Identity.VERIFIED:
        place = (tenant, domain, bot)
        update.last[place] = max(seen, update.last.get(place, seen))
