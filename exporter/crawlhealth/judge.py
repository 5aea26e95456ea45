"""The judge: at each evaluation, the history of every site to its verdict, with the memory that this takes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from crawlhealth import metrics
from crawlhealth.baselines import Baselines
from crawlhealth.conclude import Surroundings, conclude
from crawlhealth.config import Config
from crawlhealth.evaluate import SiteRecord, evaluate
from crawlhealth.history import Decisions, History
from crawlhealth.incident import Incidents
from crawlhealth.outcome import Reason, Source
from crawlhealth.uplink import NO_ANSWER, Lost, TrafficWatch, canaries_get_out
from crawlhealth.verdict import Band, Verdict

log = logging.getLogger(__name__)


_GOOD = (Band.NORMAL, Band.UNKNOWN)


class Judge:
    """Computes the verdicts of all sites from the history. `verdicts` is replaced as a whole, never changed.

    `decisions` has the overrides, `reference` says whether the reference page of our uplink answers, and `degrading`
    is called with a site whose band turns bad.
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
        self._incidents = Incidents(*history.unfinished())
        self.verdicts: Mapping[str, Verdict] = dict(history.states())

    def judge(self, config: Config, now: float) -> None:
        """Judge every configured site at `now`; one site that fails does not keep the others from theirs.

        A site that is not configured keeps its last verdict, to go on from when it comes back.
        """
        self._history.refresh()
        self._baselines.begin()
        verdicts = dict(self.verdicts)
        settings = config.score
        around = self._surroundings(config, now)
        records = self._history.records(
            tuple(config.sites),
            now,
            half_lives=tuple(window.total_seconds() for window in settings.windows),
            enough=max(1, settings.min_requests),
        )
        for record in records:
            previous = self.verdicts.get(record.site)
            try:
                verdicts[record.site] = self._judge_site(record, previous, config, around, now)
            except Exception:
                log.exception("cannot judge site %s", record.site)
        self.verdicts = verdicts
        self._history.put_warned(self._incidents.warnings())
        self._history.save_windows(now)

    def catch_up(self, config: Config, now: float) -> None:
        """Learn some of the baselines that an evaluation had no time for."""
        self._baselines.catch_up(config.score.baseline, now)

    @property
    def behind(self) -> int:
        """How many sites are judged by an older baseline, or have to wait for their first."""
        return self._baselines.behind

    def _surroundings(self, config: Config, now: float) -> Surroundings:
        """What is known beyond a single site."""
        known = [stored for stored in self._history.runs().values() if stored.run.site in config.sites]
        runs = [stored.run for stored in known]
        last_success = max((stored.last_success for stored in known if stored.last_success is not None), default=None)
        canaries = canaries_get_out(runs, last_success=last_success, now=now, settings=config.uplink)
        self.uplink_up = self._traffic_gets_out(config, now) and canaries and self._reference()
        overrides = self._decisions.active(now) if self._decisions is not None else {}
        return Surroundings(runs=runs, overrides=overrides, verdicts=self.verdicts, uplink_up=self.uplink_up)

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

    def _judge_site(
        self, record: SiteRecord, previous: Verdict | None, config: Config, around: Surroundings, now: float
    ) -> Verdict:
        site, settings = record.site, config.score
        baseline = self._baselines.of(site, generation=record.generation, settings=settings.baseline, now=now)
        verdict = evaluate(record, baseline, previous, now, settings)
        verdict = conclude(verdict, previous, around, config)
        if previous is not None and previous.band is not verdict.band:
            self._history.count(metrics.TRANSITIONS, (site, previous.band.value, verdict.band.value))
            log.info("site %s: %s -> %s (score %s)", site, previous.band, verdict.band, verdict.score)
            if previous.band in _GOOD and verdict.band not in _GOOD:
                self._degrading(site)
        self._history.put_verdict(verdict, self._incidents.take(previous, verdict))
        return verdict
