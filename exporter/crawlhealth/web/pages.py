"""Pages for people. Everything that came from a page or a file is escaped by the templates; nothing is fetched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from crawlhealth import __version__
from crawlhealth.collector import Exposition
from crawlhealth.model import Band, CanaryRun, Penalty, Signal, Unknown, Verdict

_ORDER = {Band.RESISTING: 0, Band.DEGRADING: 1, Band.UNKNOWN: 2, Band.NORMAL: 3}

_UNKNOWN = {
    Unknown.NOT_ENOUGH_REQUESTS: "not enough requests for a score",
    Unknown.NO_BASELINE: "no normal of its own yet (import history, or wait for 24 busy hours)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRow:
    """One canary through one route as the page shows it; `notes` are failed checks and the reason."""

    name: str
    route: str
    state: str
    when: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRow:
    """One site as the page shows it."""

    name: str
    band: str
    held: bool
    score: str
    parser_score: str
    since: str
    reasons: tuple[str, ...]
    window: str
    canaries: tuple[CanaryRow, ...]


def landing_endpoint(exposition: Callable[[], Exposition]) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of the landing page: all sites, worst first."""
    environment = Environment(
        loader=PackageLoader("crawlhealth.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.get_template("landing.html")

    def render() -> str:
        rows = site_rows(exposition())
        return template.render(sites=rows, version=__version__)

    async def landing(_: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(render))

    return landing


def site_rows(exposition: Exposition) -> list[SiteRow]:
    """The rows of the landing page, worst band and score first."""
    verdicts = {verdict.site: verdict for verdict in exposition.verdicts}
    runs: dict[str, list[CanaryRun]] = {}
    for run in exposition.runs():
        runs.setdefault(run.site, []).append(run)

    def badness(site: str) -> tuple[int, int, str]:
        verdict = verdicts.get(site)
        if verdict is None:
            return _ORDER[Band.UNKNOWN], 101, site
        return _ORDER[verdict.band], 101 if verdict.score is None else verdict.score, site

    return [
        _site_row(site, verdicts.get(site), runs.get(site, ()), exposition.now)
        for site in sorted(exposition.config.sites, key=badness)
    ]


def _site_row(site: str, verdict: Verdict | None, runs: Iterable[CanaryRun], now: float) -> SiteRow:
    canaries = tuple(_canary_row(run, now) for run in sorted(runs, key=lambda run: (run.canary, run.route)))
    if verdict is None:
        return SiteRow(
            name=site, band=Band.UNKNOWN, held=False, score="–", parser_score="–", since="", window="",
            reasons=("not judged yet",), canaries=canaries,
        )  # fmt: skip
    reasons = tuple(explain(penalty) for penalty in verdict.reasons)
    if verdict.unknown is not None:
        reasons = (_UNKNOWN[verdict.unknown], *reasons)
    window = verdict.window
    return SiteRow(
        name=site,
        band=verdict.band,
        held=verdict.state.held,
        score="–" if verdict.score is None else str(verdict.score),
        parser_score="–" if verdict.parser_score is None else str(verdict.parser_score),
        since=_moment(verdict.state.since) if verdict.state.since else "",
        reasons=reasons,
        window="" if window is None else f"{window.requests} requests in {_span(window.seconds)}",
        canaries=canaries,
    )


def explain(penalty: Penalty) -> str:
    """One reason in words: what, now against normal, and its points."""
    if penalty.signal is Signal.LATENCY:
        values = f"{penalty.now:.2f} s now, {penalty.baseline:.2f} s normally"
    else:
        values = f"{penalty.now:.1%} now, {penalty.baseline:.1%} normally"
    return f"{penalty.signal.value.replace('_', ' ')}: {values} (−{penalty.points:.0f})"


def _canary_row(run: CanaryRun, now: float) -> CanaryRow:
    state = "ok" if run.success else "wrong value" if run.decoy_suspect else run.classification.outcome.value
    if run.ok and not run.success and not run.decoy_suspect:
        state = "value missing"
    notes = [f"{value.name}: {failure.check} expected {failure.expected}, seen {failure.seen}"
             for value in run.values if not value.ok for failure in value.failures]  # fmt: skip
    if not run.ok:
        evidence = run.classification.evidence
        marker = f" ({evidence.marker} in {evidence.where})" if evidence.marker else ""
        notes.insert(0, f"{run.classification.reason.value}{marker}")
    return CanaryRow(
        name=run.canary,
        route=run.route,
        state=state,
        when=f"{_span(max(0.0, now - run.at))} ago",
        notes=tuple(notes),
    )


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _span(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.0f} s"
