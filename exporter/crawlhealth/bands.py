"""Bands: when a site's band begins and ends, for many sites at once. Pure.

A band begins when every score has been under its threshold for its time, and ends when every score has been at or over
its leaving level for its time. Only time with evidence counts: an observation vouches for the time since the one
before, up to a bound, and without a new one no band changes, except that unknown turns into normal with the first good
score, as after an import. Without a score a bad band is held, any other is unknown. A clock that steps back loses no
dwell, and a time without a score stops the clocks: what comes in bursts, with no score between them, adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.verdict import Band, BandState

BANDS: Final = (Band.NORMAL, Band.DEGRADING, Band.RESISTING, Band.UNKNOWN)
"""Bands by their number in arrays."""
NORMAL, DEGRADING, RESISTING, UNKNOWN = range(len(BANDS))
RECOVERY_SECONDS: Final = 3600.0
"""How long an observation vouches for a recovery at most: a daily burst counts as its hour."""
_NUMBERS: Final = {band: number for number, band in enumerate(BANDS)}
_CLOCKS: Final = ("under_degrading", "under_resisting", "over_degrading", "over_resisting")


@dataclass(slots=True, kw_only=True)
class States:
    """The band states of N sites: the fields of a BandState as arrays, NaN where it has None."""

    band: NDArray[np.int8]
    since: NDArray[np.float64]
    held: NDArray[np.bool_]
    clocks: NDArray[np.float64]
    """N, 4: since when scores are under degrading and resisting, and over their leaving levels."""
    evidence_at: NDArray[np.float64]
    eased_at: NDArray[np.float64]
    shown: NDArray[np.float64]
    seen_at: NDArray[np.float64]

    @classmethod
    def of(cls, states: Sequence[BandState]) -> States:
        """The states of some sites."""
        times = np.array(
            [
                (s.since, s.under_degrading, s.under_resisting, s.over_degrading, s.over_resisting, s.evidence_at,
                 s.eased_at, s.shown, s.seen_at)
                for s in states
            ],
            dtype=np.float64,
        ).reshape(len(states), 9)  # fmt: skip
        return cls(
            band=np.array([_NUMBERS[s.band] for s in states], dtype=np.int8),
            since=times[:, 0],
            held=np.array([s.held for s in states], dtype=np.bool_),
            clocks=times[:, 1:5],
            evidence_at=times[:, 5],
            eased_at=times[:, 6],
            shown=times[:, 7],
            seen_at=times[:, 8],
        )

    def each(self) -> list[BandState]:
        """The state of every site."""
        times = np.column_stack([self.since, self.clocks, self.evidence_at, self.eased_at, self.shown, self.seen_at])
        written: list[list[float | None]] = np.where(np.isnan(times), None, times).tolist()  # type: ignore[call-overload] # None makes objects
        return [
            BandState(
                band=BANDS[band], since=since or 0.0, held=held, under_degrading=a, under_resisting=b, over_degrading=c,
                over_resisting=d, evidence_at=evidence_at, eased_at=eased_at, shown=shown, seen_at=seen_at,
            )
            for band, held, (since, a, b, c, d, evidence_at, eased_at, shown, seen_at) in zip(
                self.band.tolist(), self.held.tolist(), written, strict=True
            )
        ]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What moves the bands of N sites at `at`: the score, that which a recovery is judged by, and evidence.

    NaN stands for none. `window` is the half-life of the window that gave the score; `vouched` is how long one
    observation vouches for a bad score at most, in seconds.
    """

    at: float
    score: NDArray[np.float64]
    recovery: NDArray[np.float64]
    window: NDArray[np.float64]
    new_evidence: NDArray[np.bool_]
    vouched: float


