"""A site of each band with two weeks behind it, as the pages show it: quotes, books, shop and maps."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from crawlhealth import stats
from crawlhealth.checks import Check, Selector, ValueSpec
from crawlhealth.collector import Exposition
from crawlhealth.config import Canary, Config, Route, Site
from crawlhealth.history import Committed, StoredRun
from crawlhealth.incident import Incident
from crawlhealth.model import CanaryRun, CheckFailure, Classification, Evidence, Refusal, ValueResult
from crawlhealth.outcome import Outcome, Reason, Source
from crawlhealth.score import reasons
from crawlhealth.tally import Slot, Tally
from crawlhealth.verdict import (
    Accepted,
    Advice,
    Band,
    BandState,
    Baseline,
    Diagnosis,
    IncidentLabel,
    Penalty,
    Rates,
    Signal,
    Unknown,
    Verdict,
    Window,
)
from crawlhealth.web import SitePast
from samples import DAY, HOUR, NOW

NAMES = {Band.NORMAL: "quotes", Band.DEGRADING: "books", Band.RESISTING: "shop", Band.UNKNOWN: "maps"}
ROUTES = ("direct", "dc-us")
NORMAL = Rates(hard_block=0.004, challenge=0.02, soft_block=0.003, latency_p95=0.41, extraction=0.01)
HOSTILE = '<script>document.title="owned"</script><img src=x onerror=alert(1)> javascript:alert(2) "\'&lt;'


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a site went: its share of challenges and of 403s, its score, since so many hours."""

    challenge: float
    hard: float
    score: int | None
    hours: float


COURSES: Mapping[Band, Course] = {
    Band.NORMAL: Course(challenge=0.021, hard=0.004, score=99, hours=300),
    Band.DEGRADING: Course(challenge=0.24, hard=0.02, score=66, hours=9),
    Band.RESISTING: Course(challenge=0.30, hard=0.55, score=17, hours=5),
    Band.UNKNOWN: Course(challenge=0.0, hard=0.0, score=None, hours=0),
}


def exposition(*, more: int = 0, hostile: bool = False) -> Exposition:
    """What the exporter shows: one site for each band, and `more` normal ones without canaries."""
    bands = {NAMES[band]: band for band in Band} | {f"store-{number:04}": Band.NORMAL for number in range(more)}
    config = Config(
        routes={route: Route(name=route) for route in ROUTES},
        sites={name: Site(name=name, hosts=(f"{name}.example",), routes=ROUTES) for name in bands},
        canaries=tuple(canary for name in bands for canary in canaries(name) if not name.startswith("store-")),
    )
    runs = {
        (canary.site, canary.name, route): StoredRun(
            run=run(canary, route, bands[canary.site], hostile=hostile), last_success=NOW - 7 * HOUR
        )
        for canary in config.canaries
        for route in ROUTES
    }
    verdicts = tuple(verdict(name, band) for name, band in bands.items())
    return Exposition(config=config, committed=Committed(runs=runs, at=NOW), verdicts=verdicts, now=NOW)


def canaries(site: str) -> tuple[Canary, ...]:
    title = ValueSpec(
        name="title",
        selector=Selector(kind="css", expression="h1::text"),
        checks=(Check(name="equals", argument="A Light in the Attic"),),
    )
    price = ValueSpec(
        name="price",
        selector=Selector(kind="css", expression=".price::text"),
        checks=(Check(name="number", argument={"equals": 51.77}),),
        same_on=ROUTES,
    )
    rows = ValueSpec(
        name="rows",
        selector=Selector(kind="css", expression="tr"),
        checks=(Check(name="count", argument={"at_least": 7}),),
    )
    listing = f"https://{site}.example/listing?page=1&order=newest-first-and-a-very-long-address-that-must-be-broken"
    return (
        Canary(name="a-light-in-the-attic", site=site, url=f"https://{site}.example/attic", routes=ROUTES,
               expect=(title, price, rows)),
        Canary(name="listing", site=site, url=listing, routes=ROUTES, expect=(rows,)),
    )  # fmt: skip


def evidence(*, hostile: bool = False) -> Evidence:
    return Evidence(
        status=403,
        final_url="javascript:alert(3)" if hostile else "https://shop.example/listing?page=1",
        headers=(("cf-mitigated", "challenge"), ("content-type", "text/html"), ("server", "cloudflare")),
        title=HOSTILE if hostile else "Just a moment...",
        marker="cf-mitigated: challenge",
        where="header",
        excerpt=HOSTILE if hostile else "Just a moment... Enable JavaScript and cookies to continue. Ray ID 8f2c…",
        vendors=("cloudflare",),
    )


