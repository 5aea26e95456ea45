"""Panels made of numbers, for tests of what is concluded from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawlhealth.bands import States
from crawlhealth.evaluate import Before, Judged, evaluate
from crawlhealth.normals import Normals, Table
from crawlhealth.outcome import Source
from crawlhealth.panel import Panel
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.scoring import Scored, scored
from crawlhealth.verdict import BandState, Baseline, Rates, Spread, StratumNormal
from crawlhealth.weighted import COLUMNS
from samples import NOW
from someslots import LIVES

HALF_LIVES = np.array(LIVES)
ROBUST = ScoreSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the windows hold of one stratum: `counts` of the five outcomes, for all windows or for each (K, 5).

    `mean_weight` is what the answered requests weigh on average: the sum of squares is that of equal weights. `p95` and
    `low` are in seconds.
    """

    counts: ArrayLike
    route: str = "direct"
    source: Source = Source.TRAFFIC
    mean_weight: float = 1.0
    p95: float = float("nan")
    low: float | None = None


def panel(sites: Mapping[str, Sequence[Row]], half_lives: NDArray[np.float64] = HALF_LIVES) -> Panel:
    """A panel of some sites."""
    rows = [row for several in sites.values() for row in several]
    lives = len(half_lives)
    block = np.zeros((len(rows), lives, len(COLUMNS)))
    for place, row in enumerate(rows):
        block[place, :, :5] = np.broadcast_to(np.asarray(row.counts, dtype=np.float64), (lives, 5))
        block[place, :, -2] = block[place, :, :4].sum(axis=-1) * row.mean_weight
        block[place, :, -1] = block[place, :, 4] * row.mean_weight
    owner = np.repeat(np.arange(len(sites)), [len(several) for several in sites.values()]).astype(np.intp)
    totals = np.zeros((len(sites), lives, len(COLUMNS)))
    np.add.at(totals, owner, block)
    site_p95 = np.full((len(sites), lives), np.nan)
    for place, row in enumerate(rows):
        site_p95[owner[place]] = np.fmax(site_p95[owner[place]], row.p95)
    return Panel(
        sites=tuple(sites),
        half_lives=half_lives,
        keys=[(row.route, row.source) for row in rows],
        owner=owner,
        row_ids=np.arange(len(rows)),
        rows=block,
        totals=totals,
        p95=np.array([[row.p95] * lives for row in rows]).reshape(len(rows), lives),
        p95_low=np.array([[row.p95 if row.low is None else row.low] * lives for row in rows]).reshape(len(rows), lives),
        site_p95=site_p95,
    )


def rates(hard: float = 0.0, challenge: float = 0.0, soft: float = 0.0, latency: float | None = None) -> Rates:
    """Rates by position."""
    return Rates(hard_block=hard, challenge=challenge, soft_block=soft, latency_p95=latency, extraction=0.0)


def normal(
    whole: Rates, *, swing: float = 0.0, refused: bool = False, strata: Mapping[str, Rates] | None = None
) -> Baseline:
    """A baseline with the same dispersion of every signal; `strata` are by route, of traffic."""
    spread = Spread(hard_block=swing, challenge=swing, soft_block=swing, refused=swing, latency=swing)
    return Baseline(
        hours=336,
        newest=NOW,
        rates=whole,
        spread=spread,
        lasting=spread,
        refused=refused,
        strata=tuple(
            StratumNormal(route=route, source=Source.TRAFFIC.value, rates=own) for route, own in (strata or {}).items()
        ),
    )


def normals(of: Panel, *baselines: Baseline | None) -> Normals:
    """The normals of a panel's sites; one baseline stands for all."""
    return Table().of(of, list(baselines) if len(baselines) == len(of.sites) else [*baselines] * len(of.sites))


def score_of(of: Panel, *baselines: Baseline | None, settings: ScoreSettings = ROBUST) -> Scored:
    """What the sites of a panel score."""
    nobody, always = np.full(len(of.sites), np.nan), np.zeros(len(of.sites))
    return scored(of, normals(of, *baselines), at=always + NOW, shown=nobody, quiet=always, settings=settings)


def one(rows: Sequence[Row], baseline: Baseline | None, settings: ScoreSettings = ROBUST) -> float:
    """The score of one site with these rows, NaN where there is none."""
    return float(score_of(panel({"books": rows}), baseline, settings=settings).score[0])


def judged(
    of: Panel, baselines: Sequence[Baseline | None], settings: ScoreSettings = ROBUST, before: Before | None = None
) -> Judged:
    """What holds of the sites of a panel, with new evidence of all, after `before` or nothing."""
    count = len(of.sites)
    nothing = Before(
        states=States.of([BandState()] * count), smoothed=np.full(count, np.nan), at=np.full(count, np.nan)
    )
    return evaluate(
        of, normals(of, *baselines), before or nothing, new_evidence=np.ones(count, dtype=np.bool_), now=NOW,
        settings=settings,
    )  # fmt: skip
