"""Record: which of a site's verdicts are kept for good."""

from __future__ import annotations

from typing import Final

from crawlhealth.history.batch import HOUR
from crawlhealth.verdict import Verdict

POINTS: Final = 5
GAP: Final = 15.0
"""A score that moved by so many points is recorded, but not within so many seconds of the one before."""


class Record:
    """Remembers the last verdict that was recorded of each site. Not thread-safe: its owner holds a lock."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, int | None]] = {}

    def wants(self, verdict: Verdict, before: Verdict | None) -> bool:
        """Whether to record a verdict; `before` is the site's previous one.

        It is when the band changed, an hour began, or the score moved far from the recorded one.
        """
        last = self._last.get(verdict.site)
        if last is None:
            last = self._last[verdict.site] = verdict.at, verdict.score
        wanted = (
            before is None
            or before.band is not verdict.band
            or before.at // HOUR != verdict.at // HOUR
            or _moved(last, verdict)
        )
        if wanted:
            self._last[verdict.site] = verdict.at, verdict.score
        return wanted


def _moved(recorded: tuple[float, int | None], verdict: Verdict) -> bool:
    """Whether a score is worth a point of its own beside the last recorded (time, score)."""
    at, score = recorded
    far = score is not None and verdict.score is not None and abs(verdict.score - score) >= POINTS
    return far and verdict.at - at >= GAP
