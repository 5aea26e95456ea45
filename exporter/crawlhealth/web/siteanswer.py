"""What the API says of a site: the verdict and the advice as JSON, and a tag that changes when they do. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final
from urllib.parse import quote

import msgspec

from crawlhealth.shard import Shard
from crawlhealth.verdict import NEUTRAL, Advice, Cost, Override, Penalty, Verdict

_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonAnswer:
    """A signal that costs points, with its value now and normally."""

    signal: str
    points: float
    now: float
    baseline: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAnswer:
    """The present window."""

    requests: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteAnswer:
    """One route in the present window."""

    refused_ratio: float
    error_ratio: float
    requests: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostAnswer:
    """What a valid record costs, now and normally."""

    now: Cost | None
    baseline: Cost | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideAnswer:
    """What a person decided in place of the advice."""

    kind: str
    concurrency_ratio: float
    at: str
    until: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteAnswer:
    """One site as the API shows it; `score` is None while unknown, and `unknown` says why."""

    site: str
    score: int | None
    score_raw: int | None
    parser_score: int | None
    band: str
    held: bool
    since: str | None
    unknown: str | None
    reasons: tuple[ReasonAnswer, ...]
    diagnosis: str
    advice: Advice
    override: OverrideAnswer | None
    maintenance: bool
    window: WindowAnswer | None
    baseline: Mapping[str, int] | None
    routes: Mapping[str, RouteAnswer]
    cost: CostAnswer
    at: str | None
    links: Mapping[str, str]


def answer(site: str, verdict: Verdict | None) -> SiteAnswer:
    """What is said of a site; without a verdict nothing is known of it yet, and the advice is to crawl as usual."""
    links = {"page": f"/sites/{quote(site, safe='')}"}
    if verdict is None:
        return SiteAnswer(
            site=site, score=None, score_raw=None, parser_score=None, band="unknown", held=False, since=None,
            unknown=None, reasons=(), diagnosis="none", advice=NEUTRAL, override=None, maintenance=False, window=None,
            baseline=None, routes={}, cost=CostAnswer(now=None, baseline=None), at=None, links=links,
        )  # fmt: skip
    window, baseline = verdict.window, verdict.baseline
    return SiteAnswer(
        site=site,
        score=verdict.score,
        score_raw=verdict.score_raw,
        parser_score=verdict.parser_score,
        band=verdict.band.value,
        held=verdict.state.held,
        since=moment(verdict.state.since) if verdict.state.since else None,
        unknown=verdict.unknown.value if verdict.unknown is not None else None,
        reasons=tuple(map(_reason, verdict.reasons)),
        diagnosis=verdict.diagnosis.value,
        advice=verdict.advice,
        override=_override(verdict.override),
        maintenance=verdict.maintenance,
        window=WindowAnswer(requests=window.requests, seconds=window.seconds) if window is not None else None,
        baseline={"hours": baseline.hours} if baseline is not None else None,
        routes=_routes(verdict),
        cost=CostAnswer(
            now=window.cost if window is not None else None, baseline=baseline.cost if baseline is not None else None
        ),
        at=moment(verdict.at),
        links=links,
    )


def tag(verdict: Verdict | None) -> str:
    """The (weak) entity tag of a site: the same as long as a crawler or a person would do the same.

    Counts and shares move with every evaluation and are left out; what counts is the score, the band, the reasons, the
    diagnosis, the advice, and what a person decided.
    """
    if verdict is None:
        return 'W/"0"'
    said = (
        verdict.score,
        verdict.parser_score,
        verdict.band,
        verdict.state.held,
        verdict.state.since,
        verdict.unknown,
        [(reason.signal, round(reason.points)) for reason in verdict.reasons],
        verdict.diagnosis,
        verdict.advice,
        verdict.override,
        verdict.maintenance,
    )
    return f'W/"{blake2b(_encode(said), digest_size=12).hexdigest()}"'


def tag_of_all(verdicts: Mapping[str, Verdict | None]) -> str:
    """The (weak) entity tag of a list of sites."""
    digest = blake2b(digest_size=12)
    for site in sorted(verdicts):
        digest.update(f"{site}\0{tag(verdicts[site])}\0".encode())
    return f'W/"{digest.hexdigest()}"'


def encoded(said: object) -> bytes:
    """An answer as JSON."""
    return _encode(said)


def unknown_site(site: str, why: str, owner: Shard | None = None) -> bytes:
    """The answer about a site that is not watched here, and why: nothing is known, so its crawler goes on as usual.

    Where another shard is known to have the site, a client can read which.
    """
    elsewhere = {} if owner is None else {"shard": owner}
    return _encode({"error": why, "site": site, "advice": NEUTRAL, **elsewhere})


def moment(at: float) -> str:
    """A time in unix seconds as the API writes it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _reason(penalty: Penalty) -> ReasonAnswer:
    return ReasonAnswer(
        signal=penalty.signal.value,
        points=round(penalty.points, 1),
        now=round(penalty.now, 4),
        baseline=round(penalty.baseline, 4),
    )


def _override(override: Override | None) -> OverrideAnswer | None:
    if override is None:
        return None
    return OverrideAnswer(
        kind=override.kind.value,
        concurrency_ratio=override.concurrency,
        at=moment(override.at),
        until=moment(override.until),
        note=override.note,
    )


def _routes(verdict: Verdict) -> Mapping[str, RouteAnswer]:
    return {
        route: RouteAnswer(
            refused_ratio=round(verdict.route_refused.get(route, 0.0), 4),
            error_ratio=round(verdict.route_error.get(route, 0.0), 4),
            requests=requests,
        )
        for route, requests in verdict.route_requests.items()
    }
