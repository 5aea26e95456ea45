"""What is concluded about a site: rates, windows and baselines, penalties, bands, advice, the verdict. Frozen, slotted.

Times are unix seconds (UTC), durations are seconds, sizes are bytes. Missing data is None, never 0.

What every evaluation makes anew for each of thousands of sites is a msgspec structure: made in a fifth of the time of a
dataclass, and nothing that the garbage collector has to visit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec


class Signal(StrEnum):
    """What is measured of a site. `REFUSED_CAP` appears only among penalties."""

    HARD_BLOCK = "hard_block"
    CHALLENGE = "challenge"
    SOFT_BLOCK = "soft_block"
    REFUSED = "refused"
    LATENCY = "latency"
    EXTRACTION = "extraction"
    REFUSED_CAP = "refused_cap"


class Band(StrEnum):
    """How a site behaves against its own normal."""

    NORMAL = "normal"
    DEGRADING = "degrading"
    RESISTING = "resisting"
    UNKNOWN = "unknown"


class Unknown(StrEnum):
    """Why a site has no score."""

    NOT_ENOUGH_REQUESTS = "not_enough_requests"
    NO_BASELINE = "no_baseline"
    MOSTLY_ERRORS = "mostly_errors"
    BASELINE_REFUSED = "baseline_refused"


class Diagnosis(StrEnum):
    """Where a fault lies: the site, some of the ways to it, our extraction, decoys, our own uplink, or nowhere."""

    NONE = "none"
    SITE = "site"
    ROUTE = "route"
    PARSER = "parser"
    DECOY = "decoy"
    SELF = "self"


class IncidentLabel(StrEnum):
    """What a person said of an incident afterwards."""

    TRUE = "true"
    FALSE_ALARM = "false-alarm"


class OverrideKind(StrEnum):
    """What a person decided in place of the advice."""

    PAUSE = "pause"
    RESUME = "resume"
    LIMIT = "limit"


class Penalty(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one signal costs: points off 100, beside the value now and the site's own normal."""

    signal: Signal
    points: float
    now: float
    baseline: float


