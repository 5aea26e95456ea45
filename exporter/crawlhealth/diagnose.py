"""Diagnosis: whether a fault lies with the site, with a way to it, with our extraction, or with ourselves. Pure.

The evidence of traffic and canaries is read by route: a route fails when what it refuses or loses is 20 percentage
points above what the site normally refuses. Hostility is read before extraction: a challenge page breaks any parser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from crawlhealth.model import CanaryRun
from crawlhealth.outcome import Outcome
from crawlhealth.uplink import CONNECTION
from crawlhealth.verdict import Diagnosis, Verdict

MIN_REQUESTS: Final = 10
"""A route with fewer requests in the present window is judged by its latest canary runs."""
FAILING: Final = 0.20
"""A route fails when this share of its requests, beyond the site's normal, brings nothing."""
SERVING: Final = 0.10
"""A route serves below this share."""
FRESH_SECONDS: Final = 3600.0
"""An older canary run proves nothing about now."""
OTHER_SITES: Final = 2
"""A site's only route is to blame when it fails on so many other sites as well."""
PARSER: Final = 80
"""A parser score under this is a fault of extraction."""


def diagnose(
    verdict: Verdict,
    runs: Iterable[CanaryRun],
    *,
    degrading: float,
    uplink_up: bool,
    fails_elsewhere: Callable[[str], int],
) -> Diagnosis:
    """Where the fault of one site lies.

    `runs` are the latest run of each canary and route, `degrading` is the score under which a site is not normal, and
    `fails_elsewhere` says on how many other sites a route fails as well.
    """
    now = verdict.at
    fresh = [run for run in runs if now - run.at <= FRESH_SECONDS]
    failed = failures(verdict, fresh)
    failing = [route for route, share in failed.items() if share >= FAILING]
    cut_off = bool(fresh) and all(run.classification.reason in CONNECTION for run in fresh)
    if not uplink_up and (failing or cut_off) and not _refused(verdict):
        return Diagnosis.SELF
    if failing:
        elsewhere = fails_elsewhere(failing[0]) if uplink_up and len(failed) == 1 else 0
        return _of_failing(failed, elsewhere)
    if verdict.score < degrading if verdict.score is not None else verdict.state.held:
        return Diagnosis.SITE
    if any(run.decoy_suspect for run in fresh):
        return Diagnosis.DECOY
    broken = verdict.parser_score is not None and verdict.parser_score < PARSER
    return Diagnosis.PARSER if broken else Diagnosis.NONE


def _of_failing(failed: Mapping[str, float], elsewhere: int) -> Diagnosis:
    """The routes where others serve, or where the only one fails on other sites too; else the site."""
    others_serve = any(share < SERVING for share in failed.values())
    return Diagnosis.ROUTE if others_serve or elsewhere >= OTHER_SITES else Diagnosis.SITE


def failures(verdict: Verdict, runs: Iterable[CanaryRun] = ()) -> Mapping[str, float]:
    """The share of requests that brought nothing, beyond the site's normal, of each route that something is known of.

    From the present window where it holds enough requests of the route, else from the runs.
    """
    normal = verdict.baseline.rates.refused if verdict.baseline is not None else 0.0
    refused, error = verdict.route_refused, verdict.route_error
    shares = {
        route: refused.get(route, 0.0) + error.get(route, 0.0) - normal
        for route, requests in verdict.route_requests.items()
        if requests >= MIN_REQUESTS
    }
    seen: dict[str, list[bool]] = {}
    for run in runs:
        if run.route not in shares:
            seen.setdefault(run.route, []).append(run.classification.outcome is not Outcome.OK)
    if seen:
        shares.update({route: sum(bad) / len(bad) for route, bad in seen.items()})
    return shares


def _refused(verdict: Verdict) -> bool:
    """Whether the site refuses more than it normally does: it answers, so that it cannot be our uplink."""
    if verdict.window is None:
        return False
    normal = verdict.baseline.rates.refused if verdict.baseline is not None else 0.0
    return verdict.window.rates.refused - normal >= FAILING
