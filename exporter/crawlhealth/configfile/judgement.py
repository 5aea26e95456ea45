"""What must hold in `advice`, `maintenance`, `uplink` and `score.canaries`: a function each, noting every problem."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import TypeVar
from urllib.parse import urlsplit

from crawlhealth.config import Maintenance, UplinkSettings
from crawlhealth.maintenance import clock, moment
from crawlhealth.scoresettings import MOST_RUNS, AdviceSettings, CanaryLed
from crawlhealth.yamlfile.binding import nearest
from crawlhealth.yamlfile.document import Document, Steps
from crawlhealth.yamlfile.tree import quoted

Read = TypeVar("Read")


def check_advice(document: Document, advice: AdviceSettings) -> None:
    """Advice slows down and never speeds up."""
    if not 0 <= advice.least_concurrency <= 1:
        document.report(("advice", "least_concurrency"), "must be a share from 0 to 1: write for instance 0.25")
    for name in ("most_revisit", "most_cost"):
        if not 1 <= getattr(advice, name) <= 1000:
            document.report(("advice", name), "must be a factor from 1 to 1000: write for instance 4")


def check_canary_led(document: Document, led: CanaryLed) -> None:
    """Rows of runs that are remembered, over times that can pass."""
    for name in ("refused", "served"):
        if not 1 <= getattr(led, name) <= MOST_RUNS and document.sound("score", "canaries", name):
            message = f"must be a number of runs from 1 to {MOST_RUNS}: write for instance 6"
            document.report(("score", "canaries", name), message)
    if led.double_every <= timedelta(0) and document.sound("score", "canaries", "double_every"):
        document.report(("score", "canaries", "double_every"), "must be more than 0: write for instance 15m")


def check_maintenance(document: Document, windows: tuple[Maintenance, ...], sites: Collection[str]) -> None:
    """Every window has a start and an end that can be read, and sites that exist."""
    for number, window in enumerate(windows):
        steps = ("maintenance", number)
        for place, site in enumerate(window.sites):
            if site not in sites:
                message = f"there is no site {quoted(site)}: {nearest(site, sites)}"
                document.report((*steps, "sites", place), message)
        if window.days:
            _readable(document, clock, window.start, (*steps, "start"))
            _readable(document, clock, window.end, (*steps, "end"))
            continue
        start = _readable(document, moment, window.start, (*steps, "start"))
        end = _readable(document, moment, window.end, (*steps, "end"))
        if start is not None and end is not None and end <= start:
            document.report((*steps, "end"), "must be after start")


def check_uplink(document: Document, uplink: UplinkSettings) -> None:
    """A reference that can be fetched, and times that can pass."""
    if uplink.sites < 1 and document.sound("uplink", "sites"):
        document.report(("uplink", "sites"), "must be at least 1")
    if uplink.every < timedelta(seconds=1) and document.sound("uplink", "every"):
        document.report(("uplink", "every"), "must be at least 1s: write for instance 30s")
    if uplink.after < timedelta(0):
        document.report(("uplink", "after"), "must not be negative")
    if uplink.reference is None:
        return
    example = "write for instance https://www.iana.org/"
    try:
        parts = urlsplit(uplink.reference)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and uplink.reference.isprintable()
        good = good and (parts.port is None or parts.port > 0) and " " not in uplink.reference
    except ValueError:
        good = False
    if not good:
        document.report(("uplink", "reference"), f"is not an http or https URL: {example}", secret=True)
    elif parts.username is not None:
        document.report(("uplink", "reference"), f"must not hold a user name: {example}", secret=True)


def _readable(document: Document, read: Callable[[str], Read], text: str, steps: Steps) -> Read | None:
    try:
        return read(text)
    except ValueError as error:
        document.report(steps, f"{quoted(text)} is not a time: {_remedy(error)}")
        return None


def _remedy(error: ValueError) -> str:
    said = str(error)
    return said if "write" in said else "write a moment as in 2026-12-01T22:00:00Z"
