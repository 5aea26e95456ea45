"""Answers: what is known of addresses, for one to two hours, and bounded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from crawlhealth.searchbots.facts import Facts

MOST: Final = 50_000
"""Addresses that are known at once."""
GOOD_FOR: Final = 3600.0
"""Seconds: an answer is good for that to twice that, each address for its own time, so that they do not end at once."""
RETRY_FIRST: Final = 60.0
RETRY_LAST: Final = 3600.0
KEEP_CONFIRMED: Final = 86_400.0
"""Seconds that a proof outlives while asking again fails: a name server that is down makes nobody unknown."""


@dataclass(slots=True)
class Known:
    """Facts, until when they are good, and how often asking has failed since."""

    facts: Facts
    until: float
    failures: int = 0


class Answers:
    """What is known, by address, the oldest first. One writer; readers in other threads see whole entries."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[str, Known] = {}
        self._unsaved: set[str] = set()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, address: str) -> Known | None:
        """What is known of an address, however old."""
        return self._known.get(address)

    def put(self, address: str, facts: Facts, now: float) -> Known:
        """Take what a look-up found. One that failed does not take the place of a proof that is younger than a day."""
        before = self._known.pop(address, None)
        if not facts.failed:
            known = Known(facts, now + good_for(address))
        else:
            failures = 1 if before is None else before.failures + 1
            kept = before is not None and before.facts.confirmed and now - before.facts.at < KEEP_CONFIRMED
            pause = min(RETRY_LAST, RETRY_FIRST * 2.0 ** min(failures - 1, 10))
            known = Known(before.facts if before is not None and kept else facts, now + pause, failures)
        while len(self._known) >= self._most:
            self._known.pop(next(iter(self._known)))
        self._known[address] = known
        self._unsaved.add(address)
        return known

    def load(self, rows: Iterable[tuple[str, Facts]]) -> None:
        """Begin with what was kept on disk, oldest first."""
        for address, facts in rows:
            self._known[address] = Known(facts, facts.at + good_for(address))

    def unsaved(self) -> list[tuple[str, Facts]]:
        """What was found out since the last call and is worth keeping: answers, no failures."""
        addresses, self._unsaved = self._unsaved, set()
        known = ((address, self._known.get(address)) for address in addresses)
        return [(address, entry.facts) for address, entry in known if entry is not None and not entry.facts.failed]


def good_for(address: str) -> float:
    """Seconds that an answer on an address is good for."""
    return GOOD_FOR * (1.0 + crc32(address.encode()) % 1000 / 1000.0)