class Rates(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The signals of one site over one stretch of time: shares of its requests, and p95 latency in seconds.

    `latency_p95` is over ok responses, None where none was timed; `extraction` is the failed share of the pages that
    were read, None where none was. `together` is what is refused in any way where that is no sum of its kinds: the
    medians of three shares do not add up to that of their sum.
    """

    hard_block: float
    challenge: float
    soft_block: float
    latency_p95: float | None = None
    extraction: float | None = None
    together: float | None = None

    @property
    def refused(self) -> float:
        """The share that was refused in any way."""
        if self.together is not None:
            return self.together
        return min(1.0, self.hard_block + self.challenge + self.soft_block)

    def of(self, signal: Signal) -> float | None:
        """The rate of one signal (latency in seconds)."""
        if signal is Signal.LATENCY:
            return self.latency_p95
        value: float | None = getattr(self, signal.value)
        return value


class Bounds(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Lower bounds of the hostile shares: what is scored."""

    hard_block: float
    challenge: float
    soft_block: float
    refused: float


class Spread(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Dispersion of a site's own hours beyond chance, by signal: standard deviations (latency: of the logarithm)."""

    hard_block: float = 0.0
    challenge: float = 0.0
    soft_block: float = 0.0
    refused: float = 0.0
    latency: float = 0.0


class Cost(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one valid record costs a crawler: requests, of them retries, bytes and paid credits."""

    requests: float
    retries: float
    bytes: float
    credits: float


class Window(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The recent stretch that the score reads. `cost` is None where traffic brought no valid record."""

    seconds: float
    requests: int
    extractions: int
    rates: Rates
    cost: Cost | None = None


class StratumNormal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The normal of one way to a site: a route and a source ("canary" or "traffic")."""

    route: str
    source: str
    rates: Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A site's own normal, learnt from `hours` hours; `newest` is the end of the latest hour in it.

    `rates` are over all routes together, `strata` those of the ways that have enough of their own. `spread` is by how
    much the hourly rates vary beyond chance: standard deviations of shares; of latency, that of its logarithm.
    `lasting` is the part of it that is still there in six hours together. It was learnt at `learnt_at`.
    `season` are the effects of hour and day on its shares and its volume (season.fitted, as float32), empty for none.
    `accepted_at` is when a person accepted what is the normal since then. One that is `refused` serves less than half
    and waits for a person.
    """

    hours: int
    newest: float
    rates: Rates
    cost: Cost | None = None
    strata: tuple[StratumNormal, ...] = ()
    spread: Spread | None = None
    lasting: Spread | None = None
    learnt_at: float = 0.0
    accepted_at: float | None = None
    refused: bool = False
    season: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """What a person decided for a site, from `at` to `until`: `concurrency` is the ratio that holds then."""

    site: str
    kind: OverrideKind
    at: float
    until: float
    concurrency: float
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What a person accepted at `at`: what a site has done from `since` on is its normal. `by` says who."""

    site: str
    at: float
    since: float
    by: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What the crawlers of a site should do.

    The share of their usual concurrency, the factor on their revisit intervals, what a served page costs against
    normal, and whether to stop (`paused`: only canaries go on).
    """

    concurrency_ratio: float = 1.0
    revisit_multiplier: float = 1.0
    cost_multiplier: float = 1.0
    paused: bool = False


NEUTRAL: Final = Advice()
"""Crawl as usual."""


class BandState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A site's band and since when, with the clocks that decide when it changes.

    `under_degrading` and `under_resisting` say since when every score has been under that band's threshold,
    `over_degrading` and `over_resisting` since when every score has been at or over the level that leaves it. Time
    without evidence is not counted: the four move on with it. `evidence_at` is when evidence last came. `eased_at` is
    when served canaries turned a pause into a slow return; None while there is none. `shown` is the half-life of the
    window that showed the bad band; recovery is judged by it, and by shorter ones. `seen_at` is when anything came of
    the site, whether it gave a score or not.
    """

    band: Band = Band.UNKNOWN
    since: float = 0.0
    held: bool = False
    under_degrading: float | None = None
    under_resisting: float | None = None
    over_degrading: float | None = None
    over_resisting: float | None = None
    evidence_at: float | None = None
    eased_at: float | None = None
    shown: float | None = None
    seen_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All that is concluded about a site at one moment.

    `score` and `score_raw` (the plain formula) are whole numbers, None while unknown. `smoothed` is the score before
    rounding: the next verdict needs it. `penalties` are all signals with their points, `reasons` those that cost at
    least one point, dearest first. `lower` are the lower confidence bounds that are scored, `drift` is the early
    warning by signal in standard deviations. `evidence` is how many requests of the site had ever been counted: a
    verdict with the same number has seen nothing new. `override` is in force now, and `advice` already obeys it. In
    `maintenance` the band stands still.
    """

    site: str
    at: float
    state: BandState
    score: int | None = None
    score_raw: int | None = None
    smoothed: float | None = None
    parser_score: int | None = None
    unknown: Unknown | None = None
    penalties: tuple[Penalty, ...] = ()
    reasons: tuple[Penalty, ...] = ()
    window: Window | None = None
    lower: Bounds | None = None
    baseline: Baseline | None = None
    drift: Mapping[Signal, float] = field(default_factory=dict)
    route_refused: Mapping[str, float] = field(default_factory=dict)
    route_error: Mapping[str, float] = field(default_factory=dict)
    route_requests: Mapping[str, float] = field(default_factory=dict)
    evidence: int = 0
    diagnosis: Diagnosis = Diagnosis.NONE
    advice: Advice = NEUTRAL
    override: Override | None = None
    maintenance: bool = False

    @property
    def band(self) -> Band:
        """The band of this verdict."""
        return self.state.band

    @property
    def normal(self) -> Rates | None:
        """What is normal of what the window holds: of the mix of its routes and of its hours; without it the level."""
        baseline = self.baseline
        if baseline is None or not self.penalties or not (baseline.season or baseline.strata):
            return None if baseline is None else baseline.rates
        usual = {penalty.signal: penalty.baseline for penalty in self.penalties}
        return Rates(
            hard_block=usual[Signal.HARD_BLOCK],
            challenge=usual[Signal.CHALLENGE],
            soft_block=usual[Signal.SOFT_BLOCK],
            latency_p95=usual[Signal.LATENCY] or baseline.rates.latency_p95,
            extraction=baseline.rates.extraction,
            together=usual[Signal.REFUSED_CAP],
        )
