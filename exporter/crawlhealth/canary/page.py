"""Reading values off a page with parsel's selectors: unbounded by itself, so run it where it can be killed."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any, Final

import jmespath
import msgspec
import parsel
from lxml import etree
from w3lib.encoding import html_to_unicode

from crawlhealth.canary.skeleton import of_documents, of_elements
from crawlhealth.checks import Seen, ValueSpec, judge, see
from crawlhealth.model import ValueResult
from crawlhealth.sketch import sketch

_TEXT_OF: Final = etree.XPath("string()", smart_strings=False)
_NAMESPACES: Final = {"re": "http://exslt.org/regular-expressions", "set": "http://exslt.org/sets"}
_WRAPPING: Final = re.compile(r"\s*(?:<!--|(?://|/\*)?\s*<!\[CDATA\[(?:\s*\*/)?)?\s*")
"""What hides a script's content from browsers of another age."""
_DEEPEST_GRAPH: Final = 8
_LENIENT: Final = json.JSONDecoder(strict=False)
_compiled_jmespath = lru_cache(maxsize=1024)(jmespath.compile)


class Page:
    """One page, parsed when first asked, as HTML or JSON as the selectors need it.

    `content_type` is the header of that name: its charset comes first, then the page's own word, then a guess.
    """

    def __init__(self, body: bytes, content_type: str) -> None:
        self._body = body
        self._content_type = content_type

    def judge(self, specs: Iterable[ValueSpec]) -> tuple[ValueResult, ...]:
        """Every expected value against what stands on the page."""
        return tuple(judge(spec, self.seen(spec)) for spec in specs)

    def seen(self, spec: ValueSpec) -> Seen:
        """What a selector finds; nothing where it cannot be applied to this page."""
        kind, expression = spec.selector.kind, spec.selector.expression
        if kind in ("css", "xpath"):
            matches = _matches(kind, expression, self._html.root)
            is_element = bool(matches) and isinstance(matches[0], etree._Element)
            seen = see(spec, _texts(matches), element=is_element)
            return _with_structure(spec, seen, of_elements(matches) if is_element else ())
        documents = [self._json] if kind == "jmespath" else self._json_ld
        found = [value for document in documents for value in _search(expression, document)]
        first = next((value for value in found if value is not None), None)
        seen = see(spec, [_json_text(value) for value in found], value=_json_number(first))
        return _with_structure(spec, seen, of_documents(found))

    @cached_property
    def _text(self) -> str:
        try:
            encoding, text = html_to_unicode(self._content_type, self._body)
        except (LookupError, UnicodeError):  # a codec of Python's that is none for pages
            return self._body.decode("utf-8", "replace")
        if encoding.startswith(("utf-16", "utf-32")) and 0 not in self._body[:1024]:
            return self._body.decode("utf-8", "replace")  # its tags would have zero bytes: the label is wrong
        return text

    @cached_property
    def _html(self) -> parsel.Selector:
        return parsel.Selector(text=self._text, type="html")

    @cached_property
    def _json(self) -> object:
        document = _decoded(self._body)
        return _decoded(self._text) if document is None else document

    @cached_property
    def _json_ld(self) -> list[object]:
        scripts = self._html.xpath("//script[contains(@type, '/')]")
        blocks = (script.xpath("text()").get("") for script in scripts if _is_json_ld(script.attrib["type"]))
        return [item for block in blocks for item in _items(_decoded_block(block))]


@lru_cache(maxsize=16_384)
def _query(kind: str, expression: str) -> etree.XPath:
    """A selector compiled as parsel understands it: its CSS dialect, its name spaces and functions."""
    xpath = parsel.css2xpath(expression) if kind == "css" else expression
    return etree.XPath(xpath, namespaces=_NAMESPACES, smart_strings=False)


def _matches(kind: str, expression: str, root: object) -> list[Any]:
    """All matches of a selector; none where it fails on this page, which its functions may do in any way."""
    try:
        found = _query(kind, expression)(root)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - EXSLT's regular expressions raise what `re` raises, lxml families of its own
        return []
    return found if isinstance(found, list) else [found]


def _with_structure(spec: ValueSpec, seen: Seen, features: Iterable[str]) -> Seen:
    """What was seen, with the sketch of its structure where that must be unchanged; None of nothing."""
    if not any(check.name == "unchanged" for check in spec.checks):
        return seen
    return dataclasses.replace(seen, structure=sketch(features) or None)


def _texts(matches: Iterable[object]) -> Iterator[str]:
    """The texts of matches; after the first that is not blank only empty ones, since they are just counted."""
    found = False
    for match in matches:
        text = ""
        if not found:
            text = _text_of(match) if isinstance(match, etree._Element) else _plain(match)
            found = bool(text.strip())
        yield text


def _text_of(element: Any) -> str:  # noqa: ANN401 - lxml has no types
    try:
        return str(_TEXT_OF(element))
    except ValueError:  # a comment or an instruction that stands outside of the page
        return str(element.text or "")


def _plain(value: object) -> str:
    """A text, an attribute, or what an XPath function computes: a number without needless digits, true or false."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _decoded(data: bytes | str) -> object:
    """A JSON document; None for anything else."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        document: object = json.loads(data, strict=False)  # a byte order mark, UTF-16, NaN, line breaks in texts
    except (ValueError, RecursionError):
        return None
    return document


def _decoded_block(block: str) -> object:
    """The document of a script, whatever stands around it; None without one."""
    wrapping = _WRAPPING.match(block)
    try:
        document, _ = _LENIENT.raw_decode(block, wrapping.end() if wrapping else 0)
    except (ValueError, RecursionError):
        return None
    return document


def _is_json_ld(kind: str) -> bool:
    return kind.partition(";")[0].strip().lower() == "application/ld+json"


def _items(document: object, depth: int = 0) -> Iterator[object]:
    """The things that a JSON-LD block describes: members of a list and of its graph one by one."""
    members = document
    if isinstance(document, dict):
        members = document.get("@graph")
        if members is None or not all(key.startswith("@") for key in document):
            yield document
        members = [members] if isinstance(members, dict) else members
    elif not isinstance(document, list):
        yield document
    if isinstance(members, list) and depth < _DEEPEST_GRAPH:
        for member in members:
            yield from _items(member, depth + 1)


def _search(expression: str, document: object) -> list[Any]:
    """All that an expression finds; nothing where it fails on this document."""
    try:
        found = _compiled_jmespath(expression).search(document)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - functions of jmespath raise what their Python raises on values they dislike
        return []
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def _json_number(value: object) -> float | None:
    """A number of JSON; None for anything else, and for what is larger than any number is."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _json_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        text = value
    else:
        try:
            text = json.dumps(value, ensure_ascii=False)
        except (ValueError, RecursionError):
            return ""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")  # half a character cannot be sent on
