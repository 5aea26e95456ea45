"""Stories: what comes of some sites, minute by minute or hour by hour, after weeks as ever; and what is said of it.

Time counts in hours from the moment when a story begins; before it everything is as ever.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crawlhealth import stats
from crawlhealth.bands import BANDS
from crawlhealth.evaluate import Judged
from crawlhealth.normals import HOSTILE
from crawlhealth.outcome import Source
from crawlhealth.replay import Replay
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.scoring import UNKNOWNS
from crawlhealth.stretch import Key, Stretch
from crawlhealth.verdict import Accepted, Band, Signal, Unknown
from samples import HOUR

Array = NDArray[np.float64]
Histogram = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Fine buckets and how many in each."""
Shares = tuple[float, float, float, float]
"""hard_block, challenge, soft_block, error."""

SETTINGS = ScoreSettings()
BEFORE = 16 * 24
"""Hours as ever before a story begins."""
START = 1_767_225_600.0  # 2026-01-01T00:00:00Z
MINUTE = 60.0
CALM: Shares = (0.01, 0.02, 0.01, 0.01)
SIGNALS = (*HOSTILE, Signal.LATENCY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What comes of a site by one route: requests an hour, shares and seconds, now and as ever.

    `volume`, `shares` and `seconds` are functions of the hours since the story began, which are negative before it.
    Shares move a little from hour to hour, with an intra-class correlation of `rho`. A `timetable` is kept to the
    minute: canaries come regularly, crawlers do not.
    """

    volume: Callable[[float], float]
    shares: Callable[[float], Shares]
    seconds: Callable[[float], float] | None = None
    route: str = "direct"
    source: Source = Source.TRAFFIC
    rho: float = 0.005
    timetable: bool = False


def crawl(
    volume: float,
    story: Callable[[float], Shares],
    *,
    usual: Shares = CALM,
    seconds: Callable[[float], float] | None = None,
    stops: tuple[float, float] | None = None,
    slower: tuple[float, float] | None = None,
    source: Source = Source.TRAFFIC,
    timetable: bool = False,
    rho: float = 0.005,
) -> tuple[Way, ...]:
    """A crawl of so many requests an hour that comes to what a story tells.

    It `stops` from one hour to another, or is `slower` from an hour on: so many requests an hour.
    """

    def flows(hour: float) -> float:
        if stops is not None and stops[0] <= hour < stops[1]:
            return 0.0
        return slower[1] if slower is not None and hour >= slower[0] else volume

    def shares(hour: float) -> Shares:
        return usual if hour < 0 else story(hour)

    return (Way(volume=flows, shares=shares, seconds=seconds, source=source, timetable=timetable, rho=rho),)


def always(*shares: float) -> Callable[[float], Shares]:
    """The same shares at any time."""
    hard, challenge, soft, error = (*shares, 0.0, 0.0, 0.0, 0.0)[:4]
    return lambda _: (hard, challenge, soft, error)


@dataclass(slots=True)
class Told:
    """What was said of some sites at each step: `hours` since the story began."""

    sites: Sequence[str]
    hours: list[float] = field(default_factory=list)
    bands: list[NDArray[np.int8]] = field(default_factory=list)
    scores: list[Array] = field(default_factory=list)
    points: list[Array] = field(default_factory=list)
    held: list[NDArray[np.bool_]] = field(default_factory=list)
    unknown: list[NDArray[np.intp]] = field(default_factory=list)
    drift: list[Array] = field(default_factory=list)

    def take(self, judged: Judged) -> None:
        """One more step."""
        self.hours.append((judged.at - START) / HOUR - BEFORE)
        self.bands.append(judged.states.band.copy())
        self.scores.append(judged.score.copy())
        self.points.append(judged.scored.points.copy())
        self.held.append(judged.states.held.copy())
        self.unknown.append(judged.scored.unknown.copy())
        self.drift.append(np.fmax.reduce(judged.scored.drift, axis=1))

    def of(self, site: str) -> Course:
        """The course of one site."""
        at = self.sites.index(site)
        return Course(
            hours=np.array(self.hours),
            bands=[BANDS[one[at]] for one in self.bands],
            scores=np.array([one[at] for one in self.scores]),
            points=np.array([one[at] for one in self.points]),
            held=np.array([one[at] for one in self.held]),
            unknown=[UNKNOWNS[one[at]] for one in self.unknown],
            drift=np.array([one[at] for one in self.drift]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What was said of one site, step by step."""

    hours: Array
    bands: Sequence[Band]
    scores: Array
    points: Array
    held: NDArray[np.bool_]
    unknown: Sequence[Unknown | None]
    drift: Array

    def within(self, first: float, last: float = np.inf) -> Course:
        """From so many hours after the beginning of the story to so many."""
        some: list[int] = np.flatnonzero((self.hours > first) & (self.hours <= last)).tolist()
        return Course(
            hours=self.hours[some],
            bands=[self.bands[n] for n in some],
            scores=self.scores[some],
            points=self.points[some],
            held=self.held[some],
            unknown=[self.unknown[n] for n in some],
            drift=self.drift[some],
        )

    def begins(self, *bands: Band) -> float:
        """How many hours after the beginning the first of these bands begins; infinity for never."""
        return next(
            (float(h) for h, band in zip(self.hours, self.bands, strict=True) if h > 0 and band in bands), np.inf
        )

    @property
    def outside(self) -> float:
        """How many hours after the beginning it is outside normal."""
        return self.begins(Band.DEGRADING, Band.RESISTING)

    @property
    def first_reason(self) -> Signal | None:
        """The dearest penalty, the cap aside, at the moment when it left normal."""
        if np.isinf(self.outside):
            return None
        dear = self.points[int(np.flatnonzero(self.hours == self.outside)[0]), :4]
        return SIGNALS[int(dear.argmax())] if dear.max() >= 1 else None


class Stories:
    """Some sites, each with its ways, replayed side by side."""

    def __init__(
        self, sites: Mapping[str, Sequence[Way]], *, settings: ScoreSettings = SETTINGS, seed: int = 2026
    ) -> None:
        self._ways = [(site, way) for site, several in sites.items() for way in several]
        self._keys: list[Key] = [(site, way.route, way.source) for site, way in self._ways]
        self._chances = [np.random.default_rng([seed, zlib.crc32(f"{key}".encode())]) for key in self._keys]
        self.replay = Replay(self._keys, settings, seconds=HOUR)
        self.told = Told(self.replay.sites)
        self._hour = -float(BEFORE)
        self.hourly(BEFORE)

    def hourly(self, hours: int) -> Told:
        """Go on for so many hours, an hour a step."""
        return self._on(hours, HOUR)

    def minutes(self, hours: int) -> Told:
        """Go on for so many hours, a minute a step."""
        return self._on(hours, MINUTE)

    def accept(self, site: str, *, since: float) -> None:
        """A person accepts now what a site has done since so many hours after the beginning."""
        at = START + (BEFORE + self._hour) * HOUR
        self.replay.accept(Accepted(site=site, at=at, since=START + (BEFORE + since) * HOUR))

    def _on(self, hours: int, seconds: float) -> Told:
        for judged in self.replay.steps(self._stretch(hours, seconds)):
            self.told.take(judged)
        self._hour += hours
        return self.told

    def _stretch(self, hours: int, seconds: float) -> Stretch:
        steps = round(hours * HOUR / seconds)
        values = np.zeros((steps, len(self._ways), 12))
        timed: list[list[Histogram | None]] = [[None] * len(self._ways) for _ in range(steps)]
        for place, (_, way) in enumerate(self._ways):
            self._fill(way, place, values, timed, seconds)
        some = np.flatnonzero(values[..., :5].sum(axis=-1).ravel())
        histograms = [timed[n // len(self._ways)][n % len(self._ways)] for n in some.tolist()]
        lengths = [0 if one is None else len(one[0]) for one in histograms]
        there = [one for one in histograms if one is not None]
        return Stretch(
            keys=self._keys,
            start=START + (BEFORE + self._hour) * HOUR,
            seconds=seconds,
            steps=steps,
            step=some // len(self._ways),
            row=some % len(self._ways),
            values=values.reshape(-1, 12)[some],
            timed=np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp),
            bucket=np.concatenate([one[0] for one in there] or [np.zeros(0, np.intp)]).astype(np.uint16),
            count=np.concatenate([one[1] for one in there] or [np.zeros(0, np.intp)]).astype(np.float32),
        )

    def _fill(self, way: Way, place: int, values: Array, timed: list[list[Histogram | None]], seconds: float) -> None:
        shares, drawn_at, chance = np.zeros(5), None, self._chances[place]
        for step in range(len(values)):
            hour = self._hour + step * seconds / HOUR
            wanted = way.shares(hour)
            if drawn_at != (np.floor(hour), wanted):  # a share moves from hour to hour, and with the story
                drawn_at = (np.floor(hour), wanted)
                mean = np.clip([1 - sum(wanted), *wanted], 1e-9, None)
                shares = chance.dirichlet(np.maximum(mean * (1 - way.rho) / way.rho, 1e-6))
            expected = way.volume(hour) * seconds / HOUR
            if way.timetable:
                count = int((hour + BEFORE) * expected * HOUR / seconds + expected + 1e-9) - int(
                    (hour + BEFORE) * expected * HOUR / seconds + 1e-9
                )
            else:
                count = int(chance.poisson(expected))
            if not count:
                continue
            values[step, place, :5] = chance.multinomial(count, shares)
            served = int(values[step, place, 0])
            if way.seconds is not None and served:
                drawn = np.exp(chance.normal(np.log(way.seconds(hour)), 0.4, served))
                timed[step][place] = np.unique(np.searchsorted(stats.BOUNDS, drawn), return_counts=True)
