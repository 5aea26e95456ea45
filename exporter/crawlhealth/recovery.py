"""Recovery: what canaries alone decide, where traffic gives no score or has been told to stop. Pure.

Against a present score canaries do one thing only: they end the pause of a site that is `resisting`, since the score of
a site that nobody crawls is of the past. Without a score:

- enough refused runs in a row make a held `resisting`: more of them where the site's own baseline is to refuse some,
  and no number where it is to refuse most;
- enough served ones, all after the band began, turn `resisting` into a held `degrading` that is eased: crawlers return
  slowly, and the windows are forgotten, so that only fresh traffic scores;
- the same eases a `degrading` whose score has gone: its own slow advice might keep traffic too thin for another;
- an eased `degrading` that has been back at full concurrency for as long as good scores take to end one, with served
  runs only, is `unknown`. A refused run, or none for long, begins the return again.

Silence does none of this. A run counts as refused or as served. An error is neither, and breaks no row of either: no
answer came, so it says nothing of whether the site turns us away, as it never lowers the score. Where nothing but
errors comes, what was seen before is soon too old to count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from crawlhealth.config import Canary
from crawlhealth.model import CanaryRun
from crawlhealth.outcome import REFUSED, Outcome, Source
from crawlhealth.scoresettings import MOST_RUNS, AdviceSettings, ScoreSettings
from crawlhealth.verdict import Band, BandState, Baseline

FRESH: Final = timedelta(hours=1)
"""A run counts for so long at least, and for three times its canary's `every`."""
LEAST_EASED: Final = 0.05
"""The least share of its concurrency that a site comes back with: nothing can be doubled from 0."""
BY_CHANCE: Final = 1e-4
"""A row of refused runs must be less likely than this by the share that the site refuses normally."""


class Kind(StrEnum):
    """What canary runs in a row came to."""

    REFUSED = "refused"
    SERVED = "served"


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Runs in a row of one canary through one route that all came to the same.

    `runs` is how many, `first` when the first of them began, `times` when the last few did (unix seconds), `before`
    when the last run of the other kind did. Without a run there is no kind.
    """

    kind: Kind | None = None
    runs: int = 0
    first: float | None = None
    times: tuple[float, ...] = ()
    before: float | None = None

    def after(self, run: CanaryRun) -> Streak:
        """The streak with one more run; one from before the last (the clock stepped back) begins anew."""
        outcome = run.classification.outcome
        if outcome is Outcome.ERROR:
            return self
        kind = Kind.REFUSED if outcome in REFUSED else Kind.SERVED
        last = self.times[-1] if self.times else None
        if kind is self.kind and last is not None and run.at >= last:
            times = (*self.times, run.at)[-MOST_RUNS:]
            return Streak(kind=kind, runs=self.runs + 1, first=self.first, times=times, before=self.before)
        before = self.before if kind is self.kind else last
        if before is not None:
            before = min(before, run.at)
        return Streak(kind=kind, runs=1, first=run.at, times=(run.at,), before=before)


Followed = tuple[Streak, timedelta]
"""The streak of one canary through one route, and the canary's `every`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Runs in a row over all canaries and routes of a site: at least so many, over so many seconds."""

    runs: int = 0
    seconds: float = 0.0

    def reaches(self, runs: int, over: timedelta) -> bool:
        """Whether it is long enough, in runs and in time."""
        return self.runs >= runs and self.seconds >= over.total_seconds()


NO_ROW: Final = Row()


def by_site(
    canaries: Iterable[Canary], streaks: Mapping[tuple[str, str, str], Streak]
) -> dict[str, tuple[Followed, ...]]:
    """The streaks (by site, canary and route) of configured canaries through their own routes, by site."""
    found: dict[str, tuple[Followed, ...]] = {}
    for canary in canaries:
        own = ((canary.site, canary.name, route) for route in canary.routes)
        known = tuple((streaks[key], canary.every) for key in own if key in streaks)
        found[canary.site] = found.get(canary.site, ()) + known
    return found


def in_a_row(kind: Kind, streaks: Sequence[Followed], *, now: float, after: float = -math.inf) -> Row:
    """The site's last runs, all of one kind and begun after a time; none while any fresh latest run is of the other.

    A row begins after the last run of the other kind, of whichever canary and route, fresh or not. Canaries that have
    brought nothing fresh have no say: a dead route, or a page that is not fetched any more. Of more runs than a streak
    remembers, the row counts those it does, and lasts since `first`, or since the row's beginning.
    """
    if not any(streak.kind is kind for streak, _ in streaks):
        return NO_ROW  # so it is with nearly all of thousands of sites
    fresh = [streak for streak, every in streaks if _fresh(streak, every, now)]
    if not fresh or any(streak.kind is not kind for streak in fresh):
        return NO_ROW
    bound = max(after, _last_other(kind, streaks))
    runs, begun, latest = 0, math.inf, -math.inf
    for streak in fresh:
        counted = [at for at in streak.times if at > bound]
        if not counted:
            continue
        remembered = len(counted) < len(streak.times) or streak.runs == len(streak.times)
        first = counted[0] if remembered or streak.first is None else max(streak.first, bound)
        runs, begun, latest = runs + len(counted), min(begun, first), max(latest, counted[-1])
    return Row(runs=runs, seconds=latest - begun) if runs else NO_ROW


