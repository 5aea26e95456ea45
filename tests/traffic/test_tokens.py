"""Who may post."""

from __future__ import annotations

import pytest

from crawlhealth.config import PushToken, Secret
from crawlhealth.traffic.tokens import ANYBODY, granted

ALL = Secret("everything")
SOME = PushToken(token=Secret("few"), sites=("books", "quotes"))


@pytest.mark.parametrize(
    ("header", "sites"),
    [
        pytest.param("Bearer everything", None, id="a token alone"),
        pytest.param("bearer  few ", frozenset({"books", "quotes"}), id="a token with its sites, blanks aside"),
    ],
)
def test_a_token_grants_its_sites(header: str, sites: frozenset[str] | None) -> None:
    grant = granted(header, (ALL, SOME))
    assert grant is not None
    assert grant.sites == sites
    assert "everything" not in repr(grant)
    assert "few" not in repr(grant)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer fewer", "Basic few", "few", "Bearer é\udcff"])
def test_anything_else_grants_nothing(header: str) -> None:
    assert granted(header, (ALL, SOME)) is None


def test_without_tokens_anybody_may() -> None:
    assert granted("Bearer whatever", ()) is ANYBODY


def test_two_tokens_are_two_senders() -> None:
    one, other = granted("Bearer everything", (ALL, SOME)), granted("Bearer few", (ALL, SOME))
    assert one is not None
    assert other is not None
    assert one.who != other.who != ""
