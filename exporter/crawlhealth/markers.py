"""Markers as users write them: patterns on hostile pages, and selectors simple enough to become one. Linear-time."""

from __future__ import annotations

import itertools
import re
from typing import Final

import re2

MARKER_MEMORY: Final = 8 << 20
"""Bytes that one compiled marker may take."""
MAX_CONDITIONS: Final = 3
"""Conditions on one element: attributes come in any order, and every order is a pattern of its own."""

_PART: Final = re.compile(
    r"#(?P<id>[\w-]+)|\.(?P<class>[\w-]+)"
    r"|\[\s*(?P<name>[A-Za-z_:][\w:.-]*)\s*(?:(?P<how>[*^$~]?=)\s*(?P<value>\"[^\"<>]*\"|'[^'<>]*'|[\w./:-]+)\s*)?\]"
)
_TAG: Final = re.compile(r"\*|[A-Za-z][A-Za-z0-9-]*")
_WIDE_SET: Final = re.compile(r"\[[^\]]*[^\x00-\x7f][^\]]*\]|[^\x00-\x7f][?*+{]")


def marker_options(memory: int = MARKER_MEMORY) -> re2.Options:
    """How markers are compiled: on bytes as they are (pages hold invalid UTF-8), blind to the case of ASCII letters."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = memory
    return options


def marker_size(pattern: str) -> int:
    """How large a pattern is once compiled, in instructions. Raises ValueError, saying what keeps it from compiling."""
    if _WIDE_SET.search(pattern):
        raise ValueError("letters beyond ASCII cannot stand in [ ] or be repeated: write (?:ä|ö) instead of [äö]")
    try:
        compiled = re2.compile(pattern.encode(), marker_options())
    except re2.error as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(
            f"the pattern does not compile: {reason} (RE2 has no look-around and no back-references)"
        ) from None
    size: int = compiled.programsize
    return size


def tag_pattern(selector: str) -> str:
    """The pattern on tags that finds what a selector of one element selects. Raises ValueError with the remedy.

    A selector is a tag, `#id`, `.class`, `[name]` and `[name="value"]` (also `*=`, `^=`, `$=`, `~=`), in any
    combination; what depends on other elements cannot be found in linear time on hostile pages.
    """
    example = "write one element, for instance form#gate, div.captcha or script[src*=challenge]"
    text = selector.strip()
    tag = _TAG.match(text)
    position = tag.end() if tag else 0
    conditions: list[str] = []
    classes: list[str] = []
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise ValueError(f"{text[position : position + 20]!r} cannot be read here: {example}")
        if part["class"]:
            classes.append(re.escape(part["class"]))
        else:
            conditions.append(_condition(part))
        position = part.end()
    if not text or (not conditions and not classes and text == "*"):
        raise ValueError(f"selects nothing in particular: {example}")
    if len(conditions) + len(classes) > MAX_CONDITIONS:
        raise ValueError(f"has more than {MAX_CONDITIONS} conditions: leave some out")
    if classes:
        conditions.append(_classes(classes))
    name = re.escape(tag.group()) if tag and tag.group() != "*" else "[a-z][a-z0-9-]*"
    if not conditions:
        return rf"<{name}[\s/>]"
    orders = (r"(?:[^<>]*[\s\"'/])?".join(order) for order in itertools.permutations(conditions))
    return rf"<{name}\s(?:[^<>]*[\s\"'/])?(?:{'|'.join(orders)})"


def _condition(part: re.Match[str]) -> str:
    if part["id"]:
        return _attribute("id", "=", part["id"])
    value = part["value"]
    if value is None:
        return rf"{re.escape(part['name'])}[\s=/>]"
    return _attribute(part["name"], part["how"], value[1:-1] if value[0] in "\"'" else value)


def _classes(names: list[str]) -> str:
    """An attribute with all of these classes, in any order."""
    values = []
    for quote in ('"', "'"):
        rest = rf"[^{quote}<>]*"
        orders = (rf"\s(?:{rest}\s)?".join(order) for order in itertools.permutations(names))
        values.append(rf"{quote}(?:{rest}\s)?(?:{'|'.join(orders)})(?:\s{rest})?{quote}")
    if len(names) == 1:
        values.append(rf"{names[0]}[\s/>]")
    return rf"class\s*=\s*(?:{'|'.join(values)})"


def _attribute(name: str, how: str, value: str) -> str:
    """An attribute with its value in quotes of either kind, or in none."""
    wanted = re.escape(value)
    quoted = "|".join(_inside(how, wanted, rf"[^{quote}<>]*", quote, quote) for quote in ('"', "'"))
    bare = _inside(how, wanted, r"[^\s\"'<>]*", "", r"[\s/>]")
    return rf"{re.escape(name)}\s*=\s*(?:{quoted}|{bare})"


def _inside(how: str, wanted: str, rest: str, opening: str, closing: str) -> str:
    if how == "=":
        return f"{opening}{wanted}{closing}"
    if how == "~=":
        if not opening:
            return f"{wanted}{closing}"
        return rf"{opening}(?:{rest}\s)?{wanted}(?:\s{rest})?{closing}"
    before = "" if how == "^=" else rest
    after = "" if how == "$=" else rest
    return f"{opening}{before}{wanted}{after}{closing}"
