"""Value checks, one function each, and the CHECKS table. Pure: what was seen on a page against what was expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Where a value stands: exactly one of css, xpath, jmespath, jsonld."""

    kind: Literal["css", "xpath", "jmespath", "jsonld"]
    expression: str


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
    """What a selector and pattern found on a page. `text` is the first match, white space collapsed, None if none."""

    text: str | None
    number: float | None
    count: int
