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
from crawlhealth.classify.marker import Rule
from crawlhealth.classify.networks import NETWORKS
from crawlhealth.classify.plain import PLAIN

RULES: Final[tuple[Rule, ...]] = (*CLOUDFLARE, *NETWORKS, *FIREWALLS, *GATES, *PLAIN, *HINTS)