def run(canary: Canary, route: str, band: Band, *, hostile: bool = False) -> CanaryRun:
    """Refused on dc-us by a bad site, a wrong price on the direct route of a degrading one, else all right."""
    bad = band in (Band.DEGRADING, Band.RESISTING)
    if bad and route == "dc-us":
        refused = Classification(
            outcome=Outcome.CHALLENGE, reason=Reason.CLOUDFLARE_CHALLENGE, evidence=evidence(hostile=hostile)
        )
        return CanaryRun(site=canary.site, canary=canary.name, route=route, at=NOW - 140, classification=refused)
    served = Classification(outcome=Outcome.OK, reason=Reason.SERVED, evidence=Evidence(status=200, title="A Light"))
    seen = {"title": "A Light in the Attic", "price": "£51.77", "rows": "UPC"}
    values = [ValueResult(name=spec.name, ok=True, missing=False, seen=seen[spec.name], count=7 if spec.name == "rows"
                          else 1) for spec in canary.expect]  # fmt: skip
    if band is Band.DEGRADING and len(values) > 1:
        text = HOSTILE if hostile else "£15.17"
        failure = CheckFailure(check="number", expected="number: equals 51.77", seen=text, where="css .price::text")
        values[1] = ValueResult(name="price", ok=False, missing=False, seen=text, number=15.17, count=1,
                                failures=(failure,))  # fmt: skip
    return CanaryRun(site=canary.site, canary=canary.name, route=route, at=NOW - 140, classification=served,
                     values=tuple(values), bytes=51_000)  # fmt: skip


def verdict(site: str, band: Band, *, at: float = NOW, score: int | None = None) -> Verdict:
    course = COURSES[band]
    if band is Band.UNKNOWN:
        return Verdict(site=site, at=at, state=BandState(since=NOW - HOUR), unknown=Unknown.NO_BASELINE)
    assert course.score is not None
    score = course.score if score is None else score
    rates = Rates(
        hard_block=course.hard, challenge=course.challenge, soft_block=0.004, latency_p95=0.47, extraction=0.01
    )
    costs = (
        Penalty(signal=Signal.HARD_BLOCK, points=35 * min(1, max(0, course.hard - 0.004) / 0.2), now=course.hard,
                baseline=0.004),
        Penalty(signal=Signal.CHALLENGE, points=25 * min(1, max(0, course.challenge - 0.02) / 0.2),
                now=course.challenge, baseline=0.02),
        Penalty(signal=Signal.SOFT_BLOCK, points=0.1, now=0.004, baseline=0.003),
        Penalty(signal=Signal.LATENCY, points=1.1, now=0.47, baseline=0.41),
        Penalty(signal=Signal.REFUSED_CAP, points=max(0.0, 38.9 - course.score) if band is Band.RESISTING else 6.2 if
                band is Band.DEGRADING else 0.0, now=rates.refused, baseline=NORMAL.refused),
    )  # fmt: skip
    bad = band is not Band.NORMAL
    return Verdict(
        site=site,
        at=at,
        state=BandState(band=band, since=NOW - course.hours * HOUR, held=False),
        score=score,
        score_raw=score,
        parser_score=100,
        penalties=costs,
        reasons=reasons(costs) if bad else (),
        window=Window(seconds=1800.0, requests=1240, extractions=1000, rates=rates),
        baseline=Baseline(hours=312, newest=NOW - DAY, rates=NORMAL),
        diagnosis=Diagnosis.SITE if bad else Diagnosis.NONE,
        advice=Advice(concurrency_ratio=0.65, revisit_multiplier=2.4, cost_multiplier=1.3)
        if band is Band.DEGRADING
        else Advice(concurrency_ratio=0.0, revisit_multiplier=4.0, cost_multiplier=6.6, paused=True)
        if bad
        else Advice(),
    )


