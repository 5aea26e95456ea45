"""A site as the exporter's own code shows it: three routes, two canaries, and all that is concluded about it.

What a Prometheus scrapes of a fleet is this again and again under other names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import generate_latest

from crawlhealth import metrics, stats
from crawlhealth.checks import Selector, ValueSpec
from crawlhealth.collector import Exposition, show
from crawlhealth.config import Canary, Config, Route, Site
from crawlhealth.history import Committed, StoredRun
from crawlhealth.model import CanaryRun, Classification, Evidence, Phase, ValueResult
from crawlhealth.outcome import Outcome, Reason, Source
from crawlhealth.series import Text
from crawlhealth.tally import Tally
from crawlhealth.verdict import (
    Advice,
    Band,
    BandState,
    Baseline,
    Bounds,
    Cost,
    Penalty,
    Rates,
    Signal,
    Verdict,
    Window,
)

ROUTES: Final = ("direct", "dc-us", "residential")
SITE: Final = "site-00000"
AGE: Final = 40 * 86400.0
"""Seconds in which the counters have grown to what they are."""
_PER_HOUR: Final = {Source.TRAFFIC: 66, Source.CANARY: 12}
_GROWS: Final = ("_total", "_bucket", "_count", "_sum")
_FOLLOW: Final = ("crawlhealth_canary_last_", "crawlhealth_last_", "crawlhealth_history_last_")
"""Times that follow the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A series: its name, its labels as written, its value when it was made, and by how much that grows a second."""

    name: str
    labels: str
    value: float
    rate: float
    made: float

    def at(self, time: float) -> float:
        """Its value at another moment."""
        return self.value + self.rate * (time - self.made)

    def of(self, site: str) -> str:
        """The series of another site."""
        return f"{self.name}{{{self.labels.replace(SITE, site)}}}" if self.labels else self.name


def lines(now: float) -> Iterator[Line]:
    """The series of one site at a moment, and those that an exporter has once."""
    text = Text()
    show(_exposition(now), text)
    for line in "".join(text.pieces(generate_latest)).splitlines():
        if line.startswith("#"):
            continue
        series, _, written = line.rpartition(" ")
        name, _, labels = series.partition("{")
        value = float(written)
        yield Line(
            name=name,
            labels=labels.removesuffix("}"),
            value=value,
            rate=value / AGE if name.endswith(_GROWS) else float(name.startswith(_FOLLOW)),
            made=now,
        )


def _exposition(now: float) -> Exposition:
    values = tuple(ValueSpec(name=name, selector=Selector(kind="css", expression=name)) for name in ("title", "price"))
    canaries = (
        Canary(name="front", site=SITE, url=f"https://{SITE}.example/", routes=ROUTES, expect=values),
        Canary(name="listing", site=SITE, url=f"https://{SITE}.example/all", expect=values),
    )
    config = Config(
        routes={route: Route(name=route) for route in ROUTES},
        sites={SITE: Site(name=SITE, hosts=(f"{SITE}.example",), routes=ROUTES)},
        canaries=canaries,
    )
    ran = [(canary, route) for canary in canaries for route in canary.routes]
    strata = {(route, Source.TRAFFIC) for route in ROUTES} | {(route, Source.CANARY) for _, route in ran}
    committed = Committed(
        totals={(SITE, route, source): _tally(_PER_HOUR[source]) for route, source in strata},
        last={(SITE, source): now for source in Source},
        counters={
            **{
                (metrics.REASONS.name, (SITE, source.value, reason)): 100.0
                for source, reason in ((Source.TRAFFIC, "http_403"), (Source.TRAFFIC, "timeout"))
            },
            **{
                (metrics.CANARY_RUNS.name, (SITE, canary.name, route, outcome)): 5000.0
                for canary, route in ran
                for outcome in ("ok", "hard_block")
            },
        },
        runs={(SITE, canary.name, route): StoredRun.after(None, _run(canary, route, now)) for canary, route in ran},
        at=now,
    )
    return Exposition(config=config, committed=committed, verdicts=(_verdict(now),), now=now)


def _tally(per_hour: int) -> Tally:
    """The sums of a calm stratum."""
    requests = round(per_hour * AGE / 3600)
    one = Tally(hard_block=requests // 100, challenge=requests // 50, soft_block=requests // 200, error=requests // 200)
    one.ok = requests - one.hard_block - one.challenge - one.soft_block - one.error
    one.extractions_ok, one.records_valid, one.bytes, one.retries = one.ok, one.ok, 20_000 * requests, requests // 50
    buckets = [stats.bucket(seconds) for seconds in (0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.5, 3.0)]
    one.latency = dict.fromkeys(buckets, one.ok // len(buckets))
    one.latency_sum = 0.4 * one.ok
    return one


def _run(canary: Canary, route: str, now: float) -> CanaryRun:
    served = Classification(outcome=Outcome.OK, reason=Reason.SERVED, evidence=Evidence(status=200))
    return CanaryRun(
        site=canary.site, canary=canary.name, route=route, at=now, classification=served, seconds=0.3, bytes=20_000,
        phases=dict.fromkeys(Phase, 0.05),
        values=tuple(ValueResult(name=one.name, ok=True, missing=False, number=9.5) for one in canary.expect),
        not_after={f"{SITE}.example": now + 60 * 86400},
    )  # fmt: skip


def _verdict(now: float) -> Verdict:
    rates = Rates(hard_block=0.01, challenge=0.02, soft_block=0.005, latency_p95=0.9, extraction=0.01)
    cost = Cost(requests=1.1, retries=0.02, bytes=20_000, credits=0.1)
    signals = (Signal.HARD_BLOCK, Signal.CHALLENGE, Signal.SOFT_BLOCK, Signal.LATENCY, Signal.REFUSED_CAP)
    return Verdict(
        site=SITE, at=now, state=BandState(band=Band.NORMAL, since=now - 86400), score=100, score_raw=98,
        parser_score=100, penalties=tuple(Penalty(signal=one, points=0.0, now=0.01, baseline=0.01) for one in signals),
        window=Window(seconds=600, requests=100, extractions=90, rates=rates, cost=cost),
        lower=Bounds(hard_block=0.0, challenge=0.0, soft_block=0.0, refused=0.0),
        baseline=Baseline(hours=312, newest=now - 86400, rates=rates, cost=cost),
        drift=dict.fromkeys(signals[:4], 0.5),
        route_refused=dict.fromkeys(ROUTES, 0.03), route_error=dict.fromkeys(ROUTES, 0.005), advice=Advice(),
    )  # fmt: skip
