"""`expect:` of a canary: values, each with one selector, an optional pattern and any number of checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from crawlhealth.checks import CHECKS, Check, Selector, ValueSpec, pattern_problem, selector_problem
from crawlhealth.configfile.rules import check_name
from crawlhealth.yamlfile.binding import Binder, nearest
from crawlhealth.yamlfile.document import Document, Steps
from crawlhealth.yamlfile.tree import Entries, Node, Scalar, quoted

Kind = Literal["css", "xpath", "jmespath", "jsonld"]
KINDS: Final[tuple[Kind, ...]] = ("css", "xpath", "jmespath", "jsonld")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """One value as written. The checks' arguments are what CHECKS says they are."""

    css: str | None = None
    xpath: str | None = None
    jmespath: str | None = None
    jsonld: str | None = None
    regex: str | None = None
    record: Literal["required", "optional"] = "optional"
    same_on: tuple[str, ...] = ()
    equals: object = None
    one_of: object = None
    matches: object = None
    number: object = None
    count: object = None
    present: object = None
    absent: object = None
    unchanged: object = None


def read_expectations(binder: Binder, canary: Node, routes: tuple[str, ...], steps: Steps) -> tuple[ValueSpec, ...]:
    """The values that the canary at `steps` expects; those with problems are left out, and the problems noted."""
    if not isinstance(canary, Entries) or "expect" not in canary.entries:
        return ()
    document, steps = binder.document, (*steps, "expect")
    values = canary.entries["expect"][1]
    if isinstance(values, Scalar) and values.value is None:
        return ()
    if not isinstance(values, Entries):
        document.report(steps, 'needs names of values: write title: {css: "h1::text", equals: "…"} lines under it')
        return ()
    specs = []
    for name, (_, node) in values.entries.items():
        check_name(document, name, (*steps, name))
        spec = _spec(binder, node, routes, (*steps, name))
        if spec is not None:
            specs.append(spec)
    return tuple(specs)


def _spec(binder: Binder, node: Node, routes: tuple[str, ...], steps: Steps) -> ValueSpec | None:
    document = binder.document
    if not isinstance(node, Entries):
        document.report(steps, 'needs a selector: write {css: "h1::text"}')
        return None
    value = binder.record(node, _Value, steps)
    if value is None:
        return None
    selector = _selector(document, value, steps)
    if value.regex is not None:
        problem = pattern_problem(value.regex)
        if problem is not None:
            document.report((*steps, "regex"), problem)
    checks = _checks(document, value, node, steps)
    _same_on(document, value.same_on, routes, steps)
    if selector is None or not document.sound(*steps):
        return None
    return ValueSpec(
        name=str(steps[-1]),
        selector=selector,
        regex=value.regex,
        checks=checks,
        required=value.record == "required",
        decimal=_decimal(value.number),
        same_on=value.same_on,
    )


def _selector(document: Document, value: _Value, steps: Steps) -> Selector | None:
    written = {kind: getattr(value, kind) for kind in KINDS if getattr(value, kind) is not None}
    if len(written) > 1:
        document.report(steps, f"has {' and '.join(written)}: keep one of them")
    elif not written and document.sound(*steps):
        document.report(steps, f'needs one of {", ".join(KINDS)}: write for instance css: "h1::text"')
    selectors = [Selector(kind=kind, expression=written[kind]) for kind in KINDS if kind in written]
    for selector in selectors:
        problem = selector_problem(selector)
        if problem is not None:
            document.report((*steps, selector.kind), problem)
    return selectors[0] if len(selectors) == 1 else None


def _checks(document: Document, value: _Value, node: Entries, steps: Steps) -> tuple[Check, ...]:
    checks = tuple(Check(name=name, argument=getattr(value, name)) for name in CHECKS if name in node.entries)
    for check in checks:
        problem = CHECKS[check.name].problem(check.argument)
        if problem is not None:
            document.report((*steps, check.name), problem)
    if "unchanged" in node.entries and value.css is not None and "::" in value.css:
        document.report((*steps, "unchanged"), "looks at elements: leave ::text or ::attr() out of the selector")
    if len(checks) > 1 and "absent" in node.entries:
        document.report((*steps, "absent"), "no other check can hold on a value that is absent: keep one")
    return checks


def _same_on(document: Document, same_on: tuple[str, ...], routes: tuple[str, ...], steps: Steps) -> None:
    steps = (*steps, "same_on")
    for number, route in enumerate(same_on):
        if route not in routes:
            message = f"{quoted(route)} is not a route of this canary: {nearest(route, routes)}, or add it to routes"
            document.report((*steps, number), message)
        elif route in same_on[:number]:
            document.report((*steps, number), f"the route {quoted(route)} stands twice: keep one")
    if document.has(*steps) and len(set(same_on)) < 2 and document.sound(*steps):
        document.report(steps, "compares routes with one another: name at least two")


def _decimal(number: object) -> Literal[".", ","] | None:
    written = number.get("decimal") if isinstance(number, Mapping) else None
    return "." if written == "." else "," if written == "," else None
