"""What a person decides, by a site's band and by where its fault lies: one line each, for a panel."""

from __future__ import annotations

from typing import Final

from crawlhealth.bundle.dashboards import colours
from crawlhealth.bundle.dashboards.board import Mapped
from crawlhealth.bundle.dashboards.parts import BAND, BAND_NUMBERS, FAULT, FAULT_NUMBERS

EXPR: Final = f"10 * {BAND}\n+ on (@by) ({FAULT}\n  or on (@by) 0 * {BAND})"
"""The number of the band, then that of the fault."""

_BY_FAULT: Final = {
    "route": "Take the failing route out, or have it mended",
    "parser": "Mend the selectors, then crawl again what was missed",
    "decoy": "Trust no record since: look at the page yourself",
    "self": "Call who runs our network: no site is to blame",
}
_BY_BAND: Final = {
    "unknown": "Nothing yet: too little is known to judge",
    "normal": "Nothing",
    "degrading": "Did we change something? Slow down more than advised?",
    "resisting": "Slow down for longer, ask for an API, or leave it",
}
_COLOURS: Final = {"unknown": colours.GREY, "normal": colours.GOOD}


def _text(band: str, fault: str) -> str:
    if fault in _BY_FAULT:
        return _BY_FAULT[fault]
    if band == "normal" and fault == "site":
        return "Watch it: all routes begin to fail"
    return _BY_BAND[band]


def _colour(band: str, fault: str) -> str:
    if band == "resisting" or fault in ("decoy", "self"):
        return colours.BAD
    if band == "degrading" or fault != "none":
        return colours.WARN
    return _COLOURS[band]


NAMES: Final = tuple(
    Mapped(value=10 * number + code, text=_text(band, fault), colour=_colour(band, fault))
    for band, number in BAND_NUMBERS.items()
    for fault, code in FAULT_NUMBERS.items()
)
