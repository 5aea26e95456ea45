"""Baselines of all sites: each learnt again once a block of time and after an import, and never all at once."""

from __future__ import annotations

import logging
import time
import zlib
from typing import Final

from crawlhealth.baseline import learn
from crawlhealth.config import BaselineSettings
from crawlhealth.history import History, HistoryError, Learnt
from crawlhealth.verdict import Baseline

log = logging.getLogger(__name__)

AT_ONCE_SECONDS: Final = 0.1
"""How long baselines are learnt while verdicts wait for them; the other sites go on with the ones before."""
CATCHING_UP_SECONDS: Final = 0.5
"""How long they are learnt in one go by `catch_up`."""


class Baselines:
    """What is known of each site's normal. One thread asks `of`, another may `catch_up`."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._known = dict(history.baselines())
        self._late: dict[str, str] = {}
        self._until: float | None = None
        self._written: tuple[BaselineSettings, str] | None = None

    @property
    def behind(self) -> int:
        """How many sites wait for a new baseline."""
        return len(self._late)

    def begin(self) -> None:
        """Begin an evaluation: there is a little time for learning again, from the first that is learnt."""
        self._until = None

    def of(self, site: str, *, generation: int, settings: BaselineSettings, now: float) -> Baseline | None:
        """The site's normal; until its turn comes to be learnt, the one before. Raises HistoryError.

        `generation` changes when its history was replaced from outside.
        """
        block = settings.block.total_seconds()
        stagger = zlib.crc32(site.encode()) % block  # else every site would learn in the same second
        key = f"{(now - stagger) // block:.0f} {generation} {self._text(settings)}"
        known = self._known.get(site)
        if known is not None and known.key == key:
            return known.baseline
        if self._until is None:
            self._until = time.monotonic() + AT_ONCE_SECONDS
        elif time.monotonic() > self._until:
            self._late[site] = key
            return known.baseline if known is not None else None
        return self._learn(site, key, settings, now)

    def catch_up(self, settings: BaselineSettings, now: float) -> None:
        """Learn some of those that had to wait."""
        until = time.monotonic() + CATCHING_UP_SECONDS
        for site, key in list(self._late.items()):
            if time.monotonic() > until:
                return
            try:
                self._learn(site, key, settings, now)
            except HistoryError as error:
                log.error("cannot learn the baseline of %s: %s", site, error)
                self._late.pop(site, None)

    def _text(self, settings: BaselineSettings) -> str:
        """The settings in a key; they are the same for thousands of sites, and take long to write."""
        if self._written is None or self._written[0] is not settings:
            self._written = settings, str(settings)
        return self._written[1]

    def _learn(self, site: str, key: str, settings: BaselineSettings, now: float) -> Baseline | None:
        end = now - settings.exclude_last.total_seconds()
        hours = self._history.hours(site, end - settings.length.total_seconds(), end)
        known = Learnt(key=key, baseline=learn(hours, now=now, settings=settings))
        self._known[site] = known
        self._late.pop(site, None)
        self._history.put_baseline(site, known)
        return known.baseline