def next_states(previous: States, scores: Scores, settings: ScoreSettings) -> States:
    """The bands after one more evaluation."""
    at, new = scores.at, scores.new_evidence
    known = ~np.isnan(scores.score)
    bad = (previous.band == DEGRADING) | (previous.band == RESISTING)
    clocks = _clocks(previous, scores, settings)
    begun = np.minimum(previous.since, at)
    begun = np.where(begun == 0.0, at, begun)
    band = np.where(known | bad, previous.band, UNKNOWN).astype(np.int8)
    moved = _moved(previous.band, clocks, at, settings)
    band = np.where(known & new, moved, band)
    first = known & (previous.band == UNKNOWN) & (scores.score >= settings.bands.degrading)
    band = np.where(first, NORMAL, band).astype(np.int8)
    changed = band != previous.band
    worse = changed & ((band == RESISTING) | ((band == DEGRADING) & (previous.band != RESISTING)))
    clocks = np.where(known[:, None], clocks, previous.clocks)
    clocks[worse, 2:] = np.nan
    clocks[changed & bad & ~worse, :2] = np.nan
    easing = (band == DEGRADING) & ~(known & (scores.score < settings.bands.degrading))
    still_bad = (band == DEGRADING) | (band == RESISTING)
    return States(
        band=band,
        since=np.where(changed, at, begun),
        held=~known & bad,
        clocks=clocks,
        evidence_at=np.where(known & new, at, previous.evidence_at),
        eased_at=np.where(easing, previous.eased_at, np.nan),
        shown=np.where(worse, scores.window, np.where(still_bad, previous.shown, np.nan)),
        seen_at=np.where(new, at, previous.seen_at),
    )


def next_state(
    previous: BandState, score: float | None, *, at: float, new_evidence: bool, settings: ScoreSettings
) -> BandState:
    """The band of one site after one more evaluation, recovery being judged by the score itself."""
    value = np.array([np.nan if score is None else score], dtype=np.float64)
    scores = Scores(
        at=at,
        score=value,
        recovery=value,
        window=np.array([settings.windows[0].total_seconds()]),
        new_evidence=np.array([new_evidence]),
        vouched=vouched(settings),
    )
    return next_states(States.of([previous]), scores, settings).each()[0]


def vouched(settings: ScoreSettings) -> float:
    """How long one observation vouches for a bad score, in seconds: half the shortest window."""
    return min(settings.windows).total_seconds() / 2


def _clocks(previous: States, scores: Scores, settings: ScoreSettings) -> NDArray[np.float64]:
    """The dwell clocks brought up to these scores."""
    levels = settings.bands
    new = scores.new_evidence
    gap = scores.at - previous.evidence_at
    gap = np.where(np.isnan(gap) | ~new, 0.0, gap)
    bounds = np.array([scores.vouched, scores.vouched, *[max(RECOVERY_SECONDS, scores.vouched)] * 2])
    idle = gap[:, None] - np.minimum(np.maximum(gap, 0.0)[:, None], bounds)
    holds = np.column_stack(
        [
            scores.score < levels.degrading,
            scores.score < levels.resisting,
            scores.recovery >= levels.leave_degrading,
            scores.recovery >= levels.leave_resisting,
        ]
    )
    fresh = np.where(new, scores.at, np.nan)[:, None]
    going = np.where(np.isnan(previous.clocks), fresh, previous.clocks + idle)
    return np.where(holds, going, np.nan)


def _moved(band: NDArray[np.int8], clocks: NDArray[np.float64], at: float, settings: ScoreSettings) -> NDArray[np.int8]:
    """The bands that the clocks lead to."""
    enter, leave = settings.enter_after, settings.leave_after
    times = (enter.degrading, enter.resisting, leave.degrading, leave.resisting)
    lasted = at - clocks >= np.array([time.total_seconds() for time in times])  # False where there is no clock
    under_degrading, under_resisting, over_degrading, over_resisting = lasted.T
    calm = (band == NORMAL) | (band == UNKNOWN)
    found = np.where(calm & under_degrading, DEGRADING, band)
    found = np.where((band == DEGRADING) & over_degrading, NORMAL, found)
    found = np.where((band != RESISTING) & under_resisting, RESISTING, found)
    return np.where((band == RESISTING) & over_resisting, DEGRADING, found).astype(np.int8)
