"""The landing page's rows: sites that need a person as cards, all others as lines, and how many of each band. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crawlhealth.collector import Exposition
from crawlhealth.model import CanaryRun
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.verdict import Band, Diagnosis, Verdict
from crawlhealth.web import words

CARDS = 50
LINES = 200
"""At most so many sites are shown each; the rest is found by band and name."""

_ORDER = (Band.RESISTING, Band.DEGRADING, Band.UNKNOWN, Band.NORMAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRow:
    """One site. `problems` are canaries that are not well, in words."""

    name: str
    band: str
    score: str
    parser_score: str
    parser_low: bool
    since: str
    window: str
    advice: str
    headline: tuple[str, ...]
    reasons: tuple[str, ...]
    problems: tuple[str, ...]
    canaries: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The landing page. `hidden` is how many sites matched and are not shown; `counts` are (band, number) of all.

    `share` says which shard this is, where there are some.
    """

    band: str
    part: str
    counts: tuple[tuple[str, int], ...]
    cards: tuple[SiteRow, ...]
    lines: tuple[SiteRow, ...]
    hidden: int
    share: str

    @property
    def total(self) -> int:
        """How many sites are configured."""
        return sum(number for _, number in self.counts)


def overview(exposition: Exposition, *, band: str = "", part: str = "") -> Overview:
    """The sites of a band (all for an unknown one) whose name contains `part`, worst first."""
    verdicts = {verdict.site: verdict for verdict in exposition.verdicts}
    bands = {site: verdicts[site].band if site in verdicts else Band.UNKNOWN for site in exposition.config.sites}
    counts = tuple((each.value, sum(of is each for of in bands.values())) for each in _ORDER)
    band = band if band in [each.value for each in _ORDER] else ""
    runs: dict[str, list[CanaryRun]] = {}
    for run in exposition.runs():
        runs.setdefault(run.site, []).append(run)
    failing = {site for site, of in runs.items() if not all(run.success for run in of)}

    def badness(site: str) -> tuple[int, bool, int, str]:
        verdict = verdicts.get(site)
        score = 101 if verdict is None or verdict.score is None else verdict.score
        return _ORDER.index(bands[site]), site not in failing, score, site

    chosen = [site for site in bands if (not band or bands[site].value == band) and part.lower() in site.lower()]
    chosen.sort(key=badness)
    urgent = [
        site for site in chosen if site in failing or _needs_a_person(verdicts.get(site), exposition.config.score)
    ]
    calm = [site for site in chosen if site not in set(urgent)]

    def row(site: str) -> SiteRow:
        return _row(site, verdicts.get(site), runs.get(site, []), exposition)

    return Overview(
        band=band,
        part=part,
        counts=counts,
        cards=tuple(row(site) for site in urgent[:CARDS]),
        lines=tuple(row(site) for site in calm[:LINES]),
        hidden=max(0, len(urgent) - CARDS) + max(0, len(calm) - LINES),
        share=exposition.config.share,
    )


def _parser_low(verdict: Verdict, settings: ScoreSettings) -> bool:
    return verdict.parser_score is not None and verdict.parser_score < settings.bands.degrading


def _needs_a_person(verdict: Verdict | None, settings: ScoreSettings) -> bool:
    """Whether something is wrong with a site, if only with what is extracted from it."""
    if verdict is None:
        return False
    return (
        _parser_low(verdict, settings)
        or verdict.band in (Band.RESISTING, Band.DEGRADING)
        or verdict.diagnosis is not Diagnosis.NONE
    )


def _row(site: str, verdict: Verdict | None, runs: list[CanaryRun], exposition: Exposition) -> SiteRow:
    now = exposition.now
    well = sum(run.success for run in runs)
    canaries = f"{well} of {len(runs)} ok" if runs else "none"
    problems = tuple(_problems(runs, now))
    if verdict is None:
        return SiteRow(
            name=site, band=Band.UNKNOWN.value, score=words.score(None), parser_score="–", parser_low=False, since="",
            window="", advice="", headline=("Not judged yet.",), reasons=(), problems=problems, canaries=canaries,
        )  # fmt: skip
    window, since = verdict.window, verdict.state.since
    return SiteRow(
        name=site,
        band=verdict.band.value,
        score=words.score(verdict.score),
        parser_score="–" if verdict.parser_score is None else str(verdict.parser_score),
        parser_low=_parser_low(verdict, exposition.config.score),
        since=f"for {words.span(now - since)}" if since else "",
        window="" if window is None else words.basis(window),
        advice=_advice(verdict),
        headline=words.headline(verdict),
        reasons=tuple(words.explain(penalty) for penalty in verdict.reasons),
        problems=problems,
        canaries=canaries,
    )


def _advice(verdict: Verdict) -> str:
    override = verdict.override
    if override is not None:
        return f"{words.OVERRIDE[override.kind]} until {words.moment(override.until)}"
    if verdict.advice.paused:
        return "paused"
    if verdict.advice.concurrency_ratio == 1:
        return ""
    return f"concurrency {verdict.advice.concurrency_ratio:.0%} of the usual"


def _problems(runs: Iterable[CanaryRun], now: float) -> Iterable[str]:
    for run in sorted(runs, key=lambda run: (run.canary, run.route)):
        if run.success:
            continue
        said = f"canary {run.canary} through {run.route}, {words.ago(run.at, now)}: {words.state(run)}"
        wrong = [
            f"{value.name}: expected {failure.expected}, seen {failure.seen}"
            for value in run.values
            for failure in value.failures
        ]
        if not run.ok:
            wrong.insert(0, run.classification.reason.value.replace("_", " "))
        yield f"{said} ({'; '.join(wrong[:3])})" if wrong else said
