"""What users may write of the judgement, with every default: windows, margins, bands, normals and advice. Immutable."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Literal

MOST_RUNS: Final = 32
"""So many runs of a canary are remembered, and no more can be asked for in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSettings:
    """Which hours make a site's own normal, and which level of their rates (0.5 is the median).

    Hours are merged into blocks of `min_requests`; it takes `min_blocks` of them, or `min_days` on as many days, and
    `min_total` requests. Hours that scored under `least_score` are left out, and those before `quiet` has passed since
    a bad band. It is learnt again as often as the history has grown by a twelfth, and `every` so often at least.
    `season` is the longest cycle that is believed where the site's own past proves it.
    """

    length: timedelta = timedelta(days=14)
    exclude_last: timedelta = timedelta(days=1)
    min_requests: int = 50
    min_blocks: int = 24
    min_days: int = 7
    min_total: int = 500
    least_score: int = 92
    quiet: timedelta = timedelta(days=1)
    every: timedelta = timedelta(days=1)
    level: float = 0.5
    season: Literal["none", "day", "week"] = "week"

    @property
    def reach(self) -> timedelta:
        """How far back its first block may begin."""
        return self.length + self.exclude_last

    def renewed(self, age: float) -> float:
        """How many seconds after it was learnt it is learnt again, with a history that many seconds old."""
        return min(max(age / 12, 3600.0), self.every.total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Points that each signal costs at most; together 100."""

    hard_block: float = 35.0
    challenge: float = 25.0
    soft_block: float = 25.0
    latency: float = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Scores under which a band begins, and at which it may end."""

    degrading: float = 80.0
    resisting: float = 50.0
    leave_degrading: float = 85.0
    leave_resisting: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnterAfter:
    """How long a score must stay under a band's threshold before the band begins."""

    degrading: timedelta = timedelta(minutes=45)
    resisting: timedelta = timedelta(minutes=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveAfter:
    """How long a score must stay at or over the leaving level before the band ends."""

    degrading: timedelta = timedelta(hours=6)
    resisting: timedelta = timedelta(hours=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryLed:
    """What canaries alone decide, by how many runs in a row (at most `MOST_RUNS`) over how long.

    So many `refused` make a site without a score `resisting`; so many `served` end a pause, and the concurrency then
    doubles once in `double_every` until traffic scores.
    """

    refused: int = 6
    served: int = 6
    over: timedelta = timedelta(minutes=15)
    double_every: timedelta = timedelta(minutes=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """What chance may explain of a share above its normal, in standard deviations; only the rest costs points.

    `noise` is of the sample, `swing` of the site's own hours; `rare` is how far both together may go, less what costs
    the band `normal`, for a window of an hour.
    """

    noise: float = 1.1
    swing: float = 1.0
    rare: float = 3.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSettings:
    """The judgement, tunable after real incidents. `cap` lets a site that refuses everything score 0."""

    method: Literal["robust", "plain"] = "robust"
    cap: bool = True
    margins: Margins = field(default_factory=Margins)
    drift_threshold: float = 4.0
    weights: Weights = field(default_factory=Weights)
    evaluate_every: timedelta = timedelta(seconds=15)
    min_requests: int = 50
    windows: tuple[timedelta, ...] = (
        timedelta(minutes=10),
        timedelta(minutes=30),
        timedelta(hours=2),
        timedelta(hours=6),
    )
    smoothing: timedelta = timedelta(minutes=10)
    bands: Thresholds = field(default_factory=Thresholds)
    enter_after: EnterAfter = field(default_factory=EnterAfter)
    leave_after: LeaveAfter = field(default_factory=LeaveAfter)
    canaries: CanaryLed = field(default_factory=CanaryLed)
    baseline: BaselineSettings = field(default_factory=BaselineSettings)

    @property
    def reach(self) -> timedelta:
        """The longest half-life of a window."""
        return max(self.windows)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceSettings:
    """What the bands advise. The first three are reached at the threshold of `resisting`, and hold there.

    `pause` says whether crawlers of a resisting site are told to stop.
    """

    least_concurrency: float = 0.25
    most_revisit: float = 4.0
    most_cost: float = 10.0
    pause: bool = True
