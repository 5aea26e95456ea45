"""The story as data: how the shop behaves at each stage, and what must then be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from crawlhealth.demo.behaviour import Behaviour, Kind
from crawlhealth.demo.sink import Notice
from crawlhealth.demo.view import View

SITE: Final = "shop"
DECOY_CANARY: Final = "brass-lamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Something that must be seen. `paging` ones need Prometheus and Alertmanager."""

    says: str
    holds: Callable[[View], bool]
    paging: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of the story: all of `expects` must come to hold at once, `throughout` holds at every moment of it.

    `seconds` is how long the shop stays like this at least, so that a person can follow and the windows fill.
    """

    name: str
    tells: str
    behaviours: tuple[Behaviour, ...] = ()
    expects: tuple[Expectation, ...]
    throughout: tuple[Expectation, ...] = ()
    seconds: float = 8.0


def band_is(band: str) -> Expectation:
    """The site is in this band."""
    return Expectation(says=f"the band is {band}", holds=lambda view: view.band == band)


def score_within(least: float, most: float) -> Expectation:
    """The score is present and within bounds."""
    return Expectation(
        says=f"the score is from {least:g} to {most:g}",
        holds=lambda view: view.score is not None and least <= view.score <= most,
    )


def reasons_are(*signals: str) -> Expectation:
    """Exactly these signals cost points, in any order (the cap aside)."""
    said = ", ".join(signals) if signals else "none"
    return Expectation(says=f"the reasons: {said}", holds=lambda view: set(view.reasons) == set(signals))


def parser_within(least: float, most: float) -> Expectation:
    """The parser score is present and within bounds."""
    return Expectation(
        says=f"the parser score is from {least:g} to {most:g}",
        holds=lambda view: view.parser_score is not None and least <= view.parser_score <= most,
    )


def decoys_are(*canaries: str) -> Expectation:
    """Exactly these canaries are decoy suspects."""
    said = ", ".join(canaries) if canaries else "none"
    return Expectation(says=f"decoy suspects: {said}", holds=lambda view: view.decoys == set(canaries))


def notice(alert: str, status: str, *, pages: bool) -> Expectation:
    """The latest notice of an alert has this status and came to the right webhook."""

    def holds(view: View) -> bool:
        last = view.last(alert)
        return last is not None and last.status == status and last.paged is pages

    return Expectation(says=f"{'page' if pages else 'notice'} {alert}: {status}", holds=holds, paging=True)


_ALL_WELL: Final = (band_is("normal"), score_within(95, 100), reasons_are(), decoys_are())
_UNTOUCHED: Final = (band_is("normal"), score_within(90, 100), reasons_are())

_SLOW: Final = Behaviour(kind=Kind.SLOW, seconds=0.45)
_CHALLENGES: Final = Behaviour(kind=Kind.CHALLENGE, vendor="cloudflare_body", share=0.20)
_SOFT_BLOCKS: Final = Behaviour(kind=Kind.BLOCK_PAGE, share=0.10)
_HARD_BLOCKS: Final = Behaviour(kind=Kind.STATUS, status=403, share=0.40)

STORY: Final[tuple[Stage, ...]] = (
    Stage(
        name="normal",
        tells="the shop serves as it always did",
        expects=(*_ALL_WELL, parser_within(95, 100)),
    ),
    Stage(
        name="slower",
        tells="every answer takes 0.45 s longer",
        behaviours=(_SLOW,),
        expects=(
            band_is("normal"),
            score_within(80, 94),
            reasons_are("latency"),
            notice("CrawlTargetDrifting", "firing", pages=False),
            notice("CrawlLatencyHigh", "firing", pages=False),
        ),
    ),
    Stage(
        name="challenges",
        tells="and 20 of 100 answers are challenges, with status 200",
        behaviours=(_SLOW, _CHALLENGES),
        expects=(band_is("degrading"), score_within(50, 79), reasons_are("challenge", "latency")),
    ),
    Stage(
        name="soft blocks",
        tells="and 10 of 100 are block pages, with status 200",
        behaviours=(_SLOW, _CHALLENGES, _SOFT_BLOCKS),
        expects=(
            band_is("degrading"),
            score_within(50, 70),
            reasons_are("challenge", "latency", "soft_block"),
            notice("CrawlTargetDegrading", "firing", pages=False),
        ),
    ),
    Stage(
        name="hard blocks",
        tells="and 40 of 100 are plain refusals: 403",
        behaviours=(_SLOW, _CHALLENGES, _SOFT_BLOCKS, _HARD_BLOCKS),
        expects=(
            band_is("resisting"),
            score_within(0, 49),
            reasons_are("hard_block", "challenge", "latency", "soft_block"),
            notice("CrawlTargetResisting", "firing", pages=True),
        ),
    ),
    Stage(
        name="recovery",
        tells="the shop serves normally again",
        expects=(
            *_ALL_WELL,
            notice("CrawlTargetResisting", "resolved", pages=True),
            notice("CrawlTargetDegrading", "resolved", pages=False),
        ),
    ),
    Stage(
        name="decoy",
        tells="one product shows a wrong price, on a page that looks right",
        behaviours=(Behaviour(kind=Kind.DECOY, path="/product/7"),),
        expects=(
            decoys_are(DECOY_CANARY),
            parser_within(95, 100),
            notice("CrawlCanaryWrongValue", "firing", pages=True),
        ),
        throughout=_UNTOUCHED,
    ),
    Stage(
        name="redesign",
        tells="prices are right again, and the markup is another one",
        behaviours=(Behaviour(kind=Kind.REDESIGN),),
        expects=(
            decoys_are(),
            parser_within(0, 20),
            notice("CrawlCanaryWrongValue", "resolved", pages=True),
            notice("CrawlParserFailing", "firing", pages=False),
        ),
        throughout=_UNTOUCHED,
    ),
    Stage(
        name="repaired",
        tells="the old markup is back, as after a repair of the parser",
        expects=(*_ALL_WELL, parser_within(95, 100), notice("CrawlParserFailing", "resolved", pages=False)),
        throughout=_UNTOUCHED,
        seconds=4.0,
    ),
)

TOLD: Final = frozenset(
    {
        "CrawlTargetDrifting",
        "CrawlLatencyHigh",
        "CrawlTargetDegrading",
        "CrawlTargetResisting",
        "CrawlCanaryWrongValue",
        "CrawlParserFailing",
    }
)
"""The alerts of the story."""
MAYBE: Final = frozenset({"CrawlCanaryFailing"})
"""Told where the redesign is shown for long: an hour without right values is 24 seconds here."""
LATE: Final = frozenset({"CrawlExporterStale", "CrawlExporterDown", "CrawlScrapeFailing", "CrawlRulesFailing"})
"""What a machine that is busy otherwise brings about: on the demo's clock five minutes are two seconds."""


def untold(notices: Iterable[Notice]) -> list[str]:
    """The alerts that arrived and are not of the story, by name."""
    return sorted({notice.alert for notice in notices} - TOLD - MAYBE - LATE)


JOURNEY: Final = ("normal", "degrading", "resisting", "normal")
"""The bands that the story must pass through, in this order."""


def passed_through(bands: Iterable[str | None], journey: Iterable[str] = JOURNEY) -> bool:
    """Whether the bands seen contain the journey in its order."""
    seen = iter(bands)
    return all(band in seen for band in journey)
