"""Small observations, slots and runs that tests of the score and the history are made of."""

from __future__ import annotations

from crawlhealth.model import CanaryRun, Classification, Evidence, Observation, Refusal
from crawlhealth.outcome import Outcome, Reason, Source
from crawlhealth.tally import Slot, Tally

NOW = 1_796_040_000.0  # 2026-11-30T12:00:00Z
HOUR = 3600.0
DAY = 86400.0


def observation(
    *,
    site: str = "books",
    route: str = "direct",
    source: Source = Source.TRAFFIC,
    outcome: Outcome = Outcome.OK,
    reason: Reason = Reason.SERVED,
    at: float = NOW,
    count: int = 1,
    seconds: float | None = None,
    extracted: bool | None = None,
) -> Observation:
    return Observation(
        site=site, route=route, source=source, outcome=outcome, reason=reason, at=at, count=count, seconds=seconds,
        extracted=extracted,
    )  # fmt: skip


def slot(
    start: float,
    tally: Tally,
    *,
    seconds: float = 60.0,
    site: str = "books",
    route: str = "direct",
    source: Source = Source.TRAFFIC,
) -> Slot:
    return Slot(site=site, route=route, source=source, start=start, seconds=seconds, tally=tally)


def refusal(
    *,
    site: str = "books",
    route: str = "direct",
    source: Source = Source.TRAFFIC,
    at: float = NOW,
    outcome: Outcome = Outcome.HARD_BLOCK,
    reason: Reason = Reason.HTTP_403,
    title: str = "",
) -> Refusal:
    evidence = Evidence(status=403, title=title)
    return Refusal(site=site, route=route, source=source, at=at, outcome=outcome, reason=reason, evidence=evidence)


def run(*, site: str = "books", canary: str = "front", route: str = "direct", at: float = NOW,
        outcome: Outcome = Outcome.OK, size: int = 1000) -> CanaryRun:  # fmt: skip
    reason = Reason.SERVED if outcome is Outcome.OK else Reason.HTTP_403
    classification = Classification(outcome=outcome, reason=reason, evidence=Evidence(headers=(("server", "x"),)))
    return CanaryRun(site=site, canary=canary, route=route, at=at, classification=classification, bytes=size)
