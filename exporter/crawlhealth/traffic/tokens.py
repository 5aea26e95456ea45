"""Who may post: bearer tokens, compared by their hashes, each perhaps for some sites only."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from crawlhealth.config import PushToken, Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a request may do. `who` tells senders apart without telling their tokens; `sites` None stands for all."""

    who: str
    sites: frozenset[str] | None = None


ANYBODY = Grant(who="")
"""What is granted where no tokens are configured."""


def granted(authorization: str, tokens: Iterable[Secret | PushToken]) -> Grant | None:
    """What an Authorization header grants; None for none of the tokens. Takes as long for a wrong token as for any."""
    wanted = list(tokens)
    if not wanted:
        return ANYBODY
    scheme, _, given = authorization.partition(" ")
    offered = _hash(given.strip() if scheme.lower() == "bearer" else "")
    grant = None
    for token in wanted:
        secret, sites = (token.token, frozenset(token.sites)) if isinstance(token, PushToken) else (token, None)
        if hmac.compare_digest(offered, _hash(secret.reveal())):
            grant = Grant(who=offered.hex()[:16], sites=sites)
    return grant


def _hash(token: str) -> bytes:
    return hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=32, person=b"crawlhealth push").digest()
