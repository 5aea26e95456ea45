"""All configured logs, read on again and again: what `crawlhealth serve` does with them."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Final

from crawlhealth import metrics
from crawlhealth.history.visits import LogUpdate, PlaceKey
from crawlhealth.history.visitstore import VisitStore
from crawlhealth.metrics import MetricSpec
from crawlhealth.searchbots import formats
from crawlhealth.searchbots.claims import Claims
from crawlhealth.searchbots.count import Count, settle
from crawlhealth.searchbots.dispatch import Note
from crawlhealth.searchbots.follow import Follower
from crawlhealth.searchbots.model import Identify
from crawlhealth.searchbots.troubles import Troubles
from crawlhealth.searchbots.visits import LogReader, Stealth
from crawlhealth.searchbotsettings import LogSettings

Put = Callable[[MetricSpec, tuple[str, ...], float | None], None]
"""Shows a series with its labels; nothing for None."""
BYTES_AT_ONCE: Final = 32_000_000
"""Of one log, in one transaction."""
PRUNE_EVERY: Final = 86_400.0


class _Log:
    """One configured log as it is read."""

    def __init__(
        self, settings: LogSettings, store: VisitStore, identify: Identify, stealth: Stealth | None, dispatched: Note
    ) -> None:
        self.settings = settings
        places = {key: place for key, place in store.places.items() if key[0] == settings.label}
        self.follower = Follower(settings.label, settings.path, places)
        self.count = Count(settings, identify, dispatched)
        self._stealth = stealth
        self._trusted = tuple(ipaddress.ip_network(each, strict=False) for each in settings.trusted_proxies)
        self._readers: dict[PlaceKey, LogReader] = {}

    def reader(self, key: PlaceKey) -> LogReader:
        """The reader of a file."""
        if key not in self._readers:
            form = formats.reader(self.settings.format)
            form.resume(self.follower.place(key).state)
            self._readers[key] = LogReader(form, stealth=self._stealth, trusted=self._trusted)
        return self._readers[key]

    def forget(self, key: PlaceKey) -> None:
        """Drop the reader of a file that is gone."""
        self._readers.pop(key, None)


class Logs:
    """Reads what is new of every log with each `step`. For one thread; `show` may be called from any.

    `stealth` gives the published ranges, and a new object when they have changed.
    """

    def __init__(
        self,
        store: VisitStore,
        settings: Callable[[], Mapping[str, LogSettings]],
        *,
        identify: Identify,
        dispatched: Note,
        stealth: Callable[[], Stealth | None] = lambda: None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._identify = identify
        self._dispatched = dispatched
        self._stealth = stealth
        self._ranges: Stealth | None = None
        self._logs: dict[str, _Log] = {}
        self._behind: dict[str, int] = {}
        self._caught_up: dict[str, float] = {}
        self._pruned = 0.0
        self._troubles = Troubles()

    def step(self, now: float) -> bool:
        """Read on in every log, count, and commit; whether there is more to read at once.

        Raises HistoryError where that cannot be written: nothing of it counts, and it is read again.
        """
        self._arrange(now)
        update = LogUpdate()
        settle(self._store.waiting, self._identify, update, now=now)
        self._commit(update)
        more = False
        claims = Claims.of({name: each.settings.path for name, each in self._logs.items()})
        for name, each in self._logs.items():
            more = self._read(each, claims, now) or more
            self._behind[name] = each.follower.behind
            trouble = each.follower.trouble(claims)
            self._troubles.note(name, trouble, now=now)
            if not each.follower.behind and not trouble:
                self._caught_up[name] = now
        if now - self._pruned > PRUNE_EVERY:
            self._pruned = now
            self._store.prune(now)
        return more

    def close(self) -> None:
        """Close all files."""
        for each in self._logs.values():
            each.follower.close()
        self._logs.clear()

    def show(self, put: Put, now: float) -> None:
        """What /metrics shows of logs and visits: only what is on disk."""
        settings = self._settings()
        tenants = {each.tenant for each in settings.values()}
        for spec in COUNTERS:
            for (name, labels), value in self._store.counters.items():
                known = labels[0] in (settings if spec.labels[0] == "log" else tenants)
                if name == spec.name and known:
                    put(spec, labels, value)
        for key, at in self._store.last.items():
            if key[0] in tenants:
                put(metrics.SEARCHBOT_LAST, key, at)
        for name in settings:
            if name in self._behind:
                if not self._troubles.of(name):
                    put(metrics.LOG_LAG_BYTES, (name,), self._behind[name])
                put(metrics.LOG_LAG, (name,), max(0.0, now - self._caught_up.get(name, now)))

    def _arrange(self, now: float) -> None:
        """Let the logs be those of the configuration and of the ranges in force."""
        ranges, settings = self._stealth(), self._settings()
        for name in list(self._logs):
            if settings.get(name) != self._logs[name].settings or ranges is not self._ranges:
                self._logs.pop(name).follower.close()
        self._ranges = ranges
        self._logs = {name: self._logs[name] for name in settings if name in self._logs}  # the first has what is shared
        self._troubles.keep(settings)
        for name, each in settings.items():
            if name not in self._logs:
                self._logs[name] = _Log(each, self._store, self._identify, ranges, self._dispatched)
                self._caught_up.setdefault(name, now)

    def _read(self, each: _Log, claims: Claims, now: float) -> bool:
        """Read on in one log, and commit; whether there is more."""
        update = LogUpdate()
        try:
            update.places |= each.follower.look(claims)
            for piece in each.follower.pieces(BYTES_AT_ONCE):
                reader = each.reader(piece.key)
                lines, unreadable = reader.lines, reader.unreadable
                each.count.add(reader.visits(piece.chunk), update, self._store.waiting, now=now)
                labels = (each.settings.label,)
                update.increase(metrics.LOG_LINES.name, labels, reader.lines - lines)
                update.increase(metrics.LOG_UNREADABLE.name, labels, reader.unreadable - unreadable)
                update.increase(metrics.LOG_BYTES.name, labels, len(piece.chunk))
                update.places[piece.key] = each.follower.keep(piece.key, reader.form.state)
            self._commit(update)
        except BaseException:
            self._logs.pop(each.settings.label, None)  # what was read does not count: begin again from what is on disk
            each.follower.close()
            raise
        for key, place in update.places.items():
            if place is None:
                each.forget(key)
        return bool(each.follower.behind and update.counters)

    def _commit(self, update: LogUpdate) -> None:
        if update:
            self._store.add(update)


COUNTERS: Final = (
    metrics.SEARCHBOT_VISITS,
    metrics.DISPATCH_ARRIVALS,
    metrics.LOG_LINES,
    metrics.LOG_UNREADABLE,
    metrics.LOG_BYTES,
)
