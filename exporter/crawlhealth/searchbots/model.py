"""The nouns of search bots: Bot, Identity, Visit, and what a dispatcher decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Identity(StrEnum):
    """Who a visitor is that names a bot, as far as the evidence goes and never further."""

    VERIFIED = "verified"
    FAKE = "fake"
    UNVERIFIABLE = "unverifiable"  # the operator publishes no method
    UNVERIFIED = "unverified"  # the method gave no answer: asked again, never called fake
    STEALTH = "stealth"  # a browser's user agent from a search engine's published ranges


class Method(StrEnum):
    """How an operator lets others tell that a visitor is its bot."""

    DNS = "dns"
    RANGES = "ranges"
    BOTH = "both"  # either proves it
    NONE = "none"


class DispatchDecision(StrEnum):
    """What a dispatcher did with one visit."""

    SENT = "sent"
    STAYED = "stayed"
    OVER_QUOTA = "over_quota"
    TARGET_DOWN = "target_down"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bot:
    """A search engine's or AI company's crawler, and how its visits are proven.

    `suffixes` are lower-case domains with a leading dot: a name belongs when it ends in one (on the label boundary the
    dot makes) and at least one label comes before it. `patterns` are names with `*` for letters, digits and dashes of
    ONE label, matched against the whole lower-case name. `ranges` are the file names the operator publishes, with `*`
    for any letters. `own_networks` are patterns of those names whose whole /24 or /64 is the operator's own, never
    rented out: a proof of such a name may serve its neighbours.
    """

    name: str
    tokens: tuple[str, ...]  # any of them in the user agent names the bot; case counts
    method: Method
    suffixes: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    own_networks: tuple[str, ...] = ()
    forward_may_lack: bool = False  # a PTR that fits without any forward record is `unverified`, not `fake`
    search_engine: bool = False  # a browser from its ranges is `stealth`


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One visit of a bot (or of a browser from a bot's ranges) to one of the user's own domains."""

    at: float  # Unix seconds
    address: str  # canonical text of the visitor's address; never a label
    bot: Bot
    tenant: str
    domain: str
    status: int
    agent: str = ""
    method: str = ""
    path: str = ""
    target: str | None = None
    decision: DispatchDecision | None = None


Identify = Callable[[str, Bot], Identity | None]
"""Who the visitor at an address is that names a bot: answers at once from what is known, never waits, never raises.

None: being found out. Its visits wait (in the history, so that none is lost) and are asked for again; after a minute
they count as `unverified`.
"""


def unverified(_address: str, _bot: Bot) -> Identity | None:
    """`Identify` where nothing verifies."""
    return Identity.UNVERIFIED
