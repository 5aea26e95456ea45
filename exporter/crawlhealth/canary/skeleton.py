"""Skeleton: the structure of a part of a page, without its texts. Hostile pages: run it where it can be killed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from lxml import etree

MOST_CLASSES: Final = 6
_LEFT_OUT: Final = frozenset({"script", "style", "noscript", "template", "link", "meta", "svg", "br", "wbr", "iframe"})
_GENERATED: Final = re.compile(r"[0-9]")


def of_elements(elements: Iterable[etree._Element]) -> Iterator[str]:
    """The features of elements with all that is in them: each tag with its classes, and what it stands in.

    Texts, attributes and how often something is repeated do not matter; scripts, styles and drawings are left out, and
    classes with a digit, which are generated or count.
    """
    for element in elements:
        waiting = [("", element)]
        while waiting:
            around, node = waiting.pop()
            if not isinstance(node.tag, str) or node.tag in _LEFT_OUT:
                continue
            own = _signature(node)
            yield f"{around}>{own}"
            waiting.extend((own, child) for child in node)


def _signature(node: etree._Element) -> str:
    classes = [name for name in (node.get("class") or "").split() if not _GENERATED.search(name)]
    return ".".join((str(node.tag), *sorted(set(classes))[:MOST_CLASSES]))


def of_documents(documents: Iterable[object]) -> Iterator[str]:
    """The features of JSON: each key with those around it; lists count as one of their items."""
    waiting: list[tuple[str, object]] = [("", document) for document in documents]
    while waiting:
        around, value = waiting.pop()
        if isinstance(value, dict):
            yield f"{around}{{}}"
            waiting.extend((f"{around[-200:]}.{key}", item) for key, item in value.items())
        elif isinstance(value, list):
            yield f"{around}[]"
            waiting.extend((around, item) for item in value)
        else:
            yield around
