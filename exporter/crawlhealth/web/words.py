"""Figures, times and verdicts in words, as the pages for people say them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from crawlhealth.checks import Check, ValueSpec
from crawlhealth.model import CanaryRun
from crawlhealth.verdict import Band, Diagnosis, OverrideKind, Penalty, Signal, Unknown, Verdict, Window

UNKNOWN: Mapping[Unknown, str] = {
    Unknown.NOT_ENOUGH_REQUESTS: "No score: not enough requests in the window.",
    Unknown.NO_BASELINE: (
        "No score: the site has no normal of its own yet."
        " Import its history, or wait for 24 hours with ten requests each."
    ),
    Unknown.MOSTLY_ERRORS: "No score: most requests end in errors, which say nothing of how the site treats us.",
    Unknown.BASELINE_REFUSED: (
        "No score: all that is known of the site is that it refuses more than it serves. A person decides whether that"
        " is its normal."
    ),
}
BAND: Mapping[Band, str] = {
    Band.NORMAL: "The site serves as it normally does.",
    Band.DEGRADING: "The site serves worse than its own normal.",
    Band.RESISTING: "The site turns the crawler away.",
    Band.UNKNOWN: "It cannot be said yet how the site behaves.",
}
CONSEQUENCE: Mapping[Band, str] = {
    Band.DEGRADING: "Crawlers are told to slow down.",
    Band.RESISTING: (
        "Crawlers are told to stop, canaries go on. A person decides what comes next: slow down for longer, read the"
        " site's terms, ask for an API, or leave it."
    ),
}
DIAGNOSIS: Mapping[Diagnosis, str] = {
    Diagnosis.NONE: "",
    Diagnosis.SITE: "It is the site: every route with traffic shows it.",
    Diagnosis.ROUTE: "It is the route: some routes fail while others are served.",
    Diagnosis.PARSER: "It is our own extraction: pages are served, but values are not found on them.",
    Diagnosis.DECOY: "Pages look normal and carry wrong values: decoys are suspected.",
    Diagnosis.SELF: "It is our own connection: several sites fail at once, and none of them is to blame.",
}
HELD = "Held: too little has come in since to judge it anew, and silence is not recovery."
EASED = "Held: its canaries are served again, so crawlers return step by step until their requests are judged."
OVERRIDE: Mapping[OverrideKind, str] = {
    OverrideKind.PAUSE: "paused by a person",
    OverrideKind.RESUME: "resumed by a person",
    OverrideKind.LIMIT: "limited by a person",
}


def moment(at: float) -> str:
    """A time to the second, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def span(seconds: float) -> str:
    """A duration in its largest unit, with one decimal where a whole number would say too little."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size * (2 if unit == "d" else 1):
            count = seconds / size
            return (
                f"{count:.1f}".removesuffix(".0") + f" {unit}"
                if count < 10 and unit != "min"
                else f"{count:.0f} {unit}"
            )
    return f"{max(0.0, seconds):.0f} s"


def ago(at: float, now: float) -> str:
    """How long ago something was."""
    return f"{span(now - at)} ago"


def share(value: float | None) -> str:
    """A share of requests in percent; a dash where it is not known."""
    return "–" if value is None else f"{value:.1%}"


def seconds(value: float | None) -> str:
    """A latency; a dash where it is not known."""
    if value is None:
        return "–"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def name(signal: Signal) -> str:
    """A signal as a person reads it."""
    return "refused, all kinds" if signal is Signal.REFUSED_CAP else signal.value.replace("_", " ")


def score(value: int | None) -> str:
    """A score of 100, or that there is none."""
    return "no score" if value is None else str(value)


def size(count: float) -> str:
    """A number of bytes."""
    for step, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= step:
            return f"{count / step:.3g} {unit}"
    return f"{count:.3g} B"


def explain(penalty: Penalty) -> str:
    """One reason: what, now against normal, and its points."""
    show = seconds if penalty.signal is Signal.LATENCY else share
    values = f"{show(penalty.now)} now, {show(penalty.baseline)} normally"
    unit = "point" if round(penalty.points) == 1 else "points"
    return f"{name(penalty.signal)}: {values} (−{penalty.points:.0f}\u00a0{unit})"


def headline(verdict: Verdict) -> tuple[str, ...]:
    """What the verdict comes to, in sentences, the most important first."""
    said = [BAND[verdict.band]]
    if verdict.band is Band.NORMAL and verdict.reasons:
        said = ["The site serves nearly as it normally does. What differs:"]
    if verdict.override is None and verdict.band in CONSEQUENCE:
        said = [f"{said[0]} {CONSEQUENCE[verdict.band]}"]
    if verdict.unknown is not None:
        said = [UNKNOWN[verdict.unknown]] if verdict.band is Band.UNKNOWN else [*said, UNKNOWN[verdict.unknown]]
    if verdict.state.held:
        said.append(HELD if verdict.state.eased_at is None else EASED)
    if DIAGNOSIS[verdict.diagnosis]:
        said.append(DIAGNOSIS[verdict.diagnosis])
    if verdict.maintenance:
        said.append("Planned maintenance: the band stands still and nobody is called.")
    return tuple(said)


def basis(window: Window) -> str:
    """What a verdict was read from."""
    return f"{window.requests:,.0f} recent requests, half-life {span(window.seconds)}"


def state(run: CanaryRun) -> str:
    """What came of a canary, in a word or two."""
    if run.success:
        return "ok"
    if run.decoy_suspect:
        return "wrong value"
    if run.ok:
        return "value missing" if any(value.missing and not value.ok for value in run.values) else "changed"
    return run.classification.outcome.value.replace("_", " ")


def expected(spec: ValueSpec) -> str:
    """What is expected of a value."""
    parts = [_check(check) for check in spec.checks]
    if spec.same_on:
        parts.append(f"the same on {', '.join(spec.same_on)}")
    return ", ".join(parts) or "a value"


def _check(check: Check) -> str:
    argument, name = check.argument, check.name.replace("_", " ")
    if argument is True:
        return name
    if isinstance(argument, Mapping):
        return f"{name} {' and '.join(_bound(key, value) for key, value in argument.items() if key != 'decimal')}"
    if isinstance(argument, list | tuple):
        return f"{name} {', '.join(map(str, argument))}"
    return f"{name} {argument}"


def _bound(key: object, value: object) -> str:
    return f"within {value} %" if key == "within_percent" else f"{str(key).replace('_', ' ')} {value}"
