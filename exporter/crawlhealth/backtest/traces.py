"""Traces: simulated sites judged step by step by what ships, and by what the plain formula says of raw hours."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.backtest import literal
from crawlhealth.backtest.scenarios import WEEK, Scenario
from crawlhealth.backtest.simulator import HOUR, MINUTES, Population, Simulation, names
from crawlhealth.backtest.working import Counted, Told
from crawlhealth.bands import DEGRADING, RESISTING
from crawlhealth.evaluate import Judged
from crawlhealth.replay import Replay
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.stretch import Stretch, dense
from crawlhealth.verdict import Accepted

BEFORE: Final = 3 * WEEK
"""Hours of calm before a scenario begins: every baseline has all that it may be learnt from."""
TOGETHER: Final = 180
"""So many sites are simulated at once: memory does not grow with more of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What was said of N sites at the end of each of T steps of a scenario.

    `outside` is whether the band was bad, `resisting` whether it was the worst one; `score` is NaN while unknown;
    `drift` is the largest early warning over the signals, in standard deviations.
    """

    outside: NDArray[np.bool_]
    resisting: NDArray[np.bool_]
    score: NDArray[np.float32]
    drift: NDArray[np.float32]

    @classmethod
    def together(cls, parts: Iterable[Traces]) -> Traces:
        """The traces of several groups of sites."""
        given = list(parts)
        return cls(
            outside=np.concatenate([part.outside for part in given]),
            resisting=np.concatenate([part.resisting for part in given]),
            score=np.concatenate([part.score for part in given]),
            drift=np.concatenate([part.drift for part in given]),
        )

    @classmethod
    def of(cls, several: Iterable[Judged]) -> Traces:
        """The traces of what was judged step by step."""
        bands, scores, drifts = [], [], []
        for judged in several:
            bands.append(judged.states.band.copy())
            scores.append(judged.score.astype(np.float32))
            drift = judged.scored.drift
            most = np.where(np.isnan(drift), -np.inf, drift).max(axis=1)
            drifts.append(np.where(np.isinf(most), np.nan, most).astype(np.float32))
        band = np.array(bands).T
        return cls(
            outside=(band == DEGRADING) | (band == RESISTING),
            resisting=band == RESISTING,
            score=np.array(scores).T,
            drift=np.array(drifts).T,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Some of the simulated sites in one scenario."""

    scenario: Scenario
    sites: int
    seed: int

    @property
    def steps(self) -> int:
        """How many steps are judged."""
        return BEFORE + self.scenario.hours * (MINUTES if self.scenario.minutes else 1)

    def stretches(self) -> Iterator[Stretch]:
        """Their past: the same at every call."""
        scenario = self.scenario
        simulation = Simulation(
            Population.mixed(self.sites, volume=scenario.volume),
            seed=self.seed,
            before=BEFORE,
            after=scenario.hours,
            effect=scenario.effect if scenario.added else None,
            season=scenario.season,
        )
        if scenario.minutes:
            yield simulation.hourly(0, BEFORE)
            yield from simulation.minutes(BEFORE, BEFORE + scenario.hours)
        else:
            yield simulation.hourly()

    def judged(self, settings: ScoreSettings, counted: Counted) -> Iterator[Judged]:
        """What is said of them in the scenario, through Replay."""
        replay = Replay(names(self.sites), settings, seconds=HOUR / MINUTES if self.scenario.minutes else HOUR)
        accepted = self.scenario.accepted
        for stretch in self.stretches():
            for judged in replay.steps(stretch):
                counted.one_more()
                if judged.at > BEFORE * HOUR:
                    yield judged
                if accepted is not None and judged.at == (BEFORE + accepted) * HOUR:
                    for site in replay.sites:
                        replay.accept(Accepted(site=site, at=judged.at, since=BEFORE * HOUR))


def groups(scenario: Scenario, sites: int, seed: int) -> list[Group]:
    """The sites of a scenario in groups, each with a seed of its own that follows from `seed` and from the scenario."""
    return [
        Group(
            scenario=scenario,
            sites=min(TOGETHER, sites - first),
            seed=zlib.crc32(f"{seed} {scenario.name} {first}".encode()),
        )
        for first in range(0, sites, TOGETHER)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What was said of a group of sites by each method, and by the literal formula (None of minutes)."""

    group: Group
    methods: Mapping[str, Traces]
    raw: literal.Scores | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A group and the methods that judge it: a piece of work that needs nothing of the others."""

    group: Group
    methods: Mapping[str, ScoreSettings]
    raw: bool = False

    @property
    def steps(self) -> int:
        """How many steps are judged, by all methods together."""
        return len(self.methods) * self.group.steps

    def done(self, told: Told) -> Part:
        """Do it."""
        counted = Counted(told)
        raw = None
        if self.raw:
            (stretch,) = self.group.stretches()
            raw = literal.scores(dense(stretch), first=BEFORE)
        methods = {name: Traces.of(self.group.judged(settings, counted)) for name, settings in self.methods.items()}
        counted.rest()
        return Part(group=self.group, methods=methods, raw=raw)


@dataclass(slots=True)
class Results:
    """What came of all the work, by scenario."""

    _parts: dict[Scenario, list[Part]] = field(default_factory=dict)

    def take(self, part: Part) -> None:
        """One more part."""
        self._parts.setdefault(part.group.scenario, []).append(part)

    def traces(self, scenario: Scenario, method: str) -> Traces:
        """What a method said of all sites."""
        return Traces.together([part.methods[method] for part in self._parts[scenario]])

    def raw(self, scenario: Scenario) -> literal.Scores:
        """What the literal formula says of all sites."""
        return np.concatenate([part.raw for part in self._parts[scenario] if part.raw is not None])
