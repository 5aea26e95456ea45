"""Value checks, one function each, and the CHECKS table. Pure: what was seen on a page against what was expected."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from crawlhealth.checks.numbers import is_only_number, number
from crawlhealth.checks.selectors import Selector, compiled_pattern, pattern_problem
from crawlhealth.checks.tolerance import tolerance
from crawlhealth.model import CheckFailure, ValueResult

SEEN_CHARACTERS: Final = 500
"""How much of a text that was found is kept."""
PLACEHOLDERS: Final = frozenset(
    {"", "-", "--", "—", "–", "...", "…", "?", "n/a", "na", "nan", "nil", "none", "null", "tba", "tbd", "undefined"}
)
"""Texts that stand where a value should: a field filled with one is as good as empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One row of CHECKS with its argument as written, e.g. ("equals", "A Light in the Attic")."""

    name: str
    argument: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSpec:
    """One expected value of a page: where it stands, an optional pattern on its text, and the checks on it."""

    name: str
    selector: Selector
    regex: str | None = None
    checks: tuple[Check, ...] = ()
    required: bool = False
    decimal: Literal[".", ","] | None = None
    same_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a selector and pattern found on a page; made by `see`.

    `text` is the first match that is not blank (else the first), white space collapsed; None if nothing matched.
    `count` is how many matched. `element` says that the match is an element and not a text or an attribute: it may
    be present without any text. `structure` is the sketch of what it is built like, None unless asked for.
    """

    text: str | None
    number: float | None
    count: int
    element: bool = False
    structure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckKind:
    """One kind of check.

    `problem` says what is wrong with an argument as written and what to write, None when it is fine. `misfit` is
    (expected, seen) when the check does not hold, else None; it is only called with arguments without a problem.
    """

    problem: Callable[[object], str | None]
    misfit: Callable[[Seen, object], tuple[str, str] | None]


def see(spec: ValueSpec, texts: Iterable[str], *, element: bool = False, value: float | None = None) -> Seen:
    """What the matches of `spec.selector`, in page order, come to.

    `value` is the number itself where the page has one as such (JSON): it needs no parsing of text.
    """
    collapsed = [" ".join(text.split()) for text in texts]
    text = next((text for text in collapsed if text), collapsed[0] if collapsed else None)
    if text is not None and spec.regex is not None:
        match = compiled_pattern(spec.regex).search(text)
        text = None if match is None else (match.group(1) or "" if match.re.groups else match.group(0)).strip()
        value, element = None, False
    found = number(text, spec.decimal) if value is None else value
    return Seen(text=text, number=found, count=len(collapsed), element=element)


def judge(spec: ValueSpec, seen: Seen) -> ValueResult:
    """One expected value against what was seen: every check is tried, and every one that fails is told.

    A value that is not there, blank or a placeholder is missing, unless a check asks for just that.
    """
    failures = []
    for check in spec.checks:
        misfit = CHECKS[check.name].misfit(seen, check.argument)
        if misfit is not None:
            failures.append(CheckFailure(check=check.name, expected=misfit[0], seen=misfit[1], where=_where(spec)))
    blank = _blank(seen)
    settled = any(check.name in _SETTLES_BLANK for check in spec.checks) or (
        seen.text is None and any(check.name == "count" for check in spec.checks)
    )
    missing = blank and (bool(failures) or not settled)
    if missing and not failures:
        failures.append(CheckFailure(check="present", expected="a value", seen=_show(seen), where=_where(spec)))
    return ValueResult(
        name=spec.name,
        ok=not failures,
        missing=missing,
        required=spec.required,
        seen=None if seen.text is None else shorten(seen.text),
        number=None if _only_there(spec, seen) else seen.number,
        count=seen.count,
        failures=tuple(failures),
        structure=seen.structure,
    )


def _only_there(spec: ValueSpec, seen: Seen) -> bool:
    """Whether whole elements are asked for and nothing that they say: digits in all their text are no number then."""
    asked = {check.name for check in spec.checks}
    return seen.element and bool(asked) and asked <= _OF_ELEMENTS and not spec.same_on


