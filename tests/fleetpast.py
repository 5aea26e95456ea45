"""A made-up past of some sites, as the Python score reads it and as Prometheus does: the same counts for both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth import stats
from crawlhealth.columns import FIELDS
from crawlhealth.outcome import Outcome, Source
from crawlhealth.stretch import Stretch

Array = NDArray[np.float64]

STEP: Final = 600
"""Seconds that are counted at once."""
SAMPLE: Final = 150
"""Seconds between two samples of a counter: two of them are within every five minutes."""
OUTCOMES: Final = (Outcome.OK, Outcome.HARD_BLOCK, Outcome.CHALLENGE, Outcome.SOFT_BLOCK, Outcome.ERROR)
PER_HOUR: Final = 3600 // STEP
STEADY: Final = 0.9
"""How much of an hour's swing is left in the next one."""
SPREAD: Final = 0.4
"""The standard deviation of the logarithm of a latency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A site: requests an hour, usual shares (hard, challenge, soft), how its log-odds and its log latency swing from
    hour to hour, and what happens: hours since the beginning to what is added to the shares, to how many times as slow
    it is, what part of its traffic comes, and which share of that are errors."""

    volume: float = 600.0
    shares: tuple[float, float, float] = (0.005, 0.01, 0.005)
    swing: float = 0.2
    slow_swing: float = 0.05
    added: Callable[[Array], Array] | None = None
    slower: Callable[[Array], Array] | None = None
    traffic: Callable[[Array], Array] | None = None
    errors: Callable[[Array], Array] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The counts of N sites in T steps: by outcome (N, T, 5), and of served ones by fine bucket of latency."""

    sites: Sequence[str]
    outcomes: Array
    latency: Array

    def of(self, places: Sequence[int]) -> Past:
        """Some of the sites."""
        chosen = list(places)
        return Past(
            sites=[self.sites[place] for place in chosen], outcomes=self.outcomes[chosen], latency=self.latency[chosen]
        )

    def stretch(self, first: int, last: int) -> Stretch:
        """Some steps as the Python score reads them; time begins at 0."""
        values = np.zeros((last - first, len(self.sites), len(FIELDS)))
        values[..., : len(OUTCOMES)] = self.outcomes[:, first:last].transpose(1, 0, 2)
        step, row = np.nonzero(values[..., : len(OUTCOMES)].sum(axis=-1))
        timed = self.latency[row, first + step]
        entry, bucket = np.nonzero(timed)
        return Stretch(
            keys=[(site, "direct", Source.TRAFFIC) for site in self.sites],
            start=float(first * STEP),
            seconds=STEP,
            steps=last - first,
            step=step,
            row=row,
            values=values[step, row],
            timed=np.searchsorted(entry, np.arange(len(step) + 1)),
            bucket=bucket.astype(np.uint16),
            count=timed[entry, bucket].astype(np.float32),
        )

    def series(self) -> Mapping[str, str]:
        """Counters as promtool reads them, a sample every `SAMPLE` seconds; they begin at 1, as none is at nothing."""
        found = {}
        for place, site in enumerate(self.sites):
            labels = f'job="crawlhealth",instance="a",site="{site}",route="direct",source="traffic"'
            for column, outcome in enumerate(OUTCOMES):
                name = f'crawlhealth_requests_total{{{labels},outcome="{outcome.value}"}}'
                found[name] = _counter(self.outcomes[place, :, column])
            upto = np.cumsum(self.latency[place], axis=-1)
            bounds = range(0, len(stats.BOUNDS), stats.SUBDIVISIONS)
            used = [bound for bound in bounds if upto[:, bound].sum() > 0]
            for bound in used[: 1 + sum(upto[:, bound].sum() < upto[:, -1].sum() for bound in used)]:
                name = f'crawlhealth_request_duration_seconds_bucket{{{labels},le="{stats.BOUNDS[bound]!r}"}}'
                found[name] = _counter(upto[:, bound])
            found[f'crawlhealth_request_duration_seconds_bucket{{{labels},le="+Inf"}}'] = _counter(upto[:, -1])
        return found


def drawn(sites: Mapping[str, Site], hours: int, *, seed: int) -> Past:
    """The past of sites, drawn with a fixed seed; every site has its own numbers, whatever the others are."""
    outcomes, latency = zip(
        *(_site(site, hours, np.random.default_rng([seed, place])) for place, site in enumerate(sites.values())),
        strict=True,
    )
    return Past(sites=tuple(sites), outcomes=np.array(outcomes), latency=np.array(latency))


def between(first: float, last: float, inside: float, outside: float = 0.0) -> Callable[[Array], Array]:
    """One value within some hours, another one outside of them."""
    return lambda hours: np.where((hours >= first) & (hours < last), inside, outside)


def challenges(of: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """What is added to the share of challenges alone."""
    return lambda hours: np.stack([0 * hours, of(hours), 0 * hours], axis=-1)


def blocks(of: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """What is added to the share of hard blocks alone."""
    return lambda hours: np.stack([of(hours), 0 * hours, 0 * hours], axis=-1)


def _walk(random: np.random.Generator, hours: int, deviation: float, columns: int) -> Array:
    walk = random.normal(size=(hours, columns)) * deviation
    walk[1:] *= np.sqrt(1 - STEADY**2)
    for hour in range(1, hours):
        walk[hour] += STEADY * walk[hour - 1]
    return np.repeat(walk, PER_HOUR, axis=0)


def _site(site: Site, hours: int, random: np.random.Generator) -> tuple[Array, Array]:
    time = (np.arange(hours * PER_HOUR) + 0.5) / PER_HOUR
    base = np.array(site.shares)
    hostile = 1 / (1 + np.exp(-(np.log(base / (1 - base)) + _walk(random, hours, site.swing, 3))))
    hostile = hostile + (0.0 if site.added is None else site.added(time))
    total = hostile.sum(axis=-1, keepdims=True)
    hostile = hostile / np.maximum(total, 1.0)
    failing = np.full(len(time), 0.005) if site.errors is None else site.errors(time)
    shares = np.concatenate([1 - hostile.sum(axis=-1, keepdims=True), hostile], axis=-1) * (1 - failing)[:, None]
    shares = np.clip(np.concatenate([shares, failing[:, None]], axis=-1), 0.0, 1.0)
    volume = site.volume / PER_HOUR * (1 + 0.5 * np.sin(2 * np.pi * (time - 8) / 24))
    volume = volume * (1.0 if site.traffic is None else site.traffic(time))
    outcomes = random.multinomial(random.poisson(volume), shares / shares.sum(axis=-1, keepdims=True))
    usual = np.log(0.4) + _walk(random, hours, site.slow_swing, 1)[:, 0]
    usual = usual + np.log(1.0 if site.slower is None else site.slower(time))
    return outcomes.astype(np.float64), _timed(random, usual, outcomes[:, 0])


def _timed(random: np.random.Generator, middle: Array, served: NDArray[np.int64]) -> Array:
    step = np.repeat(np.arange(len(served)), served)
    seconds = np.exp(middle[step] + SPREAD * random.normal(size=len(step)))
    buckets = np.searchsorted(stats.BOUNDS, seconds)
    found = np.zeros((len(served), len(stats.BOUNDS) + 1))
    np.add.at(found, (step, buckets), 1)
    return found


def _counter(increases: Array) -> str:
    """The samples of a counter that has grown by so much at the end of each step, evenly within it."""
    per_sample = STEP // SAMPLE
    written = []
    value = 1.0
    for increase, group in groupby(increases.tolist()):
        count = sum(1 for _ in group) * per_sample
        step = increase / per_sample
        written.append(f"{value + step:.10g}+{step:g}x{count - 1}")
        value += step * count
    return "1 " + " ".join(written)
