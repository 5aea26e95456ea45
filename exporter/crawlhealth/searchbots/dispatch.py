"""Where a dispatcher sent the visits of bots: counted as it says, and held against weights, quotas and arrivals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from crawlhealth import metrics
from crawlhealth.history.visits import HOUR, LogUpdate
from crawlhealth.history.visitstore import VisitStore
from crawlhealth.metrics import MetricSpec
from crawlhealth.searchbots import quotas
from crawlhealth.searchbots.looks import origin
from crawlhealth.searchbots.model import DispatchDecision
from crawlhealth.searchbotsettings import OTHER_TARGET, SearchbotSettings

SHARE_HOURS: Final = 6
"""Shares are those of the present hour and the ones before it: enough visits to tell a share, and few enough hours."""

OnSent = Callable[[str, str], None]
"""Hears of a domain and the URL that a visit of it was sent on to."""
Put = Callable[[MetricSpec, tuple[str, ...], float | None], None]


class Decided(NamedTuple):
    """What was decided of some visits. `target` is as the dispatcher wrote it: a name, a URL, or nothing."""

    tenant: str
    domain: str
    bot: str
    target: str
    decision: DispatchDecision
    hour: int


Used = Counter[tuple[str, str]]
"""Visits of today by tenant and target."""
Sent = defaultdict[str, Counter[tuple[str, str]]]
"""Visits of the last hours: by tenant those by bot and target."""
Note = Callable[[LogUpdate, Decided, int], None]
"""Takes decisions on so many visits into an update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """One target today. `shares` has by bot what it got in the last hours and what its weight says (None without)."""

    tenant: str
    target: str
    used: int
    quota: int | None
    shares: Mapping[str, tuple[float, float | None]]


class Dispatches:
    """Decisions into the history and onto /metrics. Any thread may use it."""

    def __init__(self, store: VisitStore, settings: Callable[[], SearchbotSettings], *, sent: OnSent) -> None:
        self._store = store
        self._settings = settings
        self._sent = sent

    def note(self, update: LogUpdate, said: Decided, number: int) -> None:
        """Count decisions; a visit that was sent may close a circle of redirects, which is known at once."""
        target, url = self.target(said.tenant, said.target)
        labels = (said.tenant, said.domain, said.bot, target, said.decision.value)
        update.increase(metrics.SEARCHBOT_DISPATCHES.name, labels, number)
        key = (said.hour, said.tenant, said.bot, target, said.decision.value)
        update.dispatches[key] = update.dispatches.get(key, 0) + number
        if url and number and said.decision is DispatchDecision.SENT:
            self._sent(said.domain, url)

    def target(self, tenant: str, written: str) -> tuple[str, str]:
        """The name and URL of a target as a dispatcher wrote it: nothing for nothing, `other` for a strange one."""
        targets = self._settings().targets
        known = targets.get(written)
        if known is not None and known.tenant == tenant:
            return known.name, known.url
        host = _origin(written)
        if host:
            for each in targets.values():
                if each.tenant == tenant and origin(each.url) == host:
                    return each.name, written
        return (OTHER_TARGET if written else ""), (written if host else "")

    def states(self, tenant: str, now: float) -> Iterator[TargetState]:
        """The targets of a tenant."""
        return self._states(tenant, now, *self._sums(now))

    def _states(self, tenant: str, now: float, used: Used, sent: Sent) -> Iterator[TargetState]:
        settings = self._settings()
        targets = {name: each for name, each in settings.targets.items() if each.tenant == tenant}
        weights = {name: each.weight for name, each in targets.items() if each.weight is not None}
        total = sum(weights.values())
        weighted = Counter[str]()
        for (bot, target), visits in sent[tenant].items():
            weighted[bot] += visits if target in weights else 0
        for name, each in targets.items():
            quota = each.quota
            expected = weights[name] / total if name in weights and total else None
            yield TargetState(
                tenant=tenant,
                target=name,
                used=used[tenant, name],
                quota=None if quota is None
                else quotas.allowed(quota, today=now, first_sent=self._store.begun.get((tenant, name))),
                shares={
                    bot: (sent[tenant][bot, name] / visits, expected)
                    for bot, visits in sorted(weighted.items())
                    if visits and name in weights
                },
            )  # fmt: skip

    def show(self, put: Put, now: float) -> None:
        """What /metrics shows of it: only what is on disk, of tenants and targets that are configured."""
        settings = self._settings()
        tenants = set(settings.tenant_names)
        logged = {(log.tenant, log.target) for log in settings.logs if log.target}
        sent_to: set[tuple[str, str, str]] = set()
        for (name, labels), value in self._store.counters.items():
            if name != metrics.SEARCHBOT_DISPATCHES.name or labels[0] not in tenants:
                continue
            tenant, _, bot, target, decision = labels
            if target in (OTHER_TARGET, "") or self.target(tenant, target)[0] == target:
                put(metrics.SEARCHBOT_DISPATCHES, labels, value)
                if decision == DispatchDecision.SENT and (tenant, target) in logged:
                    sent_to.add((tenant, bot, target))
        for arrived in sorted(sent_to):  # visits that never arrive must not be missing from a comparison
            if (metrics.DISPATCH_ARRIVALS.name, arrived) not in self._store.counters:
                put(metrics.DISPATCH_ARRIVALS, arrived, 0.0)
        sums = self._sums(now)
        for tenant in settings.tenant_names:
            for state in self._states(tenant, now, *sums):
                place = (tenant, state.target)
                put(metrics.TARGET_QUOTA, place, state.quota)
                put(metrics.TARGET_QUOTA_USED, place, state.used)
                for bot, (share, expected) in state.shares.items():
                    put(metrics.SHARE, (tenant, bot, state.target), share)
                    put(metrics.SHARE_EXPECTED, (tenant, bot, state.target), expected)

    def _sums(self, now: float) -> tuple[Used, Sent]:
        """What was sent today, and in the hours that shares are made of."""
        today, since = quotas.day_of(now), int(now) // HOUR * HOUR - (SHARE_HOURS - 1) * HOUR
        used, sent = Used(), Sent(Counter)
        for (hour, tenant, bot, target, decision), visits in self._store.dispatched.items():
            if decision == DispatchDecision.SENT:
                if today <= hour < today + quotas.DAY:
                    used[tenant, target] += visits
                if hour >= since:
                    sent[tenant][bot, target] += visits
        return used, sent


def _origin(written: str) -> str:
    """The origin of a URL; nothing for what is none."""
    if not written.startswith(("http://", "https://")):
        return ""
    try:
        return origin(written)
    except ValueError:
        return ""
