"""Everything that a site's page shows, as rows of text: what the template needs and no more. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from crawlhealth import labels, stats
from crawlhealth.collector import Exposition
from crawlhealth.incident import Incident
from crawlhealth.model import Refusal
from crawlhealth.tally import Slot, Tally
from crawlhealth.verdict import Accepted, Advice, Band, Cost, Override, Rates, Signal, Verdict
from crawlhealth.web import words
from crawlhealth.web.acceptview import AcceptView, accept_view
from crawlhealth.web.chart import Chart, draw
from crawlhealth.web.incidentview import IncidentView, incident_view
from crawlhealth.web.runview import CanaryView, RefusalView, canary_view, refusal_view

DAY = 86_400.0
HOUR = 3_600.0
PAGE_SPAN = 14 * DAY
"""How far back a page shows its site."""
PAGE_REFUSALS = 20
"""How many refusals a page shows."""
PAGE_INCIDENTS = 10
"""How many incidents a page shows."""
SHORTEST = 120.0
"""The chart of a young history spans at least this."""

_SHARES = (Signal.HARD_BLOCK, Signal.CHALLENGE, Signal.SOFT_BLOCK)
_FULL_BAR = 0.25
"""Bars of shares end here, or at the largest share in the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePast:
    """What the history knows of one site."""

    verdicts: Sequence[Verdict] = ()
    slots: Sequence[Slot] = ()
    refusals: Sequence[Refusal] = ()
    incidents: Sequence[Incident] = ()
    accepted: Sequence[tuple[Accepted, float | None]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalRow:
    """One signal, now beside normal. `bar` and `mark` are percent of a bar's width, None where there is no bar."""

    name: str
    now: str
    normal: str
    points: str
    bar: float | None = None
    mark: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRow:
    """One route from one source in the last stretch."""

    route: str
    source: str
    requests: str
    served: str
    refused: str
    error: str
    p95: str
    bad: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteView:
    """The page of one site. `path` is its name as a part of addresses; `needs_token` says that posts need one."""

    name: str
    path: str
    needs_token: bool = False
    band: str = Band.UNKNOWN.value
    score: str = "no score"
    parser_score: str = "–"
    since: str = ""
    window: str = ""
    baseline: str = ""
    headline: tuple[str, ...] = ("This site has not been judged yet.",)
    reasons: tuple[str, ...] = ()
    advice: tuple[tuple[str, str], ...] = ()
    override: str = ""
    signals: tuple[SignalRow, ...] = ()
    cost: tuple[SignalRow, ...] = ()
    routes: tuple[RouteRow, ...] = ()
    routes_span: str = ""
    canaries: tuple[CanaryView, ...] = ()
    refusals: tuple[RefusalView, ...] = ()
    incidents: tuple[IncidentView, ...] = ()
    accepting: AcceptView = field(default_factory=AcceptView)
    charts: tuple[Chart, ...] = field(default=())

    @property
    def right_reasons(self) -> tuple[tuple[str, str], ...]:
        """What the first reason of an incident can have been, as values of a form and in words."""
        return tuple((signal.value, words.name(signal)) for signal in labels.REASONS)

    @property
    def failing(self) -> tuple[CanaryView, ...]:
        """The canaries that are not well."""
        return tuple(canary for canary in self.canaries if not canary.ok)

    @property
    def passing(self) -> tuple[CanaryView, ...]:
        """The canaries that are."""
        return tuple(canary for canary in self.canaries if canary.ok)


def view(site: str, exposition: Exposition, past: SitePast) -> SiteView:
    """The page of a configured site at the exposition's moment."""
    now = exposition.now
    verdict = next((verdict for verdict in exposition.verdicts if verdict.site == site), None)
    span, routes = _routes(past.slots, now)
    canaries = [
        canary_view(canary, stored, now, late=exposition.late(canary, stored.run.route))
        for canary, stored in exposition.stored_runs()
        if canary.site == site
    ]
    page = SiteView(
        name=site,
        path=quote(site, safe=""),
        needs_token=bool(exposition.config.push.tokens),
        routes=routes,
        routes_span=span,
        canaries=tuple(sorted(canaries, key=lambda row: (row.ok, row.name, row.route))),
        refusals=tuple(refusal_view(refusal, now) for refusal in past.refusals),
        incidents=tuple(incident_view(incident, now) for incident in past.incidents),
        accepting=accept_view(
            verdict, past.incidents, past.accepted, now=now, settings=exposition.config.score.baseline
        ),
        charts=_charts(past, verdict, now),
    )
    return page if verdict is None else _with(page, verdict, now)


def _with(page: SiteView, verdict: Verdict, now: float) -> SiteView:
    """The page with what the verdict says."""
    window, baseline, state = verdict.window, verdict.baseline, verdict.state
    return replace(
        page,
        band=verdict.band.value,
        score=words.score(verdict.score),
        parser_score="–" if verdict.parser_score is None else str(verdict.parser_score),
        since=f"for {words.span(now - state.since)}, since {words.moment(state.since)}" if state.since else "",
        window="" if window is None else words.basis(window),
        baseline="" if baseline is None else f"learnt from {baseline.hours:,} hours",
        headline=words.headline(verdict),
        reasons=tuple(words.explain(penalty) for penalty in verdict.reasons),
        advice=_advice(verdict.advice),
        override=_override(verdict.override),
        signals=_signals(verdict),
        cost=_cost(verdict),
    )


def _charts(past: SitePast, verdict: Verdict | None, now: float) -> tuple[Chart, ...]:
    """The last day, the last two weeks where there is more to show, and less than a day where no score is older."""
    verdicts = [*past.verdicts, *(() if verdict is None else (verdict,))]
    judged = now - min((verdict.at for verdict in verdicts), default=now)
    known = max(judged, now - min((slot.start for slot in past.slots), default=now))
    young = [max(SHORTEST, judged)] if judged < DAY / 2 else []
    spans = [*young, *(span for span in (DAY, PAGE_SPAN) if known > span / 2)]
    return tuple(draw(verdicts, past.slots, since=now - span, now=now) for span in spans)


def _advice(advice: Advice) -> tuple[tuple[str, str], ...]:
    if advice.paused:
        rows = [("concurrency", "0: paused, only canaries go on")]
    else:
        rows = [
            (
                "concurrency",
                "as usual" if advice.concurrency_ratio == 1 else f"{advice.concurrency_ratio:.0%} of the usual",
            ),
            (
                "revisits",
                "as usual" if advice.revisit_multiplier == 1 else f"{advice.revisit_multiplier:.3g}× as far apart",
            ),
        ]
    cost = "as usual" if advice.cost_multiplier == 1 else f"{advice.cost_multiplier:.3g}× the usual"
    return (*rows, ("a served page costs", cost))


def _override(override: Override | None) -> str:
    if override is None:
        return ""
    note = f": {override.note}" if override.note else ""
    limit = f" to {override.concurrency:.0%} of the usual concurrency" if 0 < override.concurrency < 1 else ""
    return f"{words.OVERRIDE[override.kind].capitalize()}{limit} until {words.moment(override.until)}{note}"


def _signals(verdict: Verdict) -> tuple[SignalRow, ...]:
    if verdict.window is None:
        return ()
    rates = verdict.window.rates
    normal = verdict.normal
    points = {penalty.signal: penalty.points for penalty in verdict.penalties}
    points[Signal.REFUSED] = points.get(Signal.REFUSED_CAP, 0.0)
    known = [side.of(s) or 0.0 for side in (rates, normal) if side for s in (*_SHARES, Signal.REFUSED)]
    full = max(_FULL_BAR, *known)
    shown = (*_SHARES, Signal.REFUSED, Signal.LATENCY, Signal.EXTRACTION)
    return tuple(_signal(signal, rates, normal, points.get(signal), full) for signal in shown)


_TITLES = {
    Signal.HARD_BLOCK: "hard blocks",
    Signal.CHALLENGE: "challenges",
    Signal.SOFT_BLOCK: "soft blocks",
    Signal.REFUSED: "refused, all kinds",
    Signal.LATENCY: "latency, p95",
    Signal.EXTRACTION: "extraction failed",
}


def _signal(signal: Signal, rates: Rates, normal: Rates | None, points: float | None, full: float) -> SignalRow:
    show = words.seconds if signal is Signal.LATENCY else words.share
    now, usual = rates.of(signal), normal.of(signal) if normal is not None else None
    barred = signal not in (Signal.LATENCY, Signal.EXTRACTION)
    said = "" if points is None else f"−{points:.1f}" if points >= 0.05 else "0"
    return SignalRow(
        name=_TITLES[signal],
        now=show(now),
        normal=show(usual),
        points="" if signal is Signal.EXTRACTION else said,
        bar=round(100 * (now or 0.0) / full, 1) if barred else None,
        mark=round(100 * (usual or 0.0) / full, 1) if barred and usual is not None else None,
    )


def _cost(verdict: Verdict) -> tuple[SignalRow, ...]:
    now = verdict.window.cost if verdict.window is not None else None
    normal = verdict.baseline.cost if verdict.baseline is not None else None
    if now is None and normal is None:
        return ()
    rows = []
    for name in ("requests", "retries", "bytes", "credits"):
        left, right = _amount(now, name), _amount(normal, name)
        if not {left, right} <= {"–", "0", "0 B"}:
            rows.append(SignalRow(name=name, now=left, normal=right, points=""))
    return tuple(rows)


def _amount(cost: Cost | None, name: str) -> str:
    if cost is None:
        return "–"
    return words.size(cost.bytes) if name == "bytes" else f"{getattr(cost, name):,.4g}"


def _routes(slots: Iterable[Slot], now: float) -> tuple[str, tuple[RouteRow, ...]]:
    """The last hour by route and source; the last day where nothing came in the last hour."""
    slots = list(slots)
    for span in (HOUR, DAY):
        sums: dict[tuple[str, str], Tally] = {}
        for slot in slots:
            if slot.start + slot.seconds > now - span and slot.start <= now:
                sums.setdefault((slot.route, slot.source.value), Tally()).merge(slot.tally)
        rows = tuple(_route(*key, tally) for key, tally in sorted(sums.items()) if tally.requests)
        if rows:
            return f"last {words.span(span)}", rows
    return "", ()


def _route(route: str, source: str, tally: Tally) -> RouteRow:
    count = tally.requests
    return RouteRow(
        route=route,
        source=source,
        requests=f"{count:,}",
        served=words.share(tally.ok / count),
        refused=words.share(tally.refused / count),
        error=words.share(tally.error / count),
        p95=words.seconds(stats.quantile(tally.latency, 0.95)),
        bad=tally.ok / count < 0.5,
    )
