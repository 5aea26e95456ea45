"""Conclude: from what a site measures to what follows from it, with what is known beyond the site. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from crawlhealth import diagnose
from crawlhealth.advice import advise
from crawlhealth.config import Config
from crawlhealth.maintenance import under_maintenance
from crawlhealth.model import CanaryRun
from crawlhealth.recovery import Followed, lead
from crawlhealth.verdict import Band, BandState, Override, Verdict


class Surroundings:
    """What holds at one evaluation beyond a single site: the latest runs, the overrides in force, and the uplink.

    `verdicts` are those of the evaluation before, by site.
    """

    def __init__(
        self,
        *,
        runs: Iterable[CanaryRun] = (),
        overrides: Mapping[str, Override] | None = None,
        verdicts: Mapping[str, Verdict] | None = None,
        uplink_up: bool = True,
        streaks: Mapping[str, Sequence[Followed]] | None = None,
    ) -> None:
        self.overrides = overrides or {}
        self.uplink_up = uplink_up
        self._verdicts = verdicts or {}
        self._streaks = streaks or {}
        self._runs: dict[str, list[CanaryRun]] = {}
        self._failing: dict[str, set[str]] | None = None
        for run in runs:
            self._runs.setdefault(run.site, []).append(run)

    def runs(self, site: str) -> Iterable[CanaryRun]:
        """The latest run of each of a site's canaries through each route."""
        return self._runs.get(site, ())

    def led(self, verdict: Verdict, previous: Verdict | None, config: Config) -> tuple[Verdict, bool]:
        """The verdict with the band as canaries have it, and whether its windows must be emptied."""
        if verdict.score is not None and verdict.band is not Band.RESISTING:
            return verdict, False
        state, emptied = lead(
            verdict.state,
            self._streaks.get(verdict.site, ()),
            scored=verdict.score is not None,
            now=verdict.at,
            settings=config.score,
            advice=config.advice,
            paused=previous is None or previous.advice.paused,
            baseline=verdict.baseline,
        )
        return (verdict if state is verdict.state else replace(verdict, state=state)), emptied

    def failing_elsewhere(self, route: str, site: str) -> int:
        """On how many sites but this one a route fails."""
        if self._failing is None:
            self._failing = {}
            for verdict in self._verdicts.values():
                for name, share in diagnose.failures(verdict).items():
                    if share >= diagnose.FAILING:
                        self._failing.setdefault(name, set()).add(verdict.site)
        return len(self._failing.get(route, set()) - {site})


def conclude(verdict: Verdict, previous: Verdict | None, around: Surroundings, config: Config) -> Verdict:
    """The verdict with its diagnosis and advice.

    Under maintenance the band stays what it was, and what is seen does not count towards another one; the first look
    after it is still at what was seen then.
    """
    site = verdict.site
    resting = bool(config.maintenance) and under_maintenance(config.maintenance, site, verdict.at)
    override = around.overrides.get(site)
    if previous is not None and (resting or previous.maintenance):
        verdict = replace(verdict, state=_resting(previous.state, verdict.state))
    if override is not None and not override.at <= verdict.at < override.until:
        override = None
    diagnosis = diagnose.diagnose(
        verdict,
        around.runs(site),
        degrading=config.score.bands.degrading,
        uplink_up=around.uplink_up,
        fails_elsewhere=lambda route: around.failing_elsewhere(route, site),
    )
    advice = advise(verdict, override, config.advice, config.score)
    concluded = (diagnosis, advice, override, resting)
    if concluded == (verdict.diagnosis, verdict.advice, verdict.override, verdict.maintenance):
        return verdict  # so it is with nearly all of thousands of sites, and a copy is what costs most here
    return replace(verdict, diagnosis=diagnosis, advice=advice, override=override, maintenance=resting)


def left_behind(verdict: Verdict, previous: Verdict | None, config: Config) -> bool:
    """Whether maintenance has just ended, and what the windows hold of it would begin a band once it is over."""
    if previous is None or not previous.maintenance or verdict.maintenance:
        return False
    return verdict.score is not None and verdict.score < config.score.bands.degrading


def _resting(before: BandState, now: BandState) -> BandState:
    """The band before with its clocks stopped: what showed it, and how far back canaries have led it, stays."""
    return BandState(
        band=before.band, since=before.since, held=now.held, evidence_at=now.evidence_at, eased_at=before.eased_at,
        shown=before.shown, seen_at=now.seen_at,
    )  # fmt: skip
