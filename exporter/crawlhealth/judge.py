"""The judge: at each evaluation, the history of every site to its verdict, with the memory that this takes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from crawlhealth import metrics, recovery
from crawlhealth.bands import States
from crawlhealth.baselines import Baselines
from crawlhealth.conclude import Surroundings, conclude, left_behind
from crawlhealth.config import Config
from crawlhealth.evaluate import Before, evaluate
from crawlhealth.history import Decisions, History
from crawlhealth.incident import Incidents
from crawlhealth.marks import mark_of
from crawlhealth.normals import Table
from crawlhealth.outcome import Reason, Source
from crawlhealth.panel import Panel
from crawlhealth.uplink import NO_ANSWER, Lost, TrafficWatch, canaries_get_out
from crawlhealth.verdict import Band, BandState, Baseline, Verdict
from crawlhealth.verdicts import verdicts as verdicts_of

log = logging.getLogger(__name__)


_GOOD = (Band.NORMAL, Band.UNKNOWN)


class Judge:
    """Computes the verdicts of all sites from the history. `verdicts` is replaced as a whole, never changed.

    `decisions` has the overrides and what people accepted, `reference` says whether the reference page of our uplink
    answers, and `degrading` is called with a site whose band turns bad.
    """

    def __init__(
        self,
        history: History,
        decisions: Decisions | None = None,
        *,
        reference: Callable[[], bool] = lambda: True,
        degrading: Callable[[str], object] = lambda _site: None,
    ) -> None:
        self._history = history
        self._decisions = decisions
        self._reference = reference
        self._degrading = degrading
        self._traffic = TrafficWatch()
        self.uplink_up = True
        self._baselines = Baselines(history)
        self._normals = Table()
        self._incidents = Incidents(*history.unfinished())
        self.verdicts: Mapping[str, Verdict] = dict(history.states())

    def judge(self, config: Config, now: float) -> None:
        """Judge every configured site at `now`; one site that fails does not keep the others from theirs.

        A site that is not configured keeps its last verdict, to go on from when it comes back.
        """
        self._history.refresh()
        self._baselines.begin(self._decisions.accepted() if self._decisions is not None else {})
        around = self._surroundings(config, now)
        found = dict(self.verdicts)
        marks: dict[str, int] = {}
        half_lives = tuple(window.total_seconds() for window in config.score.windows)
        panels = self._history.panels(tuple(config.sites), now, half_lives=half_lives)
        for panel, requests, generations in panels:
            for verdict in self._judge_panel(panel, requests, generations, config=config, around=around, now=now):
                before = self.verdicts.get(verdict.site)
                resting = verdict.maintenance or not self.uplink_up or (before is not None and before.maintenance)
                found[verdict.site] = verdict
                marks[verdict.site] = mark_of(verdict.band, verdict.score, resting=resting)
        self.verdicts = found
        self._history.judged.put(tuple(marks), np.fromiter(marks.values(), dtype=np.uint8), now)
        self._history.put_warned(self._incidents.warnings())
        self._history.save_windows(now)

    def catch_up(self, config: Config, now: float) -> None:
        """Learn some of the baselines that an evaluation had no time for."""
        self._baselines.catch_up(config.score, now)

    @property
    def behind(self) -> int:
        """How many sites are judged by an older baseline, or have to wait for their first."""
        return self._baselines.behind

    def _surroundings(self, config: Config, now: float) -> Surroundings:
        """What is known beyond a single site."""
        known = {key: stored for key, stored in self._history.runs().items() if stored.run.site in config.sites}
        runs = [stored.run for stored in known.values()]
        successes = [stored.last_success for stored in known.values() if stored.last_success is not None]
        last_success = max(successes, default=None)
        canaries = canaries_get_out(runs, last_success=last_success, now=now, settings=config.uplink)
        self.uplink_up = self._traffic_gets_out(config, now) and canaries and self._reference()
        overrides = self._decisions.active(now) if self._decisions is not None else {}
        streaks = recovery.by_site(config.canaries, {key: stored.streak for key, stored in known.items()})
        return Surroundings(
            runs=runs, overrides=overrides, verdicts=self.verdicts, uplink_up=self.uplink_up, streaks=streaks
        )

    def _traffic_gets_out(self, config: Config, now: float) -> bool:
        committed = self._history.committed()
        lost: Lost = {
            (site, Reason(reason)): count
            for (site, source, reason), count in committed.counter(metrics.REASONS).items()
            if source == Source.TRAFFIC and reason in NO_ANSWER
        }

        def total() -> float:
            return sum(tally.requests for (_, _, source), tally in committed.totals.items() if source is Source.TRAFFIC)

        return self._traffic.gets_out(lost, total, now=now, settings=config.uplink)

    def _judge_panel(
        self,
        panel: Panel,
        requests: NDArray[np.int64],
        generations: NDArray[np.int64],
        *,
        config: Config,
        around: Surroundings,
        now: float,
    ) -> list[Verdict]:
        """The verdicts on the sites of a panel; those that cannot be concluded are left out."""
        before = [self.verdicts.get(site) for site in panel.sites]
        baselines = [
            self._baselines.of(site, generation=generation, settings=config.score, now=now)
            for site, generation in zip(panel.sites, generations.tolist(), strict=True)
        ]
        judged = evaluate(
            panel,
            self._normals.of(panel, baselines),
            _before(before, baselines, now),
            new_evidence=requests != np.array([-1 if one is None else one.evidence for one in before]),
            now=now,
            settings=config.score,
        )
        resets = dict(zip(judged.reset_sites.tolist(), judged.resets.tolist(), strict=True))
        made = verdicts_of(panel, judged, baselines=baselines, requests=requests.tolist())
        found = []
        for place, (verdict, previous) in enumerate(zip(made, before, strict=True)):
            try:
                found.append(self._conclude(verdict, previous, resets.get(place), config=config, around=around))
            except Exception:
                log.exception("cannot judge site %s", verdict.site)
        return found

    def _conclude(
        self, verdict: Verdict, previous: Verdict | None, reset: int | None, *, config: Config, around: Surroundings
    ) -> Verdict:
        """The verdict as it stands, brought to the history together with what became of the windows."""
        led, emptied = around.led(verdict, previous, config)
        verdict = conclude(led, previous, around, config)
        incident = self._incidents.take(previous, verdict, threshold=config.score.drift_threshold)
        changed = previous is not None and previous.band is not verdict.band
        emptied = emptied or left_behind(verdict, previous, config)
        if previous is None or not (changed or emptied):
            self._history.put_verdict(verdict, incident)
            return verdict
        with self._history.together():
            self._history.put_verdict(verdict, incident)
            if emptied:
                self._history.empty_windows(verdict.site, verdict.at)
            elif reset is not None:
                self._history.reset_windows(verdict.site, reset, verdict.at)
            if changed:
                self._history.count(metrics.TRANSITIONS, (verdict.site, previous.band.value, verdict.band.value))
        if not changed:
            return verdict
        log.info("site %s: %s -> %s (score %s)", verdict.site, previous.band, verdict.band, verdict.score)
        if previous.band in _GOOD and verdict.band not in _GOOD:
            self._degrading(verdict.site)
        return verdict


def _before(previous: Sequence[Verdict | None], baselines: Sequence[Baseline | None], now: float) -> Before:
    """What the evaluation before left; the band of a site begins anew once a person has accepted another normal."""
    nan = float("nan")
    return Before(
        states=States.of([_state(one, baseline, now) for one, baseline in zip(previous, baselines, strict=True)]),
        smoothed=np.array([nan if one is None or one.smoothed is None else one.smoothed for one in previous]),
        at=np.array([nan if one is None else one.at for one in previous]),
    )


def _state(previous: Verdict | None, baseline: Baseline | None, now: float) -> BandState:
    if previous is None:
        return BandState(since=now)
    if baseline is not None and baseline.accepted_at is not None:
        known = previous.baseline.accepted_at if previous.baseline is not None else None
        if known != baseline.accepted_at:
            return BandState(since=now)
    return previous.state
