"""The table of markers: what proves a challenge or a block, and what only hints at a vendor.

Patterns are RE2 on bytes, blind to case; a rule that needs two markers needs both. The order of rows within one level
of trust is the order of preference. Bodies that only talk about these things are kept apart by where a marker must
stand, by how much a reader finds on the page, and by `lead`.
"""

from __future__ import annotations

from typing import Final

from crawlhealth.classify.cloudflare import CLOUDFLARE
from crawlhealth.classify.firewalls import FIREWALLS
from crawlhealth.classify.gates import GATES
from crawlhealth.classify.hints import HINTS
from crawlhealth.classify.marker import Act, Kind, Marker, Rule, Where
from crawlhealth.classify.networks import NETWORKS
from crawlhealth.classify.plain import PLAIN
from crawlhealth.config import Block
from crawlhealth.markers import tag_pattern
from crawlhealth.outcome import Reason

RULES: Final[tuple[Rule, ...]] = (*CLOUDFLARE, *NETWORKS, *FIREWALLS, *GATES, *PLAIN, *HINTS)
_PLACES: Final = {
    "header": Where.HEADER,
    "title": Where.TITLE,
    "body": Where.ANY,
    "redirect": Where.REDIRECT,
    "selector": Where.MARKUP,
}


def custom(block: Block) -> Rule:
    """The row of a user's own marker."""
    pattern = tag_pattern(block.pattern) if block.where == "selector" else block.pattern
    return Rule(
        name=block.name,
        kind=Kind.ENFORCEMENT,
        act=Act.CUSTOM,
        needs=(Marker(where=_PLACES[block.where], pattern=pattern, header=block.header.lower()),),
        reason=Reason.CUSTOM,
        outcome=block.outcome,
    )
