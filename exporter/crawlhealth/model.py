"""The nouns of crawlhealth: what passes between modules, frozen and slotted.

Times are unix seconds (UTC), durations are seconds, sizes are bytes. Missing data is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from crawlhealth.outcome import Outcome, Reason, Source


class Phase(StrEnum):
    """The parts of one fetch, in order; a phase that was not reached has no value."""

    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    FIRST_BYTE = "first_byte"
    TRANSFER = "transfer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An HTTP answer as classification needs it.

    `headers` has lower-case names, repeated ones joined by ", ". `body` has its content coding removed.
    `redirects` are the absolute targets followed, in order; `final_url` is the last of them, or `url`.
    """

    status: int
    url: str
    final_url: str
    headers: Mapping[str, str]
    body: bytes = b""
    redirects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a person needs to believe an outcome. Text from pages is hostile: escape it where it is shown."""

    status: int | None = None
    final_url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    title: str = ""
    marker: str = ""
    where: str = ""
    excerpt: str = ""
    vendors: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """What came of one request, why, and what proves it."""

    outcome: Outcome
    reason: Reason
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What came of one request, or of `count` equal ones.

    `seconds` is the mean of one request and counts as latency only when the outcome is ok; bytes, retries,
    credits and records are totals over `count`. `extracted` is None when nothing was expected of the page.
    """

    site: str
    route: str
    source: Source
    outcome: Outcome
    reason: Reason
    at: float
    count: int = 1
    seconds: float | None = None
    bytes: int = 0
    retries: int = 0
    credits: float = 0.0
    records_valid: int = 0
    records_invalid: int = 0
    extracted: bool | None = None
    page_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFailure:
    """One check that did not hold: what was expected, what was seen, and where."""

    check: str
    expected: str
    seen: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """What a part of a page was built like (see `crawlhealth.sketch`), and when."""

    sketch: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueResult:
    """One expected value of a page: found or missing, and whether every check on it held.

    `seen` is the text found (shortened), `number` what it means as a number, `count` how many elements matched. Of a
    value that must be `unchanged`, `structure` is the sketch of what was found, `reference` what it was first.
    """

    name: str
    ok: bool
    missing: bool
    required: bool = False
    seen: str | None = None
    number: float | None = None
    count: int = 0
    failures: tuple[CheckFailure, ...] = ()
    structure: str | None = None
    reference: Structure | None = None

    @property
    def wrong(self) -> bool:
        """Whether it was found and is not what it should be. Another structure alone is a redesign, no wrong value."""
        return not self.ok and not self.missing and any(failure.check != "unchanged" for failure in self.failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRun:
    """One canary through one route, fetched, classified and checked.

    `values` is empty unless the page was read. `phases` has only phases that were reached. `not_after` maps a
    TLS host to the end of its certificate.
    """

    site: str
    canary: str
    route: str
    at: float
    classification: Classification
    seconds: float | None = None
    bytes: int = 0
    phases: Mapping[Phase, float] = field(default_factory=dict)
    values: tuple[ValueResult, ...] = ()
    not_after: Mapping[str, float] = field(default_factory=dict)
    retry_after: float | None = None
    redirects: tuple[str, ...] = ()
    address: str = ""
    page_type: str = ""

    @property
    def ok(self) -> bool:
        """Whether the page was served as content."""
        return self.classification.outcome is Outcome.OK

    @property
    def success(self) -> bool:
        """Whether the page was served and every value on it was right."""
        return self.ok and all(value.ok for value in self.values)

    @property
    def decoy_suspect(self) -> bool:
        """Whether the page was served as content and yet a value that was found is wrong."""
        return self.ok and any(value.wrong for value in self.values)

    @property
    def extracted(self) -> bool | None:
        """Whether extraction worked on a served page; None where nothing was expected or served."""
        if not self.ok or not self.values:
            return None
        if any(value.required and value.missing for value in self.values):
            return False
        return not all(value.missing for value in self.values)

    def observation(self) -> Observation:
        """The run as one observation of its site."""
        return Observation(
            site=self.site,
            route=self.route,
            source=Source.CANARY,
            outcome=self.classification.outcome,
            reason=self.classification.reason,
            at=self.at,
            seconds=self.seconds,
            bytes=self.bytes,
            extracted=self.extracted,
            page_type=self.page_type,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One refused request with what proves it, for people. Its text comes from pages: hostile.

    `canary` and `url` are empty where they are not known.
    """

    site: str
    route: str
    source: Source
    at: float
    outcome: Outcome
    reason: Reason
    evidence: Evidence
    canary: str = ""
    url: str = ""
