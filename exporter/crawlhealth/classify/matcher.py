"""Finding the rules that hold on a page: one pass over the body for all markers, a second look only where one was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import re2

from crawlhealth.classify.marker import LEAD_CHARACTERS, Act, Kind, Marker, Rule, Where
from crawlhealth.classify.page import Page
from crawlhealth.classify.rules import RULES

_SET_MEMORY: Final = 32 << 20
_EXCERPT: Final = 80
_PLAIN_ACTS: Final = frozenset({Act.DENIAL, Act.NOT_CONTENT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A rule that holds, the marker of it that is trusted most, and the text around that marker."""

    rule: Rule
    marker: Marker
    excerpt: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was found on one response: the rules that hold, best first, and the vendors that are hinted at."""

    found: tuple[Found, ...]
    vendors: tuple[str, ...]


class Matcher:
    """A table of rules, compiled. Holds no state of a page; safe to share between threads."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = sorted(rules, key=lambda rule: (rule.act in _PLAIN_ACTS or rule.vendor == "generic", rule.trust))
        markers = {marker: None for rule in rules for marker in rule.needs}
        self._markers = tuple(markers)
        self._single = {marker: _compile(marker.pattern) for marker in self._markers}
        by_place: dict[Where, list[int]] = {}
        for index, marker in enumerate(self._markers):
            place = marker.where if marker.where in {Where.REDIRECT, Where.HEADER, Where.TITLE} else Where.ANY
            by_place.setdefault(place, []).append(index)
        self._body = _Set(self._markers, by_place.get(Where.ANY, []))
        self._title = _Set(self._markers, by_place.get(Where.TITLE, []))
        self._redirect = _Set(self._markers, by_place.get(Where.REDIRECT, []))
        self._headers = [(self._markers[i].header, self._markers[i]) for i in by_place.get(Where.HEADER, [])]
        self._rules_of: dict[Marker, list[int]] = {}
        for index, rule in enumerate(self._rules):
            for marker in rule.needs:
                self._rules_of.setdefault(marker, []).append(index)

    def look(
        self, page: Page, *, headers: Mapping[str, str], targets: Iterable[str], status: int, missing: bool
    ) -> Looked:
        """The rules that hold. `targets` are `host/path` of redirects; `missing` that expected content is not there."""
        seen: dict[Marker, bytes] = dict(self._header_hits(headers))
        for target in targets:
            raw = target.encode("utf-8", "replace").lower()
            seen.update((marker, raw) for marker in self._redirect.hits(raw))
        possible = set(seen) | set(self._title.hits(page.subject.lower())) | set(self._body.hits(page.lower))
        found: list[Found] = []
        vendors: set[str] = set()
        for index in sorted({i for marker in possible for i in self._rules_of[marker]}):
            rule = self._rules[index]
            if not possible.issuperset(rule.needs):
                continue
            if rule.kind is not Kind.ENFORCEMENT:
                vendors.add(rule.vendor)
            elif (not rule.errors_only or status >= 400) and page.fits(rule.room, 3 if missing else 1):
                hit = self._confirm(rule, page, seen)
                if hit:
                    found.append(hit)
        return Looked(found=tuple(found), vendors=tuple(sorted(vendors)))

    def _header_hits(self, headers: Mapping[str, str]) -> Iterator[tuple[Marker, bytes]]:
        for name, marker in self._headers:
            if name.endswith("*"):
                value = next((v for key, v in headers.items() if key.startswith(name[:-1])), None)
            else:
                value = headers.get(name)
            if value is not None:
                raw = value.encode("utf-8", "replace").lower()
                if self._single[marker].search(raw):
                    yield marker, b"" if name == "set-cookie" else value.encode("utf-8", "replace")

    def _confirm(self, rule: Rule, page: Page, seen: Mapping[Marker, bytes]) -> Found | None:
        """Whether each marker stands where it must, and the text around the most trusted one."""
        best: tuple[Marker, bytes] | None = None
        for marker in rule.needs:
            excerpt = seen.get(marker)
            if excerpt is None:
                part = page.part(marker.where)
                match = self._single[marker].search(part.lower())
                if match is None or (marker.lead and match.start() > LEAD_CHARACTERS):
                    return None
                excerpt = part[max(0, match.start() - _EXCERPT) : match.end() + _EXCERPT]
            if best is None or marker.where < best[0].where:
                best = (marker, excerpt)
        return None if best is None else Found(rule=rule, marker=best[0], excerpt=best[1])


class _Set:
    """All patterns of one place in one pass."""

    def __init__(self, markers: Sequence[Marker], indexes: Sequence[int]) -> None:
        self._markers = [markers[index] for index in indexes]
        self._set = re2.Set.SearchSet(_options(_SET_MEMORY))
        for marker in self._markers:
            self._set.Add(marker.pattern.encode())
        self._set.Compile()

    def hits(self, raw: bytes) -> list[Marker]:
        if not raw:
            return []
        return [self._markers[index] for index in self._set.Match(raw) or ()]


def _options(memory: int) -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes as they are: pages hold invalid UTF-8
    options.log_errors = False
    options.max_mem = memory
    return options


def _compile(pattern: str) -> re2._Regexp:
    return re2.compile(pattern.encode(), _options(8 << 20))


@cache
def standard() -> Matcher:
    """The matcher of the whole table, compiled once."""
    return Matcher(RULES)
