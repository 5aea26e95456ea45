"""Canary runs and refusals with what proves them, as rows of text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from crawlhealth.checks import ValueSpec
from crawlhealth.config import Canary
from crawlhealth.history import StoredRun
from crawlhealth.model import Evidence, Refusal, ValueResult
from crawlhealth.web import words


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRow:
    """One expected value of a canary, and what was seen."""

    name: str
    expected: str
    seen: str
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView:
    """What proves an outcome: (name, text) facts, and an excerpt."""

    facts: tuple[tuple[str, str], ...]
    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryView:
    """One canary through one route; `refused` says that its page was not served, so that there is evidence."""

    name: str
    route: str
    url: str
    state: str
    when: str
    last_success: str
    reason: str
    refused: bool
    values: tuple[ValueRow, ...]
    evidence: EvidenceView

    @property
    def ok(self) -> bool:
        """Whether all was right."""
        return self.state == "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalView:
    """One refused request."""

    when: str
    ago: str
    who: str
    outcome: str
    reason: str
    evidence: EvidenceView


def canary_view(canary: Canary, stored: StoredRun, now: float, *, late: bool | None = None) -> CanaryView:
    """The latest run of a canary through one route; `late` when a pushed one should have arrived again."""
    run = stored.run
    specs = {spec.name: spec for spec in canary.expect}
    return CanaryView(
        name=run.canary,
        route=run.route,
        url=canary.url,
        state=f"{words.state(run)}, late" if late else words.state(run),
        when=words.ago(run.at, now),
        last_success="never" if stored.last_success is None else words.ago(stored.last_success, now),
        reason=run.classification.reason.value.replace("_", " "),
        refused=not run.ok,
        values=tuple(_values(specs, run.values)),
        evidence=_evidence(run.classification.evidence),
    )


def _values(specs: Mapping[str, ValueSpec], values: Iterable[ValueResult]) -> Iterable[ValueRow]:
    for value in sorted(values, key=lambda value: value.ok):
        spec = specs.get(value.name)
        failures = [f"{failure.check}: {failure.expected}" for failure in value.failures]
        seen = "(nothing found)" if value.seen is None else value.seen or "(empty)"
        yield ValueRow(
            name=value.name,
            expected=words.expected(spec) if spec is not None else ", ".join(failures),
            seen=f"{seen} ({value.count} matches)" if value.count > 1 else seen,
            ok=value.ok,
        )


def refusal_view(refusal: Refusal, now: float) -> RefusalView:
    """One refused request."""
    who = f"canary {refusal.canary}" if refusal.canary else refusal.source.value
    return RefusalView(
        when=words.moment(refusal.at),
        ago=words.ago(refusal.at, now),
        who=f"{who} through {refusal.route}",
        outcome=refusal.outcome.value.replace("_", " "),
        reason=refusal.reason.value.replace("_", " "),
        evidence=_evidence(refusal.evidence, refusal.url),
    )


def _evidence(evidence: Evidence, url: str = "") -> EvidenceView:
    decided = evidence.marker
    if decided and evidence.where and evidence.where not in decided:
        decided = f"{decided} in {evidence.where}"
    facts = (
        ("status", "" if evidence.status is None else str(evidence.status)),
        ("decided by", decided),
        ("asked for", url),
        ("final address", evidence.final_url),
        ("title", evidence.title),
        ("detail", evidence.detail),
        ("vendors present", ", ".join(evidence.vendors)),
        *evidence.headers,
    )
    return EvidenceView(facts=tuple(fact for fact in facts if fact[1]), excerpt=evidence.excerpt)
