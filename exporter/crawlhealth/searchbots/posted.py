"""Decisions that a dispatcher posts, summed by the minute: each item looked at, all of them committed at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final

import msgspec

from crawlhealth.history.pushes import Pushed, PushKey
from crawlhealth.history.visits import HOUR, LogUpdate
from crawlhealth.history.visitstore import VisitStore
from crawlhealth.searchbots.bots import BOTS, Agents, named
from crawlhealth.searchbots.dispatch import Decided, Dispatches
from crawlhealth.searchbots.model import DispatchDecision
from crawlhealth.searchbotsettings import OTHER_TARGET, SearchbotSettings

MAX_ITEMS: Final = 10_000
MAX_COUNT: Final = 1_000_000_000
MAX_NAMED: Final = 100
"""Rejected items that are named; of the others only the number is given."""
AHEAD_SECONDS: Final = 300.0

Name = Annotated[str, msgspec.Meta(max_length=300)]


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """So many visits of which the same was decided. `at` is unix seconds, now unless written."""

    domain: Name
    bot: Name
    decision: DispatchDecision
    count: Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
    target: Name = ""
    tenant: Name | None = None
    at: float | None = None


class Refusal(msgspec.Struct, frozen=True):
    """One item that was not taken. `index` counts the items of the post from 0."""

    index: int
    reason: str


class Said(msgspec.Struct, kw_only=True):
    """The answer to one post. An accumulator. `forbidden` are items of what is not the sender's."""

    accepted: int = 0
    rejected_items: int = 0
    rejected: list[Refusal] = []
    forbidden: int = 0

    @property
    def items(self) -> int:
        """All items of the post."""
        return self.accepted + self.rejected_items


class NotYours(ValueError):
    """An item of a tenant, domain or target that the sender may not speak for; also where there is no such."""


class TooMany(ValueError):
    """More items than one post may have."""


class UsedBefore(ValueError):
    """A post with the key of another one that had other content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One post as it came: its JSON texts, which tenants its sender may speak for, and its key, if it has one."""

    texts: Sequence[bytes | msgspec.Raw]
    tenants: frozenset[str]
    checksum: int
    key: PushKey | None = None


_item = msgspec.json.Decoder(Item).decode
_said = msgspec.json.Decoder(Said).decode


class Posts:
    """Takes posts from any thread, one at a time. `max_age` is how old what is posted may be."""

    def __init__(
        self,
        store: VisitStore,
        dispatches: Dispatches,
        settings: Callable[[], SearchbotSettings],
        *,
        max_age: Callable[[], timedelta],
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._dispatches = dispatches
        self._settings = settings
        self._max_age = max_age
        self._clock = clock
        self._agents = Agents()
        self._lock = threading.Lock()

    def take(self, post: Post) -> tuple[Said, bool]:
        """Count a post and bring it to disk; what is answered, and whether it had been taken before.

        Raises TooMany and UsedBefore where nothing is taken, and HistoryError where it is not on disk.
        """
        if len(post.texts) > MAX_ITEMS:
            raise TooMany(f"more than {MAX_ITEMS} items: send smaller batches")
        with self._lock:
            known = None if post.key is None else self._store.pushed(post.key)
            if known is not None:
                if known.checksum != post.checksum:
                    raise UsedBefore("the key was given to another post before: give each a key of its own")
                return _said(known.answer), True
            now, update = self._clock(), LogUpdate()
            said = self._counted(post, update, now)
            if post.key is not None:
                answer = msgspec.json.encode(said)
                update.pushes[post.key] = Pushed(at=now, checksum=post.checksum, answer=answer)
            if update:
                self._store.add(update)
            return said, False

    def _counted(self, post: Post, update: LogUpdate, now: float) -> Said:
        said, settings = Said(), self._settings()
        domains = {tenant: {each.lower(): each for each in settings.domains_of(tenant)} for tenant in post.tenants}
        for index, text in enumerate(post.texts):
            try:
                item = _item(text)
                decided = self._decided(item, post.tenants, domains, now)
            except (ValueError, RecursionError) as error:
                said.forbidden += isinstance(error, NotYours)
                if said.rejected_items < MAX_NAMED:
                    said.rejected.append(Refusal(index, str(error)[:200]))
                said.rejected_items += 1
                continue
            self._dispatches.note(update, decided, item.count)
            said.accepted += 1
        return said

    def _decided(
        self,
        item: Item,
        tenants: frozenset[str],
        domains: dict[str, dict[str, str]],
        now: float,
    ) -> Decided:
        """What an item says, in the configuration's words. Raises NotYours, and ValueError for what cannot be."""
        tenant = item.tenant if item.tenant is not None else next(iter(tenants), "")
        if item.tenant is None and len(tenants) != 1:
            raise ValueError("needs tenant: the token is good for several")
        if tenant not in tenants:
            raise NotYours(f"the token is not for the tenant {tenant[:50]!r}")
        domain = domains[tenant].get(item.domain.lower())
        if domain is None:
            raise NotYours(f"{item.domain[:50]!r} is none of the domains of {tenant!r}")
        bot = named(item.bot) or self._agents.bot(item.bot.encode("utf-8", "replace"))
        if bot is None:
            known = ", ".join(each.name for each in BOTS[:3])
            raise ValueError(f"the bot {item.bot[:50]!r} is not known: write its name as in {known}")
        name, _ = self._dispatches.target(tenant, item.target)
        if name == OTHER_TARGET:
            raise NotYours(f"{item.target[:50]!r} is none of the targets of {tenant!r}")
        if not name and item.decision is not DispatchDecision.STAYED:
            raise ValueError(f"needs target: where {item.decision.value} is said of")
        at = now if item.at is None else item.at
        if not now - self._max_age().total_seconds() <= at <= now + AHEAD_SECONDS:
            raise ValueError("at is too long ago, or to come: write the time of the minute in unix seconds")
        return Decided(tenant, domain, bot.name, item.target, item.decision, int(at) // HOUR * HOUR)
