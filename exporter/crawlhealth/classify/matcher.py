"""Finding the rules that hold on a page: one pass over the body for all markers, a second look only where one was."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

import re2

from crawlhealth.classify.marker import Act, Kind, Marker, Rule, Where
from crawlhealth.classify.page import Page
from crawlhealth.classify.rules import RULES, custom
from crawlhealth.config import Block
from crawlhealth.markers import MARKER_MEMORY, marker_options

_SET_MEMORY: Final = 32 << 20
_EXCERPT: Final = 80
_GAP: Final = r"(?:\s|<[^<>]*>)+"
_OWN_PAGES: Final = frozenset({400, 404, 410})
MISSING_FACTOR: Final = 3
"""How much more a gate may show where the expected content is known to be missing."""
_PLAIN_ACTS: Final = frozenset({Act.DENIAL, Act.NOT_CONTENT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A rule that holds, and the text around its first marker."""

    rule: Rule
    excerpt: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was found on one response: the rules that hold, best first, and the vendors that are hinted at."""

    found: tuple[Found, ...]
    vendors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A rule with its markers as numbers."""

    rule: Rule
    needs: tuple[int, ...]


class Matcher:
    """A table of rules, compiled. Holds no state of a page; safe to share between threads."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        ordered = sorted(rules, key=_rank)
        self._markers = tuple({marker: None for rule in ordered for marker in rule.needs})
        number = {marker: index for index, marker in enumerate(self._markers)}
        self._single = [_compile(_pattern(marker)) for marker in self._markers]
        self._rows = [_Row(rule=rule, needs=tuple(number[marker] for marker in rule.needs)) for rule in ordered]
        self._rows_of: list[list[int]] = [[] for _ in self._markers]
        for index, row in enumerate(self._rows):
            for need in row.needs:
                self._rows_of[need].append(index)
        self._redirect = self._set({Where.REDIRECT})
        self._title = self._set({Where.TITLE})
        self._body = self._set(set(Where) - {Where.REDIRECT, Where.HEADER, Where.TITLE})
        names = {marker.header for marker in self._markers if marker.where is Where.HEADER}
        self._headers = {name: self._set({Where.HEADER}, name) for name in names}
        self._prefixes = tuple(name[:-1] for name in names if name.endswith("*"))

    def _set(self, places: Container[Where], header: str = "") -> _Set:
        chosen = (
            (index, _pattern(marker))
            for index, marker in enumerate(self._markers)
            if marker.where in places and marker.header == header
        )
        return _Set(dict(chosen))

    def look(
        self, page: Page, *, headers: Mapping[str, str], targets: Iterable[str], status: int, extracted: bool | None
    ) -> Looked:
        """The rules that hold.

        `targets` are `host/path` of redirects. `extracted` is True where expected content was found: then no body
        rule applies; False where it is missing: then a page may show more and still be a gate, and as much as it
        likes under the exact title of one.
        """
        seen = self._header_hits(headers)
        for target in targets:
            raw = target.encode("utf-8", "replace")
            seen.update(dict.fromkeys(self._redirect.hits(raw), raw))
        possible = {*seen, *self._title.hits(page.subject), *self._body.hits(page.text)}
        found: list[Found] = []
        vendors: set[str] = set()
        missing = extracted is False
        refuses = status >= 400 and status not in _OWN_PAGES
        for index in sorted({row for marker in possible for row in self._rows_of[marker]}):
            row = self._rows[index]
            rule = row.rule
            if not possible.issuperset(row.needs):
                continue
            if rule.kind is not Kind.ENFORCEMENT:
                vendors.add(rule.vendor)
            elif (extracted is True and rule.reads_body) or (rule.errors_only and not refuses):
                continue
            elif (missing and rule.trust is Where.TITLE) or page.fits(rule.room, MISSING_FACTOR if missing else 1):
                hit = self._confirm(row, page, seen)
                if hit:
                    found.append(hit)
        return Looked(found=tuple(found), vendors=tuple(sorted(vendors)))

    def _header_hits(self, headers: Mapping[str, str]) -> dict[int, bytes]:
        """Markers on headers, each with the value it stands in; of a cookie nothing is kept."""
        hits: dict[int, bytes] = {}
        for name, value in headers.items():
            matching = self._headers.get(name)
            if matching is None and name.startswith(self._prefixes):
                matching = next(self._headers[p + "*"] for p in self._prefixes if name.startswith(p))
            if matching is not None:
                raw = value.encode("utf-8", "replace")
                hits.update(dict.fromkeys(matching.hits(raw), b"" if name == "set-cookie" else raw))
        return hits

    def _confirm(self, row: _Row, page: Page, seen: Mapping[int, bytes]) -> Found | None:
        """Whether each marker stands where it must, and the text around the first."""
        excerpts: list[bytes] = []
        for need in row.needs:
            excerpt = seen.get(need)
            if excerpt is None:
                marker = self._markers[need]
                part = page.part(marker.where)
                match = self._single[need].search(part)
                if match is None or (marker.lead and match.start() > 0):
                    return None
                excerpt = part[max(0, match.start() - _EXCERPT) : match.end() + _EXCERPT]
            excerpts.append(excerpt)
        return Found(rule=row.rule, excerpt=excerpts[0])


def _rank(rule: Rule) -> tuple[bool, bool, Where]:
    """The user's own markers, vendors, pages of no vendor; then by trust: a tag, a script, a JSON key are alike."""
    if rule.act is Act.CUSTOM:
        return (False, False, Where.REDIRECT)  # as written
    structure = rule.trust in {Where.MARKUP, Where.CODE, Where.DATA}
    return (True, rule.act in _PLAIN_ACTS or rule.vendor == "generic", Where.MARKUP if structure else rule.trust)


class _Set:
    """All patterns of one place in one pass; each has a number."""

    def __init__(self, patterns: Mapping[int, str]) -> None:
        self._numbers = list(patterns)
        self._set = re2.Set.SearchSet(marker_options(_SET_MEMORY))
        for pattern in patterns.values():
            self._set.Add(pattern.encode())
        self._set.Compile()

    def hits(self, raw: bytes) -> list[int]:
        return [self._numbers[index] for index in self._set.Match(raw) or ()]


def _pattern(marker: Marker) -> str:
    """A marker's pattern; between words of a text, a page may have any white space and tags."""
    return marker.pattern.replace(" ", _GAP) if marker.where is Where.TEXT else marker.pattern


def _compile(pattern: str) -> re2._Regexp:
    return re2.compile(pattern.encode(), marker_options(MARKER_MEMORY))


@cache
def standard() -> Matcher:
    """The matcher of the whole table, compiled once."""
    return Matcher(RULES)


@lru_cache(maxsize=4)
def extended(blocks: tuple[Block, ...]) -> Matcher:
    """The matcher of the whole table and of the user's markers, compiled once for each configuration."""
    return Matcher((*map(custom, blocks), *RULES))
