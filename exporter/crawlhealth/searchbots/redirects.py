"""Redirects of the user's own domains: whether they lead in a circle, and the certificates that are seen on the way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from crawlhealth.outcome import Reason
from crawlhealth.searchbots.looks import Look, Looked, origin
from crawlhealth.searchbots.rounds import Rounds

log = logging.getLogger(__name__)

EVERY: Final = 3600.0
RETRY: Final = 300.0
TIMEOUT: Final = 20.0
MOST_REDIRECTS: Final = 20
"""As many as browsers follow."""
MOST_AT_ONCE: Final = 8
SENT_FOR: Final = 3600.0
"""Seconds for which a dispatch from one domain to another counts."""
MOST_SENT: Final = 10_000


def starts(written: str) -> tuple[str, ...]:
    """The URLs at which a domain as written is entered: over http and https, unless it is an origin."""
    if "://" in written:
        return (written.rstrip("/") + "/",)
    return (f"http://{written}/", f"https://{written}/")


def domain_of(written: str) -> str:
    """The name of a domain as written, without scheme; with a port where that is not the scheme's own."""
    return origin(written) if "://" in written else written.lower().rstrip(".")


def circle(start: str, looked: Looked) -> frozenset[str]:
    """The domains of the circle in which redirects lead; empty where they end, or go on without coming back."""
    urls = (start, *looked.redirects)
    seen: dict[str, int] = {}
    for place, url in enumerate(urls):
        bare = url.partition("#")[0]
        if bare in seen:
            return frozenset(origin(part) for part in urls[seen[bare] : place])
        seen[bare] = place
    return frozenset()


def returns(start: str, looked: Looked) -> bool:
    """Whether redirects that never end lead back to the domain that they left, be it by ever new URLs."""
    first, *others = (origin(url) for url in (start, *looked.redirects))
    left = next((place for place, name in enumerate(others) if name != first), len(others))
    return looked.reason is Reason.TOO_MANY_REDIRECTS and first in others[left:]


def cycles(sent: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The domains from which visits that are sent on come back: the strongly connected ones of more than one."""
    onward: dict[str, set[str]] = {}
    for source, goal in sent:
        if source != goal:
            onward.setdefault(source, set()).add(goal)
    return frozenset(domain for domain in onward if domain in _reached(domain, onward))


def _reached(start: str, onward: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [*onward.get(start, ())]
    while waiting:
        domain = waiting.pop()
        if domain not in found:
            found.add(domain)
            waiting.extend(onward.get(domain, ()))
    return found


class Redirects:
    """Follows the redirects of each domain once an hour, and hears of each dispatch from one to another.

    What could not be followed leaves what was known.
    """

    def __init__(self, domains: Callable[[], tuple[str, ...]], look: Look, *, clock: Callable[[], float]) -> None:
        self._domains = domains
        self._look = look
        self._clock = clock
        self._circles: dict[str, dict[str, bool | None]] = {}  # None: followed as far as we go, and no end seen
        self._ends: dict[str, dict[str, float]] = {}
        self._sent: dict[tuple[str, str], float] = {}
        self.rounds = Rounds("redirects", self._follow, most=MOST_AT_ONCE, retry=RETRY, clock=clock)

    def tick(self) -> None:
        """Begin what is due."""
        self.rounds.tick(self._domains())

    def sent(self, domain: str, url: str) -> None:
        """Note that a visit of a domain was sent on to a URL."""
        edge = (domain_of(domain), origin(url))
        self._sent.pop(edge, None)
        while len(self._sent) >= MOST_SENT:
            self._sent.pop(next(iter(self._sent)))
        self._sent[edge] = self._clock()

    def loops(self) -> Iterator[tuple[str, bool]]:
        """Whether each domain is on a circle of redirects or dispatches; nothing of what is not known."""
        now = self._clock()
        sent = cycles(edge for edge, at in tuple(self._sent.items()) if now - at < SENT_FOR)
        for written in self._domains():
            name, found = domain_of(written), tuple(self._circles.get(written, {}).values())
            if name in sent or any(found):
                yield name, True
            elif found and None not in found:
                yield name, False

    def certificates(self) -> Mapping[str, float]:
        """The ends of the certificates of our own domains (unix seconds), by host."""
        return {
            host: end
            for written in self._domains()
            for host, end in self._ends.get(written, {}).items()
            if host == domain_of(written).partition(":")[0]
        }

    def _follow(self, written: str) -> float:
        """Follow a domain's redirects from each of its starts."""
        pause = EVERY
        for start in starts(written):
            looked = self._look(start, timeout=TIMEOUT, redirects=MOST_REDIRECTS)
            self._ends.setdefault(written, {}).update(looked.not_after)
            if looked.status is None and looked.reason is not Reason.TOO_MANY_REDIRECTS:
                log.info("the redirects of %s could not be followed: %s", start, looked.detail)
                continue
            known = self._circles.setdefault(written, {})
            looped: bool | None = domain_of(written) in circle(start, looked) or returns(start, looked)
            if looped and not known.get(start):
                log.warning("redirects of %s lead in a circle: %s", start, " > ".join(looked.redirects))
            elif not looped and looked.reason is Reason.TOO_MANY_REDIRECTS:
                looped = None
                log.info("no end of the redirects of %s after %d", start, len(looked.redirects))
            known[start] = looped
            pause = RETRY if looped else pause
        return pause
