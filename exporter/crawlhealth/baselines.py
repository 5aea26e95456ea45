"""Baselines of all sites: each learnt again as its history grows and after an import, and never all at once."""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

import numpy as np

from crawlhealth import marks as hours_judged
from crawlhealth.baseline import HOUR, Hours, learn
from crawlhealth.history import History, HistoryError, Learnt
from crawlhealth.replay import Replay
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.stretch import Stretch, dense, p95
from crawlhealth.verdict import Accepted, Baseline

log = logging.getLogger(__name__)

AT_ONCE_SECONDS: Final = 0.1
"""How long baselines are learnt while verdicts wait for them; the other sites go on with the ones before."""
CATCHING_UP_SECONDS: Final = 0.5
"""How long they are learnt in one go by `catch_up`."""
TOGETHER: Final = 32
"""So many sites are learnt together."""
ACCEPTED: Final = " accepted "
"""What stands in a key before the time of what a person accepted."""
RETRY_SECONDS: Final = 60.0
"""How long a history that cannot be read is left alone."""


class Baselines:
    """What is known of each site's normal. One thread asks `of`, another may `catch_up`."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._known = dict(history.baselines())
        self._late: dict[str, str] = {}
        self._failed: dict[str, float] = {}
        self._until: float | None = None
        self._written: tuple[ScoreSettings, str] | None = None
        self._accepted: Mapping[str, Accepted] = {}

    @property
    def behind(self) -> int:
        """How many sites wait for a new baseline."""
        return len(self._late)

    def begin(self, accepted: Mapping[str, Accepted]) -> None:
        """Begin an evaluation: there is a little time for learning again, from the first that is learnt.

        `accepted` is what people have accepted as normal.
        """
        self._accepted = accepted
        self._until = None

    def of(self, site: str, *, generation: int, settings: ScoreSettings, now: float) -> Baseline | None:
        """The site's normal; until its turn comes to be learnt, the one before.

        `generation` changes when its history was replaced from outside.
        """
        change = self._accepted.get(site)
        key = f"{generation} {self._text(settings)}{ACCEPTED}{change.at if change is not None else 0}"
        known = self._known.get(site)
        if known is not None and known.key == key and known.at <= now < known.due:
            return known.baseline
        before = known.baseline if known is not None else None
        if self._failed.get(site, 0.0) > now:
            return before
        if self._until is None:
            self._until = time.monotonic() + AT_ONCE_SECONDS
        elif time.monotonic() > self._until:
            self._late[site] = key
            return before
        self._learn({site: key}, settings, now)
        known = self._known.get(site)
        return known.baseline if known is not None else None

    def catch_up(self, settings: ScoreSettings, now: float) -> None:
        """Learn some of those that had to wait."""
        until = time.monotonic() + CATCHING_UP_SECONDS
        while self._late and time.monotonic() < until:
            self._learn(dict(islice(list(self._late.items()), TOGETHER)), settings, now)

    def _text(self, settings: ScoreSettings) -> str:
        """The settings in a key; they are the same for thousands of sites, and take long to write."""
        if self._written is None or self._written[0] is not settings:
            baseline = f"{settings.method} {settings.baseline}"
            self._written = settings, f"{zlib.crc32(baseline.encode()):08x}"
        return self._written[1]

    def _learn(self, keys: Mapping[str, str], settings: ScoreSettings, now: float) -> None:
        """Learn the baselines of some sites together, and keep them; what cannot be read is tried again later."""
        sites = tuple(keys)
        try:
            hours = self._hours(sites, settings, now)
        except HistoryError as error:
            if len(sites) > 1:  # one that is damaged keeps no other from its baseline
                for site in sites:
                    self._learn({site: keys[site]}, settings, now)
                return
            log.error("cannot learn the baseline of %s: %s", sites[0], error)
            self._late.pop(sites[0], None)
            self._failed[sites[0]] = now + RETRY_SECONDS
            return
        known = [self._before(site, keys[site]) for site in sites]
        learnt = learn(
            hours,
            settings.baseline,
            now=now,
            robust=settings.method == "robust",
            accepted={site: self._accepted[site] for site in sites if site in self._accepted},
            known=known,
        )
        ages = _ages(hours)
        for site, baseline, age in zip(sites, learnt, ages, strict=True):
            wait = settings.baseline.renewed(age)
            change = self._accepted.get(site)
            if change is not None and (baseline is None or baseline.accepted_at != change.at):
                wait = HOUR  # there is too little of it yet
            wait += zlib.crc32(site.encode()) % 1024 / 1024 * wait / 8  # else all would learn in the same second
            one = Learnt(key=keys[site], baseline=baseline, at=now, due=now + wait)
            self._known[site] = one
            self._late.pop(site, None)
            self._failed.pop(site, None)
            self._history.put_baseline(site, one)

    def _before(self, site: str, key: str) -> Baseline | None:
        """The baseline that is kept where too little is left: not one of other settings, or of another history."""
        known = self._known.get(site)
        same = known is not None and known.key.partition(ACCEPTED)[0] == key.partition(ACCEPTED)[0]
        return known.baseline if known is not None and same else None

    def _hours(self, sites: Sequence[str], settings: ScoreSettings, now: float) -> Hours:
        """The hours of some sites that a baseline may be learnt from, with their marks."""
        quiet = settings.baseline.quiet.total_seconds()
        end = now // HOUR * HOUR
        since = (end - settings.baseline.reach.total_seconds() - quiet) // HOUR * HOUR
        stretches = list(self._history.stretches(sites, since, end, seconds=HOUR))
        marks = self._history.judged.of(sites, since, end)
        if settings.method == "robust":
            marks = self._judged(sites, stretches, marks, settings, since)
        return hours_of(sites, stretches, marks, end=end)

    def _judged(
        self,
        sites: Sequence[str],
        stretches: Sequence[Stretch],
        marks: hours_judged.Marks,
        settings: ScoreSettings,
        since: float,
    ) -> hours_judged.Marks:
        """The marks, with hours that were imported judged by a replay in order, and kept so."""
        seen = np.zeros(marks.shape, dtype=np.bool_)
        places = {site: place for place, site in enumerate(sites)}
        for stretch in stretches:
            first = round((stretch.start - since) / HOUR)
            owner = np.array([places[key[0]] for key in stretch.keys], dtype=np.intp)
            seen[owner[stretch.row], first + stretch.step] = True
        missing = seen & (marks == hours_judged.NONE)
        wanted = [site for place, site in enumerate(sites) if missing[place].sum() >= hours_judged.QUIET_HOURS]
        if not wanted:
            return marks
        replayed = Replay(list(stretches[-1].keys), settings, seconds=HOUR, accepted=self._accepted)
        found = np.full(marks.shape, hours_judged.NONE, dtype=np.uint8)
        order = [places[site] for site in replayed.sites]
        for stretch in stretches:
            first = round((stretch.start - since) / HOUR)
            for step, judged in enumerate(replayed.steps(stretch)):
                found[order, first + step] = replayed.marks(judged)
        found = np.where(seen, found, hours_judged.NONE)
        for site in wanted:
            self._history.judged.replace(site, since, found[places[site]])
        filled = np.where(marks == hours_judged.NONE, found, marks)
        return np.where(np.isin(sites, wanted)[:, None], filled, marks).astype(np.uint8)


def hours_of(sites: Sequence[str], stretches: Sequence[Stretch], marks: hours_judged.Marks, *, end: float) -> Hours:
    """Stretches of hours, one after another, as what a baseline is learnt from."""
    keys = list(stretches[-1].keys) if stretches else []
    places = {site: place for place, site in enumerate(sites)}
    owner = np.array([places[key[0]] for key in keys], dtype=np.intp)
    order = np.argsort(owner, kind="stable")
    counts = np.zeros((len(keys), marks.shape[1], 12))
    slow = np.full((len(keys), marks.shape[1]), np.nan)
    at = marks.shape[1] - sum(stretch.steps for stretch in stretches)
    for stretch in stretches:
        counts[: len(stretch.keys), at : at + stretch.steps] = dense(stretch)
        slow[: len(stretch.keys), at : at + stretch.steps] = p95(stretch)
        at += stretch.steps
    return Hours(
        sites=sites,
        keys=[keys[row][1:] for row in order.tolist()],
        owner=owner[order],
        counts=counts[order],
        p95=slow[order],
        marks=marks,
        end=end,
    )


def _ages(hours: Hours) -> list[float]:
    """How old the history of each site is within these hours, in seconds."""
    count = hours.marks.shape[1]
    first = np.full(len(hours.sites), count)
    some = hours.counts[..., :5].sum(axis=-1) > 0
    begun = np.where(some.any(axis=1), some.argmax(axis=1), count)
    np.minimum.at(first, hours.owner, begun)
    ages: list[float] = ((count - first) * HOUR).tolist()
    return ages
