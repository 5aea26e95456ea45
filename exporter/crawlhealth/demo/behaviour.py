"""How the practice site can behave, and which requests a behaviour falls on: pure but for its own counting."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final, Literal

import msgspec

ALL_OF_IT: Final = 1_000_000
"""A share of 1, in the millionths that shares are counted in."""


class Kind(StrEnum):
    """What the site does with a request. The first group changes the page that is served, the others replace it."""

    SLOW = "slow"
    DECOY = "decoy"
    REDESIGN = "redesign"
    EMPTY_LISTING = "empty_listing"
    SHRUNKEN = "shrunken"
    BLANK_VALUES = "blank_values"
    ENCODED = "encoded"
    # refusals and errors
    STATUS = "status"
    RESET = "reset"
    CLOSE = "close"
    HANG = "hang"
    CHALLENGE = "challenge"
    BLOCK_PAGE = "block_page"
    IMPERVA_STUB = "imperva_stub"
    HTML_FOR_JSON = "html_for_json"
    REDIRECT_LOGIN = "redirect_login"
    REDIRECT_HOME = "redirect_home"
    REDIRECT_DEFAULT_PAGE = "redirect_default_page"
    REDIRECTS = "redirects"
    ENDLESS_REDIRECTS = "endless_redirects"
    # hostile bodies
    DRIP = "drip"
    DRIP_HEAD = "drip_head"
    ENDLESS = "endless"
    LARGE = "large"
    BOMB = "bomb"
    BIG_HEADER = "big_header"
    TRUNCATED = "truncated"
    NESTED_TAGS = "nested_tags"
    MANY_ATTRIBUTES = "many_attributes"
    NESTED_DIVS = "nested_divs"
    CATASTROPHIC = "catastrophic"
    BAD_ENCODING = "bad_encoding"
    NUL_BYTES = "nul_bytes"


CHANGES: Final = frozenset(
    {
        Kind.SLOW,
        Kind.DECOY,
        Kind.REDESIGN,
        Kind.EMPTY_LISTING,
        Kind.SHRUNKEN,
        Kind.BLANK_VALUES,
        Kind.ENCODED,
    }
)
"""Behaviours that stack on one page; of all others the first that is due answers the request."""

_MAIN_ARGUMENT: Final[Mapping[Kind, str]] = {
    Kind.SLOW: "seconds",
    Kind.DRIP: "seconds",
    Kind.DRIP_HEAD: "seconds",
    Kind.STATUS: "status",
    Kind.BLOCK_PAGE: "status",
    Kind.CHALLENGE: "vendor",
    Kind.REDIRECTS: "count",
    Kind.BOMB: "encoding",
    Kind.ENCODED: "encoding",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """One behaviour on the paths that start with `path`, asked of `host` (any if empty), for a share of the requests.

    `via` narrows it to requests that come directly or through the site's own proxying. `seconds` is the delay of
    slow and the pause between bytes of drip; `status` overrides a kind's own one; `vendor` names a challenge (see
    refusals.VENDORS); `count` is the number of redirects; `retry_after` is sent with a status.
    """

    kind: Kind
    path: str = "/"
    host: str = ""
    share: float = 1.0
    via: Literal["any", "direct", "proxy"] = "any"
    seconds: float = 0.5
    status: int | None = None
    vendor: str = "cloudflare"
    count: int = 3
    retry_after: int | None = None
    encoding: Literal["gzip", "br", "zstd"] = "gzip"

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share {self.share}: write a number from 0 to 1")
        if not 0 <= self.seconds <= 3600:
            raise ValueError(f"seconds {self.seconds}: write a number from 0 to 3600")

    def concerns(self, path: str, host: str, proxied: bool) -> bool:
        """Whether this behaviour is about such a request."""
        return (
            path.startswith(self.path)
            and (not self.host or self.host == host)
            and (self.via == "any" or proxied is (self.via == "proxy"))
        )


_FIELDS: Final = frozenset(field.name for field in fields(Behaviour))


def parse(written: object) -> tuple[Behaviour, ...]:
    """Behaviours from decoded JSON: one object or a list of them. Raises ValueError with what is wrong."""
    items = written if isinstance(written, list) else [written]
    for item in items:
        if isinstance(item, Mapping) and (unknown := sorted(set(item) - _FIELDS)):
            raise ValueError(f"unknown key {unknown[0]}: write one of {', '.join(sorted(_FIELDS))}")
    return msgspec.convert(items, tuple[Behaviour, ...])


def of_prefix(text: str) -> Behaviour | None:
    """The behaviour that a path's first part asks for: `~KIND` or `~KIND:ARGUMENT`; None if it asks for none.

    Raises ValueError when it is written like one and names no kind or an impossible argument.
    """
    if not text.startswith("~"):
        return None
    name, _, argument = text[1:].partition(":")
    kind = Kind(name)
    if not argument:
        return Behaviour(kind=kind)
    if kind not in _MAIN_ARGUMENT:
        raise ValueError(f"{name} takes no argument")
    return msgspec.convert({"kind": name, _MAIN_ARGUMENT[kind]: argument}, Behaviour, strict=False)


class Stack:
    """The behaviours in force and how many requests each is owed, so that shares are exact and spread evenly.

    Thread-safe. A replacing behaviour that is due on a request which another one took falls on the next instead:
    shares of stacked behaviours are shares of all requests.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._behaviours: tuple[Behaviour, ...] = ()
        self._owed: list[int] = []

    def replace(self, behaviours: Iterable[Behaviour]) -> None:
        """Put these behaviours in force instead of all earlier ones; none is a normal site."""
        with self._lock:
            self._behaviours = tuple(behaviours)
            self._owed = [0] * len(self._behaviours)

    def current(self) -> tuple[Behaviour, ...]:
        """The behaviours in force."""
        return self._behaviours

    def pick(self, path: str, host: str, proxied: bool) -> tuple[Behaviour, ...]:
        """The behaviours that fall on this request: changes in their order, and at most one that replaces the page."""
        if not self._behaviours:
            return ()
        picked: list[Behaviour] = []
        replaced = False
        most = (len(self._behaviours) + 1) * ALL_OF_IT
        with self._lock:
            for index, behaviour in enumerate(self._behaviours):
                if not behaviour.concerns(path, host, proxied):
                    continue
                owed = self._owed[index] + round(behaviour.share * ALL_OF_IT)
                replaces = behaviour.kind not in CHANGES
                if owed >= ALL_OF_IT and not (replaces and replaced):
                    owed -= ALL_OF_IT
                    picked.append(behaviour)
                    replaced = replaced or replaces
                self._owed[index] = min(owed, most)
        return tuple(picked)
