"""Facts: what the DNS said of an address, whichever bot asked for it, and what of it proves a bot."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from crawlhealth.searchbots.model import Bot, Identity
from crawlhealth.searchbots.names import fits


class Reverse(StrEnum):
    """What came of asking for an address's names."""

    NAMES = "names"
    NXDOMAIN = "nxdomain"  # a clean answer: there is none
    NODATA = "nodata"  # the place exists, and has no name
    FAILED = "failed"  # no answer, or one that says nothing


class Forward(StrEnum):
    """What came of asking for a name's addresses."""

    CONFIRMED = "confirmed"  # the address is among them
    OTHER = "other"  # there are some, it is not among them
    NONE = "none"  # a clean answer: there are none
    FAILED = "failed"


class Facts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known of an address. `forwards` has those of its names that are any bot's, each with what came of it."""

    at: float
    reverse: Reverse
    forwards: tuple[tuple[str, Forward], ...] = ()

    @property
    def failed(self) -> bool:
        """Whether anything was left unanswered that a later look-up may answer."""
        return self.reverse is Reverse.FAILED or (
            not self.confirmed and any(came is Forward.FAILED for _, came in self.forwards)
        )

    @property
    def confirmed(self) -> bool:
        """Whether a name leads back to the address."""
        return any(came is Forward.CONFIRMED for _, came in self.forwards)


WITHOUT_PROOF: Final = frozenset({Reverse.FAILED, Reverse.NODATA})
"""What says nothing on who it is: only a clean NXDOMAIN says that an address has no name."""


def dns_verdict(bot: Bot, facts: Facts) -> tuple[Identity, str]:
    """Who the DNS says an address is that names the bot, and why; never harsher than the evidence."""
    if facts.reverse in WITHOUT_PROOF:
        why = "asking for its name failed" if facts.reverse is Reverse.FAILED else "the answer held no name"
        return Identity.UNVERIFIED, f"{why}, which proves nothing"
    if facts.reverse is Reverse.NXDOMAIN:
        return Identity.FAKE, f"it has no name, and every {bot.name} has one"
    return _by_names(bot, {name: came for name, came in facts.forwards if fits(name, bot)})


def _by_names(bot: Bot, came: dict[str, Forward]) -> tuple[Identity, str]:
    """The same by what came of those of its names that are the bot's."""
    proof = next((name for name, forward in came.items() if forward is Forward.CONFIRMED), None)
    if proof is not None:
        return Identity.VERIFIED, f"{proof} leads back to it"
    if not came:
        return Identity.FAKE, f"none of its names is one of {bot.name}"
    if Forward.FAILED in came.values():
        return Identity.UNVERIFIED, "asking for the addresses of its name failed, which proves nothing"
    if bot.forward_may_lack and Forward.NONE in came.values():
        return Identity.UNVERIFIED, f"its name has no address, as happens with {bot.name}"
    return Identity.FAKE, "its name does not lead back to it: anybody can write such a name"