def lead(
    state: BandState,
    streaks: Sequence[Followed],
    *,
    scored: bool,
    now: float,
    settings: ScoreSettings,
    advice: AdviceSettings,
    paused: bool = True,
    baseline: Baseline | None = None,
) -> tuple[BandState, bool]:
    """The band as canaries have it, and whether what the windows hold of the site must be forgotten.

    For sites without a score (not `scored`) and those that are `resisting`; any other keeps its state. `paused` says
    whether the crawlers were told to stop, `baseline` is the site's own normal.
    """
    led = settings.canaries
    if not scored and state.band is not Band.RESISTING:
        row = in_a_row(Kind.REFUSED, streaks, now=now)
        if row.reaches(led.refused, led.over) and row.runs >= _telling(baseline):
            return BandState(band=Band.RESISTING, since=now, held=True, evidence_at=state.evidence_at), False
    if state.band is Band.DEGRADING and not scored and state.eased_at is not None:
        return _returning(state, state.eased_at, streaks, now=now, settings=settings, advice=advice), False
    stopped = state.band is Band.RESISTING and (paused or not scored)
    if not stopped and (state.band is not Band.DEGRADING or scored):
        return state, False
    row = in_a_row(Kind.SERVED, streaks, now=now, after=min(state.since, now))
    if not row.reaches(led.served, led.over):
        return state, False
    since = now if stopped else min(state.since, now)
    eased = BandState(band=Band.DEGRADING, since=since, held=True, evidence_at=state.evidence_at, eased_at=now)
    return eased, stopped


def eased_share(eased_at: float, now: float, *, least: float, double_every: timedelta) -> float:
    """The share of its concurrency that a site is back at: from `least` on, doubled in steps, never over 1."""
    steps = max(0, math.floor((now - eased_at) / double_every.total_seconds()))
    return min(1.0, max(least, LEAST_EASED) * 2.0 ** min(steps, 64))


def full_after(*, least: float, double_every: timedelta) -> timedelta:
    """How long it takes until that share is 1."""
    return max(0, math.ceil(-math.log2(max(least, LEAST_EASED)) - 1e-9)) * double_every


def _returning(
    state: BandState,
    eased_at: float,
    streaks: Sequence[Followed],
    *,
    now: float,
    settings: ScoreSettings,
    advice: AdviceSettings,
) -> BandState:
    """An eased site without a score: further on its way, at its beginning again, or at its end."""
    if not in_a_row(Kind.SERVED, streaks, now=now).runs:
        return _eased(state, now)
    begun = min(now, max(eased_at, _last_other(Kind.SERVED, streaks)))
    whole = full_after(least=advice.least_concurrency, double_every=settings.canaries.double_every)
    if now - begun < (whole + settings.leave_after.degrading).total_seconds():
        return _eased(state, begun)
    return BandState(band=Band.UNKNOWN, since=now, evidence_at=state.evidence_at)


def _eased(state: BandState, at: float) -> BandState:
    return BandState(band=state.band, since=state.since, held=True, evidence_at=state.evidence_at, eased_at=at)


def _fresh(streak: Streak, every: timedelta, now: float) -> bool:
    return bool(streak.times) and now - streak.times[-1] <= max(FRESH, 3 * every).total_seconds()


def _last_other(kind: Kind, streaks: Sequence[Followed]) -> float:
    """When the last run that is known not to be of this kind began; long ago where none is."""
    last = -math.inf
    for streak, _ in streaks:
        at = streak.before if streak.kind is kind else streak.times[-1] if streak.times else None
        if at is not None:
            last = max(last, at)
    return last


def _telling(baseline: Baseline | None) -> float:
    """How many refused runs in a row tell that a site turns us away.

    As many as its own normal share of refusals would bring by chance once in ten thousand times: p^n = `BY_CHANCE`;
    infinity where that is more than are remembered. A baseline that nobody has accepted yet is nobody's normal.
    """
    if baseline is None or baseline.refused:
        return 1
    own = [stratum.rates.refused for stratum in baseline.strata if stratum.source == Source.CANARY]
    usual = min(own, default=baseline.rates.refused)
    if usual <= 0:
        return 1
    runs = math.log(BY_CHANCE) / math.log(usual) if usual < 1 else math.inf
    return runs if runs <= MOST_RUNS else math.inf
