"""YAML text as nodes that know their line and column. YAML 1.2 core scalars: no `on`, no octal, no `1:30`.

Built from events, without recursion; bounded in depth and in what aliases expand to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

MAX_DEPTH: Final = 40
MAX_NODES: Final = 500_000

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT: Final = re.compile(r"[-+]?[0-9]{1,18}|0x[0-9a-fA-F]{1,15}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]{1,40}|[0-9]{1,40}(?:\.[0-9]{0,40})?)(?:[eE][-+]?[0-9]{1,3})?")
_ODD_FLOAT: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_REMEDIES: Final = (
    (
        "cannot start any token",
        "indent with spaces, not tabs; a text that starts with @, % or a backquote needs quotes",
    ),
    ("mapping values are not allowed", "a text with ': ' in it needs quotes; else check the indentation"),
    ("did not find expected key", "check the indentation and the brackets above"),
    ("did not find expected ',' or", "close the bracket, or put a comma between the items"),
    ("undefined alias", "define the &anchor before its *alias; a text that starts with * needs quotes"),
    ("quoted scalar", "close the quotes"),
    ("maximum nesting depth", "write it flatter"),
)


Note = Callable[[int, int, str], None]
"""Takes the line, column and message of a problem that does not stop the reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """One text; `plain` when it stands without quotes, and so may be a number, a truth value or nothing."""

    line: int
    column: int
    text: str
    plain: bool = False
    size: int = 1

    @property
    def value(self) -> str | int | float | bool | None:
        """The text as YAML 1.2's core schema reads it."""
        text = self.text
        if not self.plain:
            return text
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if _INT.fullmatch(text):
            return int(text, 16) if text.startswith("0x") else int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan")) if _ODD_FLOAT.fullmatch(text) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A sequence. `size` counts all nodes in it, aliases as often as they are used."""

    line: int
    column: int
    items: tuple[Node, ...]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """A mapping, in the order written: key text to (key, value). `size` as in Items."""

    line: int
    column: int
    entries: Mapping[str, tuple[Scalar, Node]]
    size: int


Node = Scalar | Items | Entries


class Unreadable(Exception):
    """The rest of a file cannot be read, from a line and column on."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


def tree(text: str, note: Note) -> Node:
    """The one document in a text; raises Unreadable. Keys that stand twice are noted, and the first one kept."""
    build = _Tree(note)
    for event in _events(text):
        build.take(event)
    if build.root is None:
        raise Unreadable("is empty")
    return build.root


def quoted(text: str, most: int = 60) -> str:
    """A text as an error may show it: one line, not too long."""
    return repr(text if len(text) <= most else text[: most - 1] + "…")


class _Open:
    """A sequence or mapping whose end has not been read yet."""

    __slots__ = ("anchor", "column", "items", "keys", "line", "size")

    def __init__(self, event: yaml.CollectionStartEvent) -> None:
        self.line, self.column = _mark(event.start_mark)
        self.anchor: str | None = event.anchor
        self.items: list[Node] = []
        self.keys = isinstance(event, yaml.MappingStartEvent)
        self.size = 1

    def close(self, note: Note) -> Node:
        if not self.keys:
            return Items(line=self.line, column=self.column, items=tuple(self.items), size=self.size)
        entries: dict[str, tuple[Scalar, Node]] = {}
        for key, value in zip(self.items[::2], self.items[1::2], strict=True):
            if not isinstance(key, Scalar):
                note(key.line, key.column, "a key must be a plain text")
            elif key.text in entries:
                first = entries[key.text][0].line
                note(key.line, key.column, f"the key {quoted(key.text)} stands twice (first on line {first}): keep one")
            else:
                entries[key.text] = (key, value)
        return Entries(line=self.line, column=self.column, entries=entries, size=self.size)


class _Tree:
    """Nodes from events. An alias is the node itself, not a copy; `size` counts it all the same."""

    def __init__(self, note: Note) -> None:
        self.root: Node | None = None
        self._note = note
        self._anchors: dict[str, Node] = {}
        self._open: list[_Open] = []

    def take(self, event: yaml.Event) -> None:
        line, column = _mark(event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            self._open.append(_Open(event))
            if len(self._open) > MAX_DEPTH:
                raise Unreadable(f"is nested more than {MAX_DEPTH} deep: write it flatter", line, column)
        elif isinstance(event, yaml.CollectionEndEvent):
            opened = self._open.pop()
            self._place(opened.close(self._note), opened.anchor, line, column)
        elif isinstance(event, yaml.ScalarEvent):
            node = Scalar(line=line, column=column, text=event.value, plain=not event.style)
            self._place(node, event.anchor, line, column)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise Unreadable(f"the alias *{event.anchor} has no finished anchor before it", line, column)
            self._place(self._anchors[event.anchor], None, line, column)
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise Unreadable("a second document starts here: one file holds one document", line, column)

    def _place(self, node: Node, anchor: str | None, line: int, column: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        parent.items.append(node)
        parent.size += node.size
        if parent.size > MAX_NODES:
            raise Unreadable(f"holds more than {MAX_NODES} values, aliases counted: split it", line, column)


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            tag = getattr(event, "tag", None)
            if tag is not None:
                raise Unreadable(f"the tag {quoted(tag)} is not used here: leave it out", *_mark(event.start_mark))
            yield event
    except yaml.MarkedYAMLError as error:
        said = " ".join(f"{error.context or ''} {error.problem or 'cannot be read'}".split())
        remedy = next((remedy for sign, remedy in _REMEDIES if sign in said), "check the lines above")
        raise Unreadable(f"is not YAML: {said}: {remedy}", *_mark(error.problem_mark or error.context_mark)) from None
    except yaml.YAMLError as error:
        raise Unreadable(f"is not YAML: {' '.join(str(error).split())[:200]}") from None


def _mark(mark: Any) -> tuple[int, int]:  # noqa: ANN401 - libyaml's marks and PyYAML's share no type
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
