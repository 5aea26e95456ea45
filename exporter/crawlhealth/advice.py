"""Advice: what the bands ask crawlers to do, and what a person decided in its place. Pure.

Nothing here escalates: advice slows down and stops, and a person may do more or less of it.
"""

from __future__ import annotations

from typing import Final

from crawlhealth import cost
from crawlhealth.recovery import eased_share
from crawlhealth.scoresettings import AdviceSettings, ScoreSettings, Thresholds
from crawlhealth.verdict import NEUTRAL, Advice, Band, Override, OverrideKind, Rates, Unknown, Verdict

MOSTLY_ERRORS: Final = 0.5
"""The share of its concurrency that a site is crawled with while most requests bring no answer."""


def advise(verdict: Verdict, override: Override | None, settings: AdviceSettings, score: ScoreSettings) -> Advice:
    """What crawlers of a site should do by its verdict, and by the override in force."""
    usual = _by_band(verdict, settings, score)
    return usual if override is None else overridden(usual, override)


def slowed(score: float | None, settings: AdviceSettings, bands: Thresholds) -> tuple[float, float]:
    """Concurrency ratio and revisit multiplier of a degrading site.

    They go from 1 at the threshold of `degrading` to their ends at that of `resisting`, in a straight line. Without a
    score nothing better than the ends is known.
    """
    width = bands.degrading - bands.resisting
    share = 1.0 if score is None or width <= 0 else min(1.0, max(0.0, (bands.degrading - score) / width))
    return 1 - share * (1 - settings.least_concurrency), 1 + share * (settings.most_revisit - 1)


def returning(eased_at: float, now: float, settings: AdviceSettings, score: ScoreSettings) -> tuple[float, float]:
    """The same of a site that served canaries let return at `eased_at`, while nothing scores it.

    It begins with the slowest of `degrading`; the concurrency doubles once in `double_every`, and the rest follows.
    """
    least = settings.least_concurrency
    ratio = eased_share(eased_at, now, least=least, double_every=score.canaries.double_every)
    share = 0.0 if ratio >= 1 else min(1.0, (1 - ratio) / (1 - least))
    return ratio, 1 + share * (settings.most_revisit - 1)


def overridden(advice: Advice, override: Override) -> Advice:
    """The advice as a person wants it: stopped, running at a ratio, or at a ratio at most. Costs stay what they are."""
    if override.kind is OverrideKind.PAUSE:
        return Advice(
            concurrency_ratio=0.0,
            revisit_multiplier=advice.revisit_multiplier,
            cost_multiplier=advice.cost_multiplier,
            paused=True,
        )
    if override.kind is OverrideKind.RESUME:
        return Advice(concurrency_ratio=override.concurrency, cost_multiplier=advice.cost_multiplier)
    return Advice(
        concurrency_ratio=min(advice.concurrency_ratio, override.concurrency),
        revisit_multiplier=advice.revisit_multiplier,
        cost_multiplier=advice.cost_multiplier,
        paused=advice.paused,
    )


def _by_band(verdict: Verdict, settings: AdviceSettings, score: ScoreSettings) -> Advice:
    if verdict.band is Band.RESISTING:
        return Advice(
            concurrency_ratio=0.0 if settings.pause else settings.least_concurrency,
            revisit_multiplier=settings.most_revisit,
            cost_multiplier=settings.most_cost,
            paused=settings.pause,
        )
    if verdict.band is Band.DEGRADING:
        eased_at = verdict.state.eased_at
        if verdict.score is None and eased_at is not None:
            concurrency, revisit = returning(eased_at, verdict.at, settings, score)
        else:
            concurrency, revisit = slowed(verdict.score, settings, score.bands)
        return Advice(
            concurrency_ratio=round(concurrency, 4),
            revisit_multiplier=round(revisit, 4),
            cost_multiplier=_cost(verdict, settings),
        )
    if verdict.unknown is Unknown.MOSTLY_ERRORS:
        return Advice(concurrency_ratio=MOSTLY_ERRORS)
    return NEUTRAL


def _cost(verdict: Verdict, settings: AdviceSettings) -> float:
    """What a served page costs against normal; the most while nothing is known of a degrading site."""
    now = _rates(verdict)
    if now is None or verdict.baseline is None:
        return settings.most_cost
    return round(cost.multiplier(now, verdict.baseline.rates, settings.most_cost), 2)


def _rates(verdict: Verdict) -> Rates | None:
    return verdict.window.rates if verdict.window is not None else None
