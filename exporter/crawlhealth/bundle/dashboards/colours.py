"""Colours of the dashboards: told apart by people who see red and green alike, on dark and on light.

Bands differ in brightness too, so that they stand apart in grey. The others are those of Okabe and Ito, "Color
universal design" (2008). A test sees them as the three kinds of colour blindness do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

BLUE: Final = "#3b8fc4"
SKY: Final = "#7cc7ee"
AMBER: Final = "#f2b63c"
RED: Final = "#b8323c"
GREEN: Final = "#2a9d78"
PINK: Final = "#d58ab8"
YELLOW: Final = "#f0e442"
VERMILLION: Final = "#dd6b20"
VIOLET: Final = "#8f7fe0"
GREY: Final = "#8c8c8c"
PALE: Final = "#a8a8a8"
MUTED: Final = "#4a4f57"
"""Of a count that is nothing: a red 0 would alarm."""

GOOD: Final = BLUE
WARN: Final = AMBER
BAD: Final = RED

BANDS: Final[Mapping[str, str]] = {"normal": BLUE, "degrading": AMBER, "resisting": RED, "unknown": GREY}
SIGNALS: Final[Mapping[str, str]] = {
    "hard_block": VERMILLION,
    "challenge": YELLOW,
    "soft_block": PINK,
    "latency": SKY,
    "refused_cap": VIOLET,
    "refused": VIOLET,
    "extraction": GREEN,
}
OUTCOMES: Final[Mapping[str, str]] = {
    "ok": BLUE,
    "hard_block": VERMILLION,
    "challenge": YELLOW,
    "soft_block": PINK,
    "error": GREY,
}
SEVERITIES: Final[Mapping[str, str]] = {"critical": RED, "warning": AMBER, "info": SKY}
IDENTITIES: Final[Mapping[str, str]] = {
    "verified": BLUE,
    "fake": RED,
    "unverifiable": GREY,
    "unverified": AMBER,
    "stealth": PINK,
}
DECISIONS: Final[Mapping[str, str]] = {"sent": BLUE, "stayed": PALE, "over_quota": AMBER, "target_down": RED}
PHASES: Final[Mapping[str, str]] = {
    "dns": PINK,
    "connect": YELLOW,
    "tls": VERMILLION,
    "first_byte": BLUE,
    "transfer": SKY,
}
