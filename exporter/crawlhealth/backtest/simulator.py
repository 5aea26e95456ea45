"""Simulator: sites that refuse some requests of themselves, restlessly, and what happens to them. Seeded and pure.

A site has base shares of hard blocks, challenges and soft blocks, and a volume that follows the day and falls at
weekends. In every hour the log-odds of each share follow a first-order autoregression (`PHI`, standard deviation
`SD`); the shares of the hour are drawn around them from a Dirichlet distribution with intra-class correlation `RHO`
(over-dispersion as real rates have it), and its requests are Poisson and multinomial. The minutes of an hour share its
shares. What a scenario does is added to the shares of the autoregression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.config import DIRECT
from crawlhealth.outcome import Source
from crawlhealth.stretch import Stretch

Array = NDArray[np.float64]

RHO: Final = 0.02
PHI: Final = 0.9
SD: Final = 0.3
SHARES: Final = ((0.005, 0.01, 0.005), (0.02, 0.08, 0.02), (0.05, 0.25, 0.05))
"""Base shares of hard blocks, challenges and soft blocks: a calm, a usual and a restless site."""
VOLUMES: Final = (60.0, 200.0, 2000.0)
"""Requests an hour."""
DAY_AMPLITUDE: Final = 0.5
WEEKEND: Final = 0.7
MOST: Final = 0.9999
"""The largest share that is drawn around."""
HOUR: Final = 3600.0
MINUTES: Final = 60

Effect = Callable[[Array], Array]
"""What is added to the three shares (hours, 3) at these hours after the beginning; before it nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Season:
    """How the log-odds of challenges move of themselves: an amplitude over the day, and more at weekends."""

    hourly: float = 0.0
    weekend: float = 0.0

    def at(self, hours: Array) -> Array:
        """What is added at these hours."""
        weekend = (hours // 24) % 7 >= 5
        return self.hourly * np.sin(2 * np.pi * hours / 24) + self.weekend * weekend


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """N sites: their base shares (N, 3) and requests an hour (N)."""

    shares: Array
    volume: Array

    @classmethod
    def mixed(cls, count: int, *, volume: float | None = None) -> Population:
        """Sites of all base shares and, unless one is given, all volumes in turn."""
        kinds = np.arange(count)
        volumes = np.array(VOLUMES)[kinds // len(SHARES) % len(VOLUMES)]
        return cls(
            shares=np.array(SHARES)[kinds % len(SHARES)],
            volume=volumes if volume is None else np.full(count, volume),
        )


class Simulation:
    """The hours of a population, drawn at once: `before` of them as ever, then `after` with an effect."""

    def __init__(
        self,
        population: Population,
        *,
        seed: int,
        before: int,
        after: int,
        effect: Effect | None = None,
        season: Season | None = None,
    ) -> None:
        self._random = np.random.default_rng(seed)
        self.population = population
        self.before = before
        self.hours = before + after
        time = np.arange(self.hours, dtype=np.float64)
        added = np.zeros((self.hours, 3))
        if effect is not None:
            added[before:] = effect(time[before:] - before)
        self._drawn = self._shares(time, added, season or Season())
        day = 1 + DAY_AMPLITUDE * np.sin(2 * np.pi * (time - 8) / 24)
        self._volume = population.volume[:, None] * day * np.where((time // 24) % 7 >= 5, WEEKEND, 1.0)

    def hourly(self, first: int = 0, last: int | None = None) -> Stretch:
        """The counts of these hours, an hour a step."""
        last = self.hours if last is None else last
        volume, shares = self._volume[:, first:last], self._drawn[:, first:last]
        counts = self._random.multinomial(self._random.poisson(volume), shares)
        return _stretch(counts.astype(np.float64), start=first * HOUR, seconds=HOUR)

    def minutes(self, first: int, last: int) -> Iterator[Stretch]:
        """The counts of these hours, a minute a step, in pieces of an hour."""
        for hour in range(first, last):
            volume = np.repeat(self._volume[:, hour, None] / MINUTES, MINUTES, axis=1)
            counts = self._random.multinomial(self._random.poisson(volume), self._drawn[:, hour, None, :])
            yield _stretch(counts.astype(np.float64), start=hour * HOUR, seconds=HOUR / MINUTES)

    def _shares(self, time: Array, added: Array, season: Season) -> Array:
        """The shares of every site and hour, those of ok first: (N, hours, 4)."""
        base = self.population.shares
        walk = self._random.normal(size=(len(base), len(time), 3)) * SD
        walk[:, 1:] *= np.sqrt(1 - PHI**2)
        for hour in range(1, len(time)):
            walk[:, hour] += PHI * walk[:, hour - 1]
        odds = np.log(base / (1 - base))[:, None, :] + walk
        odds[..., 1] += season.at(time)
        hostile = 1 / (1 + np.exp(-odds)) + added
        total = hostile.sum(axis=-1, keepdims=True)
        hostile = np.where(total > MOST, hostile / np.maximum(total, MOST) * MOST, hostile)
        shares = np.concatenate([1 - hostile.sum(axis=-1, keepdims=True), hostile], axis=-1)
        gamma = self._random.standard_gamma(np.maximum(shares * (1 - RHO) / RHO, 1e-9))
        drawn: Array = gamma / gamma.sum(axis=-1, keepdims=True)
        return drawn


def names(count: int) -> list[tuple[str, str, Source]]:
    """The strata of simulated sites."""
    return [(f"site-{number}", DIRECT, Source.TRAFFIC) for number in range(count)]


def _stretch(counts: Array, *, start: float, seconds: float) -> Stretch:
    """Counts of outcomes (N, steps, 4: ok and the three hostile ones) as a stretch."""
    sites, steps = counts.shape[:2]
    values = np.zeros((steps, sites, 12))
    values[..., :4] = counts.transpose(1, 0, 2)
    some = np.flatnonzero(values[..., :4].sum(axis=-1).ravel())
    return Stretch(
        keys=names(sites),
        start=start,
        seconds=seconds,
        steps=steps,
        step=some // sites,
        row=some % sites,
        values=values.reshape(-1, 12)[some],
        timed=np.zeros(len(some) + 1, dtype=np.intp),
        bucket=np.zeros(0, dtype=np.uint16),
        count=np.zeros(0, dtype=np.float32),
    )
