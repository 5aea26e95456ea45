"""Nodes of a YAML file to frozen dataclasses, by their type hints. Every problem is noted, none stops the reading.

A value with a problem becomes its default, so that what depends on it can still be looked at.
"""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin

from crawlhealth import quantities
from crawlhealth.secret import Secret
from crawlhealth.yamlfile.document import Document, Steps
from crawlhealth.yamlfile.tree import Entries, Items, Node, Scalar, quoted

MAX_SECRET_BYTES: Final = 65_536
MAX_NAMES_SHOWN: Final = 12

Hint = Any
"""A type hint at run time: a class, a union, a generic alias."""
T = TypeVar("T")


class _Invalid:
    """What a value with a problem is read as."""


INVALID: Final = _Invalid()


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error on an unknown name: the nearest known one, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name[:100].lower(), [known.lower() for known in names], n=1, cutoff=0.6)
    if close:
        return f"did you mean {next(known for known in names if known.lower() == close[0])}?"
    if not names:
        return "there is none"
    more = ", …" if len(names) > MAX_NAMES_SHOWN else ""
    return f"write one of {', '.join(names[:MAX_NAMES_SHOWN])}{more}"


def plain(node: Node) -> object:
    """A node as lists, dicts and scalars."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return {key: plain(value) for key, (_, value) in node.entries.items()}


class Binder:
    """Reads the nodes of one document.

    `files` are the secret files it read on the way, `outside` the texts it took from them and from the environment.
    Without `secrets` it leaves those unread, and what they are the values of out.
    """

    def __init__(self, document: Document, *, environ: Mapping[str, str], secrets: bool = True) -> None:
        self._secrets = secrets
        self.document = document
        self._environ = environ
        self._folder = document.file.parent
        self.files: list[Path] = []
        self.outside: list[str] = []

    def record(self, node: Node | None, cls: type[T], steps: Steps = (), *, name: str | None = None) -> T | None:
        """A dataclass from a mapping; `name` fills the field of that name. None (and a problem) if nothing fits."""
        found = self._record(node or Scalar(line=1, column=1, text="", plain=True), cls, steps, name)
        return found if isinstance(found, cls) else None

    def _bad(self, steps: Steps, message: str, *, key: bool = False, secret: bool = False) -> _Invalid:
        self.document.report(steps, message, key=key, secret=secret)
        return INVALID

    def _value(self, node: Node, hint: Hint, steps: Steps) -> object:
        origin: Hint = get_origin(hint)
        if origin is not None:
            return self._generic(node, origin, get_args(hint), steps)
        if is_dataclass(hint):
            return self._record(node, hint, steps, None)
        if hint is object:
            return plain(node)
        if issubclass(hint, Enum):
            return self._choice(node, {str(choice.value): choice for choice in hint}, steps)
        if hint in (str, Secret):
            return self._text_or_secret(node, hint, steps)
        return self._scalar(node, hint, steps)

    def _generic(self, node: Node, origin: Hint, hints: tuple[Hint, ...], steps: Steps) -> object:
        if origin in (Union, types.UnionType):
            return self._union(node, hints, steps)
        if origin is Literal:
            return self._choice(node, {str(choice): choice for choice in hints}, steps)
        if origin is Mapping:
            return self._mapping(node, hints[1], steps)
        assert origin in (tuple, frozenset), f"no reading is known for {origin}"
        return self._items(node, origin, hints[0], steps)

    def _union(self, node: Node, hints: tuple[Hint, ...], steps: Steps) -> object:
        if type(None) in hints and isinstance(node, Scalar) and node.value is None:
            return None
        rest = [hint for hint in hints if hint is not type(None)]
        if set(rest) == {str, Secret}:
            return self._value(node, str if isinstance(node, Scalar) else Secret, steps)
        if Secret in rest and len(rest) > 1:  # alone, or the record that has it
            record = next(hint for hint in rest if hint is not Secret)
            alone = not isinstance(node, Entries) or bool(node.entries.keys() & {"env", "file"})
            return self._value(node, Secret if alone else record, steps)
        assert len(rest) == 1, f"no reading is known for {hints}"
        return self._value(node, rest[0], steps)

    def _record(self, node: Node, cls: Hint, steps: Steps, name: str | None) -> object:
        if isinstance(node, Scalar) and node.value is None:
            node = Entries(line=node.line, column=node.column, entries={}, size=1)
        if not isinstance(node, Entries):
            return self._bad(steps, "needs keys and values: write key: value lines under it")
        hints = _hints(cls)
        known = [key for key in hints if name is None or key != "name"]
        suggested = self._unknown_keys(node, known, steps)
        values: dict[str, object] = {} if name is None else {"name": name}
        broken = False
        for field in fields(cls):
            if field.name in values:
                continue
            if field.name in node.entries:
                value = self._value(node.entries[field.name][1], hints[field.name], (*steps, field.name))
                if value is not INVALID:
                    values[field.name] = value
                    continue
            elif field.default is MISSING and field.default_factory is MISSING and field.name not in suggested:
                self._bad(steps, f"needs {field.name}: add it")
            broken = broken or (field.default is MISSING and field.default_factory is MISSING)
        return INVALID if broken else cls(**values)

    def _unknown_keys(self, node: Entries, known: list[str], steps: Steps) -> set[str]:
        """Note every key that is not known; the known ones that were probably meant."""
        suggested: set[str] = set()
        for key in node.entries:
            if key in known or self.document.full:
                continue
            if key == "<<":
                self._bad((*steps, key), "merge keys are not YAML 1.2: write the keys out", key=True)
                continue
            remedy = nearest(key, known)
            suggested.update(other for other in known if remedy == f"did you mean {other}?")
            self._bad((*steps, key), f"unknown key {quoted(key)}: {remedy}", key=True)
        return suggested

    def _mapping(self, node: Node, hint: Hint, steps: Steps) -> object:
        if isinstance(node, Scalar) and node.value is None:
            return {}
        if not isinstance(node, Entries):
            return self._bad(steps, "needs names and values: write name: value lines under it")
        named = bool(is_dataclass(hint)) and "name" in _hints(hint)
        read: dict[str, object] = {}
        for key, (_, value) in node.entries.items():
            found = self._record(value, hint, (*steps, key), key) if named else self._value(value, hint, (*steps, key))
            if found is not INVALID:
                read[key] = found
        return read

    def _items(self, node: Node, make: Callable[[list[object]], object], hint: Hint, steps: Steps) -> object:
        if not isinstance(node, Items):
            short = isinstance(node, Scalar) and hint is str and 0 < len(node.text) < 60
            example = f"[{node.text}]" if isinstance(node, Scalar) and short else "[one, another]"
            return self._bad(steps, f"needs a list: write {example}", secret=hint is Secret)
        read = [self._value(item, hint, (*steps, number)) for number, item in enumerate(node.items)]
        return INVALID if any(item is INVALID for item in read) else make(read)

    def _choice(self, node: Node, choices: Mapping[str, object], steps: Steps) -> object:
        if isinstance(node, Scalar) and node.text in choices:
            return choices[node.text]
        seen = f"{quoted(node.text)} is not known here" if isinstance(node, Scalar) else "needs one word"
        return self._bad(steps, f"{seen}: {nearest(node.text if isinstance(node, Scalar) else '', choices)}")

    def _scalar(self, node: Node, hint: Hint, steps: Steps) -> object:
        reader, example = _SCALARS[hint]
        if not isinstance(node, Scalar):
            return self._bad(steps, f"needs one value: write {example}")
        if node.value is None:
            return self._bad(steps, f"is empty: write {example}, or leave the key out")
        try:
            if hint is int and str(steps[-1]).endswith("_bytes"):
                return quantities.size(node.text)
            value = reader(node)
        except ValueError as error:
            return self._bad(steps, f"{quoted(node.text)} {error}")
        return self._folder / value if isinstance(value, Path) else value

    def _text_or_secret(self, node: Node, hint: Hint, steps: Steps) -> object:
        if isinstance(node, Entries):
            text = self._from_outside(node, steps, read=self._secrets or hint is not Secret)
            return hint(text) if isinstance(text, str) else INVALID
        if not isinstance(node, Scalar):
            return self._bad(steps, "needs one text, not a list")
        if hint is Secret and ("://" not in node.text or "@" in node.text):
            return self._bad(
                steps, "is a secret and must not stand here: write {env: NAME} or {file: path}", secret=True
            )  # fmt: skip
        if node.value is None:
            return self._bad(steps, 'is empty: write a text, "" for an empty one, or leave the key out')
        return hint(node.text)

    def _from_outside(self, node: Entries, steps: Steps, *, read: bool) -> str | _Invalid:
        """A text named by {env: NAME} or {file: path}, unless it is not to be `read`; no error ever holds it."""
        (key, (_, value)), *more = node.entries.items() if node.entries else [("", (None, node))]
        if more or key not in ("env", "file") or not isinstance(value, Scalar) or not value.text:
            return self._bad(steps, "needs one text, {env: NAME} or {file: path}", secret=True)
        if not read:
            return INVALID
        if key == "env":
            found = self._environ.get(value.text)
            if found is None:
                return self._bad(steps, f"the environment variable {quoted(value.text)} is not set: set it")
        else:
            path = self._folder / value.text
            self.files.append(path)
            try:
                found = _secret_file(path)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                return self._bad(steps, f"the file {quoted(str(path), 300)} cannot be read: {reason}")
        self.outside.append(found)
        return found or self._bad(steps, f"{quoted(value.text)} holds nothing: put a value into it")


def _secret_file(path: Path) -> str:
    if not path.is_file():
        raise ValueError("there is no such file")
    with path.open("rb") as stream:
        data = stream.read(MAX_SECRET_BYTES + 1)
    if len(data) > MAX_SECRET_BYTES:
        raise ValueError(f"it is larger than {MAX_SECRET_BYTES} bytes")
    try:
        return data.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None


@lru_cache(maxsize=64)
def _hints(cls: Hint) -> Mapping[str, Hint]:
    return typing.get_type_hints(cls)


def _bool(node: Scalar) -> bool:
    if isinstance(node.value, bool):
        return node.value
    raise ValueError("is neither true nor false: write true or false")


def _int(node: Scalar) -> int:
    if isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    raise ValueError("is not a whole number: write one, as in 10")


def _float(node: Scalar) -> float:
    value = node.value
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf"):
        return float(value)
    raise ValueError("is not a number: write one, as in 12.5")


def _path(node: Scalar) -> Path:
    return Path(node.text)


_SCALARS: Final[Mapping[Hint, tuple[Callable[[Scalar], object], str]]] = types.MappingProxyType(
    {
        bool: (_bool, "true or false"),
        int: (_int, "a whole number"),
        float: (_float, "a number"),
        timedelta: (lambda node: quantities.duration(node.text), "a duration such as 5m"),
        Path: (_path, "a path"),
    }
)
