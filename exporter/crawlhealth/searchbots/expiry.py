"""The ends of domains' registrations, told by RDAP: asked once a day, and what was told last holds."""

from __future__ import annotations

import ipaddress
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from crawlhealth.searchbots.looks import Look
from crawlhealth.searchbots.redirects import domain_of
from crawlhealth.searchbots.rounds import Rounds
from crawlhealth.searchbots.shelf import Shelf

log = logging.getLogger(__name__)

EVERY: Final = 86_400.0
RETRY: Final = 3600.0
TIMEOUT: Final = 20.0
MOST_REDIRECTS: Final = 5
MOST_AT_ONCE: Final = 2
"""Registries refuse who asks for much at once."""
YEAR: Final = 365.25 * 86_400.0
LONGEST_OVER: Final = 10 * YEAR
LONGEST_AHEAD: Final = 110 * YEAR
"""Some registries sell a hundred years; "never" and "unknown" are written as ends that lie beyond these."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ExpiryError(Exception):
    """The end of a registration could not be found out; the message says why."""


class AnotherNameError(ExpiryError):
    """The answer is of another name than was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """The end of a domain's registration, and when that was told; unix seconds."""

    until: float
    at: float


def registrations(domain: str) -> tuple[str, ...]:
    """The names that a domain may be registered under, the longest first; none for addresses and bare names."""
    host = domain.partition(":")[0]
    try:
        ipaddress.ip_address(host)
    except ValueError:
        labels = host.split(".")
        return tuple(".".join(labels[first:]) for first in range(len(labels) - 1))
    return ()


def end_of(body: bytes, name: str, *, now: float) -> float:
    """The end of a name's registration that an RDAP answer tells of, unix seconds.

    Raises ExpiryError: AnotherNameError where the answer is of another name; also for an end that none has.
    """
    try:
        document = json.loads(body)
        told = document.get("ldhName") or name  # which a service may leave out
        events = document["events"]
        written = [event["eventDate"] for event in events if event.get("eventAction") == "expiration"]
        moments = [datetime.fromisoformat(text) for text in written]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ExpiryError("the answer is no RDAP that can be read") from error
    if not isinstance(told, str) or told.lower().rstrip(".") != name.lower():
        raise AnotherNameError(f"the answer is of another name than {name}")
    if not moments:
        raise ExpiryError("the answer tells of no end")
    end = max(moment if moment.tzinfo else moment.replace(tzinfo=UTC) for moment in moments)
    seconds = (end - _EPOCH).total_seconds()
    if not -LONGEST_OVER <= seconds - now <= LONGEST_AHEAD:
        raise ExpiryError(f"the answer tells of {end.date()}, which is no end of a registration")
    return seconds


class Expiries:
    """The ends of all domains. A look-up that fails changes nothing but `failed`, and is tried again in an hour."""

    def __init__(
        self,
        domains: Callable[[], tuple[str, ...]],
        service: Callable[[], str],
        look: Look,
        *,
        shelf: Shelf,
        clock: Callable[[], float],
    ) -> None:
        self._domains = domains
        self._service = service
        self._look = look
        self._shelf = shelf
        self._clock = clock
        self._known = {domain: Expiry(until=until, at=at) for domain, until, at in shelf.expiries()}
        self._failed: dict[str, str] = {}
        self._asked: dict[str, float] = {}
        self.rounds = Rounds("expiry", self._ask, most=MOST_AT_ONCE, retry=RETRY, clock=clock)

    def tick(self) -> None:
        """Begin what is due."""
        self.rounds.tick(domain for domain in dict.fromkeys(map(domain_of, self._domains())) if registrations(domain))

    def known(self) -> Iterator[tuple[str, Expiry | None, str | None]]:
        """Each domain that was asked for: what is known, and why the last look-up failed (None: it did not)."""
        for domain in dict.fromkeys(map(domain_of, self._domains())):
            if domain in self._known or domain in self._failed:
                yield domain, self._known.get(domain), self._failed.get(domain)

    def _ask(self, domain: str) -> float:
        known, now = self._known.get(domain), self._clock()
        if known is not None and domain not in self._failed and 0.0 <= now - known.at < EVERY:
            return known.at + EVERY - now
        try:
            found = Expiry(until=self._look_up(domain), at=now)
        except ExpiryError as error:
            log.warning("the end of %s could not be found out: %s", domain, error)
            self._failed[domain] = str(error)
            return RETRY
        self._known[domain] = found
        self._failed.pop(domain, None)
        self._shelf.save_expiry(domain, found.until, found.at)
        return EVERY

    def _look_up(self, domain: str) -> float:
        why = "no service knows it"
        for name in registrations(domain):
            url = f"{self._service().rstrip('/')}/domain/{quote(name)}"
            looked = self._look(url, timeout=TIMEOUT, redirects=MOST_REDIRECTS, accept="application/rdap+json")
            if looked.status == 200:
                try:
                    return end_of(looked.body, name, now=self._clock())
                except AnotherNameError as error:  # some answer for www.shop.example with shop.example
                    why = str(error)
                    continue
            if looked.status not in (400, 404):
                raise ExpiryError(looked.detail or f"HTTP {looked.status}")
            why = f"no registration of it is known (HTTP {looked.status})"
        raise ExpiryError(why)