def agree(results: Mapping[str, ValueResult]) -> Mapping[str, ValueResult]:
    """The same value as each route saw it, held against one another (`same_on`).

    Give only routes whose page was ok. Missing values take no part. Texts that are numbers are compared as numbers,
    others as text. A minority is wrong; without a majority (more than half) all are.
    """
    keys = {route: _agreement_key(result) for route, result in results.items() if not result.missing}
    if len(set(keys.values())) <= 1:
        return dict(results)
    key, votes = Counter(keys.values()).most_common(1)[0]
    majority = votes * 2 > len(keys)
    judged = dict(results)
    for route, own in keys.items():
        if majority and own == key:
            continue
        judged[route] = _disagreeing(results, route, [other for other in keys if keys[other] == key and majority], keys)
    return judged


def shorten(text: str) -> str:
    """A text as it is kept and shown: its beginning, and how long it was."""
    return text if len(text) <= SEEN_CHARACTERS else f"{text[:SEEN_CHARACTERS]}… ({len(text)} characters)"


def _disagreeing(
    results: Mapping[str, ValueResult], route: str, right: list[str], keys: Mapping[str, object]
) -> ValueResult:
    result = results[route]
    others = [other for other in keys if other != route and keys[other] != keys[route]]
    if right:
        expected = f"{results[right[0]].seen!r} as on {', '.join(right)}"
    else:
        expected = "one value, but " + ", ".join(f"{other}: {results[other].seen!r}" for other in others)
    failure = CheckFailure(check="same_on", expected=expected, seen=repr(result.seen), where=f"route {route}")
    return replace(result, ok=False, failures=(*result.failures, failure))


def _agreement_key(result: ValueResult) -> object:
    if result.number is not None and result.seen is not None and is_only_number(result.seen):
        return float(f"{result.number:.9g}")
    return result.seen


def _where(spec: ValueSpec) -> str:
    where = f"{spec.selector.kind} {spec.selector.expression}"
    return where if spec.regex is None else f"{where}, regex {spec.regex}"


def _blank(seen: Seen) -> bool:
    if seen.element and seen.count and not seen.text:
        return False
    return seen.text is None or seen.text.casefold() in PLACEHOLDERS or _is_template(seen.text)


def _is_template(text: str) -> bool:
    return (text.startswith("{{") and text.endswith("}}")) or (text.startswith("${") and text.endswith("}"))


def _show(seen: Seen) -> str:
    return "nothing" if seen.text is None else repr(shorten(seen.text))


# The checks


def _text_problem(argument: object) -> str | None:
    if isinstance(argument, str):
        return None
    if isinstance(argument, int | float) and not isinstance(argument, bool):
        return f'compares text: write "{argument}" in quotes, or number: {{equals: {argument}}}'
    return "compares text: write one text in quotes"


def _texts_problem(argument: object) -> str | None:
    if isinstance(argument, list | tuple) and argument and all(isinstance(text, str) for text in argument):
        return None
    return 'needs a list of texts: write ["one", "another"]'


def _pattern_argument_problem(argument: object) -> str | None:
    return pattern_problem(argument) if isinstance(argument, str) else "needs a pattern: write one text in quotes"


def _true_problem(argument: object) -> str | None:
    return None if argument is True else "takes only true: leave it out, or write its opposite (present, absent)"


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _bounds_problem(argument: object, known: tuple[str, ...], example: str) -> str | None:
    if not isinstance(argument, Mapping):
        return f"needs a mapping: write {example}"
    for key in argument:
        if key not in known:
            return f"does not know {key!r}: write one of {', '.join(known)}"
    for key, value in argument.items():
        if key == "decimal":
            if value not in (".", ","):
                return 'decimal is "." or ",", in quotes'
        elif not _finite(value):
            return f"{key} needs a number: write {example}"
    low, high = argument.get("at_least"), argument.get("at_most")
    if low is not None and high is not None and low > high:
        return f"can never hold: at_least {low} is over at_most {high}"
    return None


def _number_problem(argument: object) -> str | None:
    known = ("equals", "at_least", "at_most", "within_percent", "decimal")
    problem = _bounds_problem(argument, known, "{equals: 51.77}, {at_least: 1} or {equals: 100, within_percent: 5}")
    if problem is None and isinstance(argument, Mapping) and "within_percent" in argument:
        if "equals" not in argument:
            return "within_percent needs the value it is near: write {equals: 100, within_percent: 5}"
        if argument["within_percent"] < 0:
            return "within_percent cannot be negative"
    return problem


