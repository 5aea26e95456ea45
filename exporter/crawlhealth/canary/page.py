"""Reading values off a page with parsel's selectors: unbounded by itself, so run it where it can be killed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any, Final

import jmespath
import msgspec
import parsel
from jmespath.exceptions import JMESPathError
from lxml import etree
from w3lib.encoding import html_to_unicode

from crawlhealth.checks import Seen, ValueSpec, judge, see
from crawlhealth.model import ValueResult

_TEXT_OF: Final = etree.XPath("string()", smart_strings=False)
_NAMESPACES: Final = {"re": "http://exslt.org/regular-expressions", "set": "http://exslt.org/sets"}
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
        try:
            if spec.selector.kind in ("css", "xpath"):
                return self._seen_in_html(spec)
            documents = [self._json] if spec.selector.kind == "jmespath" else self._json_ld
            found = [value for document in documents for value in _search(spec.selector.expression, document)]
        except (etree.XPathError, JMESPathError, ValueError, RecursionError):
            return see(spec, ())
        first = next((value for value in found if value is not None), None)
        number = float(first) if isinstance(first, int | float) and not isinstance(first, bool) else None
        return see(spec, [_json_text(value) for value in found], value=number)

    def _seen_in_html(self, spec: ValueSpec) -> Seen:
        found = _query(spec.selector.kind, spec.selector.expression)(self._html.root)
        matches = found if isinstance(found, list) else [found]
        is_element = bool(matches) and isinstance(matches[0], etree._Element)
        return see(spec, _texts(matches), element=is_element)

    @cached_property
    def _html(self) -> parsel.Selector:
        _, text = html_to_unicode(self._content_type, self._body)
        return parsel.Selector(text=text, type="html")

    @cached_property
    def _json(self) -> object:
        return _decoded(self._body)

    @cached_property
    def _json_ld(self) -> list[object]:
        blocks = self._html.xpath('//script[@type="application/ld+json"]/text()').getall()
        return [item for block in blocks for item in _items(_decoded(block))]


@lru_cache(maxsize=16_384)
def _query(kind: str, expression: str) -> etree.XPath:
    """A selector compiled as parsel understands it: its CSS dialect, its name spaces and functions."""
    xpath = parsel.css2xpath(expression) if kind == "css" else expression
    return etree.XPath(xpath, namespaces=_NAMESPACES, smart_strings=False)


def _texts(matches: Iterable[object]) -> Iterator[str]:
    """The texts of matches; after the first that is not blank only empty ones, since they are just counted."""
    found = False
    for match in matches:
        text = ""
        if not found:
            text = str(_TEXT_OF(match)) if isinstance(match, etree._Element) else _plain(match)
            found = bool(text.strip())
        yield text


def _plain(value: object) -> str:
    """A text, an attribute, or what an XPath function computes: a number without needless digits, true or false."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _decoded(data: bytes | str) -> object:
    """A JSON document; None for anything else."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        document: object = json.loads(data)  # more lenient: a byte order mark, UTF-16, NaN
    except (ValueError, RecursionError):
        return None
    return document


def _items(document: object) -> Iterator[object]:
    """The things that a JSON-LD block describes: members of a list and of its graph one by one."""
    if isinstance(document, list):
        yield from document
    elif isinstance(document, dict) and isinstance(document.get("@graph"), list):
        yield from document["@graph"]
    else:
        yield document


def _search(expression: str, document: object) -> list[Any]:
    found = _compiled_jmespath(expression).search(document)
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def _json_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