def past(site: str, now: float = NOW, *, hostile: bool = False) -> SitePast:
    """Two weeks by the hour; the site of an unknown band is an hour old."""
    band = next((band for band, name in NAMES.items() if name == site), Band.NORMAL)
    if band is Band.UNKNOWN:
        return SitePast(slots=tuple(_slots(site, band, range(-1, 0))))
    hours = [number for number in range(-14 * 24, 0) if number not in range(-120, -110)]  # the exporter was down
    refused = {Band.DEGRADING: 6, Band.RESISTING: 9}.get(band, 1)
    return SitePast(
        verdicts=tuple(_verdict_then(site, band, number) for number in hours),
        slots=tuple(_slots(site, band, hours)),
        refusals=tuple(
            Refusal(site=site, route=ROUTES[number % 2], source=(Source.TRAFFIC, Source.CANARY)[number % 2],
                    at=now - 60 - 400 * number, outcome=Outcome.CHALLENGE, reason=Reason.CLOUDFLARE_CHALLENGE,
                    evidence=evidence(hostile=hostile), canary="listing" if number % 2 else "")
            for number in range(refused)
        ),
        incidents=incidents(site, band, hostile=hostile),
        accepted=accepted(site, band, hostile=hostile),
    )  # fmt: skip


def accepted(site: str, band: Band, *, hostile: bool = False) -> tuple[tuple[Accepted, float | None], ...]:
    """What a person accepted of a degrading site, after taking back something else."""
    if band is not Band.DEGRADING:
        return ()
    note = HOSTILE if hostile else "their new shop challenges first visits"
    one = Accepted(site=site, at=NOW - 30 * DAY, since=NOW - 31 * DAY, by="anna", note=note)
    return ((one, None), (replace(one, at=NOW - 40 * DAY, by="ben"), NOW - 35 * DAY))


def incidents(site: str, band: Band, *, hostile: bool = False) -> tuple[Incident, ...]:
    """The present one of a bad site, and two that a person has labelled."""
    course = COURSES[band]
    past = tuple(
        Incident(
            site=site, start=NOW - days * DAY, end=NOW - days * DAY + 5 * HOUR, worst_score=61,
            worst_band=Band.DEGRADING, worst_at=NOW - days * DAY + HOUR, first_reason=Signal.LATENCY, label=label,
            diagnosis=Diagnosis.SITE, note=HOSTILE if hostile else "their sale was on", labelled_at=NOW,
            right_reason=Signal.REFUSED,
        )
        for days, label in ((9, IncidentLabel.FALSE_ALARM), (20, IncidentLabel.TRUE))
    )  # fmt: skip
    if band not in (Band.DEGRADING, Band.RESISTING):
        return past
    start = NOW - course.hours * HOUR
    advice = Advice(concurrency_ratio=0.0, paused=True) if band is Band.RESISTING else Advice(concurrency_ratio=0.65)
    present = Incident(
        site=site, start=start, worst_score=course.score, worst_band=band, worst_at=NOW - HOUR,
        first_reason=Signal.CHALLENGE, diagnosis=Diagnosis.SITE, warned_at=start - 4 * HOUR, degrading_at=start,
        advice=((start, advice),),
    )  # fmt: skip
    return (present, *past)


def _verdict_then(site: str, band: Band, number: int) -> Verdict:
    at = NOW + number * HOUR
    since = -number / COURSES[band].hours
    if band is Band.NORMAL or since >= 1:
        return verdict(site, Band.NORMAL, at=at, score=100 - zlib.crc32(b"%d" % number) % 5)
    target = COURSES[band].score or 0
    return verdict(
        site,
        band,
        at=at,
        score=round(target + (97 - target) * max(0.0, since * 1.6 - 0.6)) - zlib.crc32(b"%d" % number) % 4,
    )


def _slots(site: str, band: Band, hours: Iterable[int]) -> Iterable[Slot]:
    for number in hours:
        bad = -number <= COURSES[band].hours and band is not Band.NORMAL
        busy = 500 + (number % 24) * 40
        for route, requests in zip(ROUTES, (busy, busy // 3), strict=True):
            course = COURSES[band if bad else Band.NORMAL]
            worse = 1.4 if route == "dc-us" else 0.9
            challenge, hard = (round(requests * min(0.45, share * worse)) for share in (course.challenge, course.hard))
            tally = Tally(
                ok=requests - challenge - hard, challenge=challenge, hard_block=hard, error=requests // 200,
                latency={stats.bucket(0.2): requests // 2, stats.bucket(0.44): requests // 2},
            )  # fmt: skip
            yield Slot(
                site=site, route=route, source=Source.TRAFFIC, start=NOW + number * HOUR, seconds=HOUR, tally=tally
            )
