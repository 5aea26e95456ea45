"""Where a value stands on a page, and whether that can be read: selectors and patterns as the user writes them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import jmespath
import parsel
import re2
from jmespath.exceptions import ArityError, JMESPathError, UnknownFunctionError

PATTERN_MEMORY: Final = 8 << 20
"""Bytes that one compiled pattern may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Where a value stands: exactly one of css, xpath, jmespath, jsonld."""

    kind: Literal["css", "xpath", "jmespath", "jsonld"]
    expression: str


def selector_problem(selector: Selector) -> str | None:
    """What keeps a selector from compiling, None if nothing does."""
    if not selector.expression.strip():
        return f"the {selector.kind} selector is empty"
    try:
        if selector.kind in ("css", "xpath"):
            page = parsel.Selector(text="<html><body><p>x</p></body></html>", type="html")
            page.css(selector.expression) if selector.kind == "css" else page.xpath(selector.expression)
        else:
            _try_jmespath(selector.expression)
    except Exception as error:  # noqa: BLE001 - cssselect, lxml and jmespath raise unrelated families, all meaning "no"
        reason = " ".join(str(error).split()) or type(error).__name__
        return f"the {selector.kind} selector does not compile: {reason[:300]}"
    return None


def pattern_problem(regex: str) -> str | None:
    """What keeps an RE2 pattern from compiling, None if nothing does."""
    try:
        compiled_pattern(regex)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        return f"the pattern does not compile: {reason} (RE2 has no look-around and no back-references)"
    return None


@lru_cache(maxsize=4096)
def compiled_pattern(regex: str) -> re2._Regexp[str]:
    """The RE2 pattern, compiled within a memory bound; re2.error if it does not compile."""
    options = re2.Options()
    options.max_mem = PATTERN_MEMORY
    options.log_errors = False
    return re2.compile(regex, options)


def _try_jmespath(expression: str) -> None:
    compiled = jmespath.compile(expression)
    try:
        compiled.search({})
    except (UnknownFunctionError, ArityError):
        raise
    except JMESPathError:
        pass  # a function that does not like the empty page may well like a real one
