"""What some logs say of bots, once over: `crawlhealth logs scan`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from crawlhealth.searchbots.model import Bot, Identify, Identity
from crawlhealth.searchbots.visits import Found

MAX_ADDRESSES: Final = 1_000_000
"""Of all bots together; visits from more of them are counted under none."""
MAX_REQUESTS: Final = 20_000
"""Of one bot, to say what it reads most; after so many different ones no more are counted."""
PATHS_SHOWN: Final = 5


@dataclass(slots=True, kw_only=True)
class Seen:
    """What was seen of one bot. Visits from a browser's user agent (stealth) are counted apart."""

    bot: Bot
    visits: int = 0
    stealth: int = 0
    addresses: Counter[bytes] = field(default_factory=Counter)
    status: Counter[str] = field(default_factory=Counter)
    days: Counter[str] = field(default_factory=Counter)
    requests: Counter[bytes] = field(default_factory=Counter)

    def identities(self, identify: Identify) -> Mapping[Identity, int]:
        """Visits by who they really were; one that is being found out is unverified."""
        found: Counter[Identity] = Counter()
        for address, visits in self.addresses.items():
            found[identify(address.decode("ascii", "replace"), self.bot) or Identity.UNVERIFIED] += visits
        found[Identity.UNVERIFIED] += self.visits - found.total()
        if self.stealth:
            found[Identity.STEALTH] += self.stealth
        return {identity: found[identity] for identity in Identity if found[identity]}


class Report:
    """Sums over any number of logs."""

    def __init__(self) -> None:
        self.bots: dict[str, Seen] = {}
        self.lines = self.unreadable = self.bytes = 0
        self._addresses = 0

    def add(self, visits: Iterable[Found]) -> None:
        """Take the visits of one chunk."""
        gathered: dict[str, tuple[list[tuple[int, str]], list[bytes], list[bytes]]] = {}
        for entry, address, bot, stealth in visits:
            name = bot.name
            if name not in gathered:
                self.bots.setdefault(name, Seen(bot=bot))
                gathered[name] = ([], [], [])
            if stealth:
                self.bots[name].stealth += 1
                continue
            kinds, addresses, requests = gathered[name]
            kinds.append((entry.status, entry.day))
            addresses.append(address)
            requests.append(entry.request)
        for name, (kinds, addresses, requests) in gathered.items():
            seen = self.bots[name]
            seen.visits += len(kinds)
            for (status, day), visits_ in Counter(kinds).items():
                seen.status[class_of(status)] += visits_
                seen.days[day] += visits_
            before = len(seen.addresses)
            if self._addresses < MAX_ADDRESSES:
                seen.addresses.update(addresses)
                self._addresses += len(seen.addresses) - before
            if len(seen.requests) < MAX_REQUESTS:
                seen.requests.update(requests)

    def read(self, *, lines: int, unreadable: int, bytes_: int) -> None:
        """Take what a log had in all."""
        self.lines += lines
        self.unreadable += unreadable
        self.bytes += bytes_

    def sorted(self) -> list[Seen]:
        """The bots, those with most visits first."""
        return sorted(self.bots.values(), key=lambda seen: (-seen.visits, -seen.stealth, seen.bot.name))


def class_of(status: int) -> str:
    """A status as its class: 2xx; `none` where the log has none."""
    return f"{status // 100}xx" if 100 <= status < 600 else "none"


def as_json(report: Report, *, identify: Identify | None = None, paths: int = 0) -> dict[str, object]:
    """The report as plain data: the contract of `logs scan --json`."""
    return {
        "lines": report.lines,
        "unreadable": report.unreadable,
        "bots": {seen.bot.name: _bot_json(seen, identify, paths) for seen in report.sorted()},
    }


def _bot_json(seen: Seen, identify: Identify | None, paths: int) -> dict[str, object]:
    said: dict[str, object] = {
        "visits": seen.visits,
        "addresses": len(seen.addresses),
        "status": dict(sorted(seen.status.items())),
        "days": dict(sorted(seen.days.items())),
    }
    if paths:
        said["paths"] = {show(path): visits for path, visits in _most(seen.requests, paths)}
    if identify is not None:
        said["identities"] = {identity.value: visits for identity, visits in seen.identities(identify).items()}
    elif seen.stealth:
        said["stealth"] = seen.stealth
    return said


def as_text(report: Report, *, identify: Identify | None = None, paths: int = PATHS_SHOWN) -> Iterable[str]:
    """The report for people, line by line."""
    cut = f", {report.unreadable:,} of them unreadable" if report.unreadable else ""
    yield f"{report.lines:,} lines{cut}"
    if not report.bots:
        yield "no bot was named in them"
        return
    days = sorted({day for seen in report.bots.values() for day in seen.days})
    yield f"{sum(seen.visits for seen in report.bots.values()):,} visits of bots" + (
        f", {days[0]} to {days[-1]}" if days else ""
    )
    for seen in report.sorted():
        yield ""
        yield f"{seen.bot.name}: {seen.visits:,} visits from {len(seen.addresses):,} addresses"
        if identify is not None:
            yield "  identity  " + _list((key.value, count) for key, count in seen.identities(identify).items())
        elif seen.stealth:
            yield f"  stealth   {seen.stealth:,} visits of browsers from its ranges"
        yield "  status    " + _list(sorted(seen.status.items()))
        yield "  days      " + _list(sorted(seen.days.items()))
        yield from (f"  {visits:>8,}  {show(path)[:100]}" for path, visits in _most(seen.requests, paths))


def _most(requests: Counter[bytes], number: int) -> list[tuple[bytes, int]]:
    """The paths asked for most, by whatever method."""
    paths: Counter[bytes] = Counter()
    for request, visits in requests.items():
        parts = request.split(b" ", 2)
        paths[parts[1] if len(parts) > 1 else parts[0]] += visits
    return sorted(paths.items(), key=lambda pair: (-pair[1], pair[0]))[:number]


def _list(pairs: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in pairs) or "-"


def show(text: bytes) -> str:
    """Bytes of a visitor's as a text that a terminal can bear."""
    plain = text.decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in plain)