def _count_problem(argument: object) -> str | None:
    example = "{equals: 20} or {at_least: 1}"
    problem = _bounds_problem(argument, ("equals", "at_least", "at_most"), example)
    if problem is None and isinstance(argument, Mapping):
        if not argument:
            return f"says nothing: write {example}"
        if any(not isinstance(value, int) or value < 0 for value in argument.values()):
            return f"counts whole things: write {example}"
    return problem


def _unchanged_problem(argument: object) -> str | None:
    try:
        tolerance(argument)
    except ValueError as error:
        return str(error)
    return None


def _equals(seen: Seen, argument: object) -> tuple[str, str] | None:
    return None if seen.text == " ".join(str(argument).split()) else (repr(argument), _show(seen))


def _one_of(seen: Seen, argument: object) -> tuple[str, str] | None:
    assert isinstance(argument, list | tuple)
    if any(seen.text == " ".join(text.split()) for text in argument):
        return None
    return "one of " + ", ".join(map(repr, argument)), _show(seen)


def _matches(seen: Seen, argument: object) -> tuple[str, str] | None:
    if seen.text is not None and compiled_pattern(str(argument)).search(seen.text):
        return None
    return f"a text matching {argument!r}", _show(seen)


def _beyond(value: float, argument: Mapping[str, float]) -> bool:
    equals, near = argument.get("equals"), argument.get("within_percent", 0.0)
    if equals is not None and not math.isclose(value, equals, rel_tol=1e-9, abs_tol=abs(equals) * near / 100):
        return True
    return not argument.get("at_least", -math.inf) <= value <= argument.get("at_most", math.inf)


def _bounds(argument: Mapping[str, float], what: str) -> str:
    said = [f"{key} {value:.15g}" for key, value in argument.items() if key != "decimal"]
    return f"{what}: {', '.join(said).replace('_', ' ') or 'any'}"


def _number(seen: Seen, argument: object) -> tuple[str, str] | None:
    assert isinstance(argument, Mapping)
    if seen.number is not None and not _beyond(seen.number, argument):
        return None
    shown = _show(seen) if seen.number is None else f"{seen.number:.15g} ({_show(seen)})"
    return _bounds(argument, "number"), shown


def _count(seen: Seen, argument: object) -> tuple[str, str] | None:
    assert isinstance(argument, Mapping)
    return (_bounds(argument, "count"), str(seen.count)) if _beyond(seen.count, argument) else None


def _present(seen: Seen, _argument: object) -> tuple[str, str] | None:
    return ("a value", _show(seen)) if _blank(seen) else None


def _absent(seen: Seen, _argument: object) -> tuple[str, str] | None:
    there = seen.text is not None and (seen.element or bool(seen.text))
    return ("nothing", _show(seen)) if there else None


def _unchanged(seen: Seen, _argument: object) -> tuple[str, str] | None:
    """Only that there is a structure; it is held against the first one where that is known."""
    return ("an element with a structure", _show(seen)) if seen.structure is None else None


CHECKS: Final[Mapping[str, CheckKind]] = MappingProxyType(
    {
        "equals": CheckKind(problem=_text_problem, misfit=_equals),
        "one_of": CheckKind(problem=_texts_problem, misfit=_one_of),
        "matches": CheckKind(problem=_pattern_argument_problem, misfit=_matches),
        "number": CheckKind(problem=_number_problem, misfit=_number),
        "count": CheckKind(problem=_count_problem, misfit=_count),
        "present": CheckKind(problem=_true_problem, misfit=_present),
        "absent": CheckKind(problem=_true_problem, misfit=_absent),
        "unchanged": CheckKind(problem=_unchanged_problem, misfit=_unchanged),
    }
)
"""Every check that may be written on a value."""
_SETTLES_BLANK: Final = frozenset({"equals", "one_of", "matches", "number", "absent"})
"""Checks that say themselves what a blank text means."""
_OF_ELEMENTS: Final = frozenset({"count", "present", "absent", "unchanged"})
"""Checks that ask for elements, whatever they say."""
