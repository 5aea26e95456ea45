from __future__ import annotations

import socket

from crawlhealth.canary.reference import Reference
from crawlhealth.config import Fetching
from crawlhealth.demo.behaviour import Behaviour, Kind
from crawlhealth.demo.site import PracticeSite
from samples import NOW


def nowhere() -> str:
    """A URL on a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/"


def test_the_uplink_is_down_when_the_reference_brings_no_answer_twice_in_a_row() -> None:
    reference, dead = Reference(), nowhere()
    ups = []
    with PracticeSite() as site:
        for url in (dead, site.url("/"), dead, dead, site.url("/"), dead):
            reference.look(url, Fetching(), now=NOW)
            ups.append(reference.up)
    assert ups == [True, True, True, False, True, True]


def test_a_refusal_is_an_answer_and_no_reference_is_no_fault() -> None:
    reference, dead = Reference(), nowhere()
    for url in (dead, dead, None):
        reference.look(url, Fetching(), now=NOW)
    assert reference.up
    with PracticeSite() as site:
        site.behave(Behaviour(kind=Kind.STATUS, status=403))
        for _ in range(3):
            reference.look(site.url("/"), Fetching(), now=NOW)
    assert reference.up
