"""Structures: what parts of pages looked like when they were first seen, and whether they still do (`unchanged`)."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from crawlhealth.checks import ValueSpec
from crawlhealth.checks.tolerance import Tolerance, tolerance
from crawlhealth.model import CheckFailure, Structure, ValueResult
from crawlhealth.sketch import likeness, short

Key = tuple[str, str, str]
"""Site, canary, route."""


def allowed(spec: ValueSpec) -> Tolerance | None:
    """What `unchanged` says of a value, None for one without it."""
    return next((tolerance(check.argument) for check in spec.checks if check.name == "unchanged"), None)


class Structures:
    """The first structures by canary, route and value. Thread-safe."""

    def __init__(self, known: Mapping[Key, Mapping[str, Structure]]) -> None:
        self._lock = threading.Lock()
        self._known = {key: dict(structures) for key, structures in known.items()}

    def compare(self, key: Key, specs: Iterable[ValueSpec], values: Iterable[ValueResult]) -> tuple[ValueResult, ...]:
        """The values, each held against the structure that was seen first, where there is one."""
        with self._lock:
            known = dict(self._known.get(key, {}))
        by_name = {spec.name: spec for spec in specs}
        return tuple(_compared(by_name[value.name], value, known.get(value.name)) for value in values)

    def adopt(
        self, key: Key, specs: Iterable[ValueSpec], values: tuple[ValueResult, ...], at: float
    ) -> tuple[ValueResult, ...]:
        """The values of a served page; where all of them are right, structures not known yet are now the first."""
        if not all(value.ok for value in values):
            return values
        wanted = {spec.name for spec in specs if allowed(spec) is not None}
        return tuple(self._adopted(key, value, at) if value.name in wanted else value for value in values)

    def _adopted(self, key: Key, value: ValueResult, at: float) -> ValueResult:
        if value.reference is not None or value.structure is None:
            return value
        first = Structure(sketch=value.structure, at=at)
        with self._lock:
            self._known.setdefault(key, {})[value.name] = first
        return dataclasses.replace(value, reference=first)

    def keep(self, keys: Iterable[Key]) -> None:
        """Forget all others."""
        wanted = set(keys)
        with self._lock:
            for key in [key for key in self._known if key not in wanted]:
                del self._known[key]


def proving(specs: Iterable[ValueSpec], values: Iterable[ValueResult]) -> list[ValueResult]:
    """The values that may prove a page to be the one expected: a structure without a first one says nothing."""
    silent = {spec.name for spec in specs if spec.checks and all(check.name == "unchanged" for check in spec.checks)}
    return [value for value in values if value.name not in silent or value.reference is not None]


def _compared(spec: ValueSpec, value: ValueResult, known: Structure | None) -> ValueResult:
    limits = allowed(spec)
    if limits is None or known is None or (limits.since is not None and known.at < limits.since):
        return value
    value = dataclasses.replace(value, reference=known)
    if value.structure is None:
        return value
    alike = likeness(value.structure, known.sketch)
    if alike * 100 >= 100 - limits.within_percent:
        return value
    first = datetime.fromtimestamp(known.at, UTC).strftime("%Y-%m-%d %H:%M")
    failure = CheckFailure(
        check="unchanged",
        expected=f"at least {100 - limits.within_percent:g}% of the structure of {first} ({short(known.sketch)})",
        seen=f"{alike:.0%} of it ({short(value.structure)})",
        where=f"{spec.selector.kind} {spec.selector.expression}",
    )
    return dataclasses.replace(value, ok=False, failures=(*value.failures, failure))
