"""A YAML file as nodes that know their line and column; everything wrong with it is a Problem, never a traceback.

YAML 1.2 core scalars: no `on`, no octal, no `1:30`. Bounded on hostile files: size, depth and what aliases expand to.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crawlhealth.yamlfile.tree import Entries, Items, Node, Scalar, Unreadable, quoted, tree

MAX_BYTES: Final = 5_000_000
MAX_PROBLEMS: Final = 100
"""Of one file: whoever has more mends these first."""

_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_PRIVATE: Final = frozenset({"push", "proxy", "headers", "cookies"})
"""Keys under which a value may be a secret, so that no error shows it."""
_SECRETIVE: Final = re.compile(r"push|token|prox|header|cookie|authori|secret|passw", re.IGNORECASE)
"""What a line that may hold a secret looks like, or one above it, also with a misspelt key and in what is no YAML."""

Step = str | int
Steps = tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One thing that is wrong in a file, and what to write instead. Lines and columns count from 1.

    `source` is the line as it stands, blank where it could hold a secret.
    """

    file: str
    line: int
    column: int
    path: str
    message: str
    source: str = field(default="", compare=False)

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""
        return f"{self.file}:{self.line}:{self.column}: {path}{self.message}"


class Document:
    """One file: its nodes, and the problems found in it so far."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._lines: list[str] = []
        self._bad: set[Steps] = set()

    @classmethod
    def read(cls, file: Path) -> Document:
        """The file at a path; `root` is None when it cannot be read, and a problem says why."""
        document = cls(file)
        try:
            text = _text(file)
            document._lines = text.splitlines()
            document.root = tree(text, lambda line, column, message: document.add(line, column, "", message))
        except Unreadable as error:
            document.root = None
            document.add(error.line, error.column, "", error.message)
        return document

    @property
    def full(self) -> bool:
        """Whether so many problems were found that looking for more is of no use."""
        return len(self.problems) > MAX_PROBLEMS

    def report(self, steps: Steps, message: str, *, key: bool = False, secret: bool = False) -> None:
        """Note a problem with the value (or the key) at `steps`, or at the nearest thing above that exists."""
        self._bad.update(steps[:end] for end in range(len(steps) + 1))
        found = self.find(steps, key=key)
        secret = secret or not _PRIVATE.isdisjoint(steps)
        self.add(found.line, found.column, path_text(steps), message, secret=secret)

    def sound(self, *steps: Step) -> bool:
        """Whether nothing was found to be wrong at `steps` or below."""
        return steps not in self._bad

    def find(self, steps: Steps, *, key: bool = False) -> Node:
        """The node at `steps`, or the nearest one above."""
        node: Node = self.root or Scalar(line=1, column=1, text="")
        for number, step in enumerate(steps):
            if isinstance(node, Entries) and step in node.entries:
                name, value = node.entries[str(step)]
                node = name if key and number == len(steps) - 1 else value
            elif isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
                node = node.items[step]
            else:
                break
        return node

    def has(self, *steps: Step) -> bool:
        """Whether something is written at `steps`."""
        node: Node | None = self.root
        for step in steps:
            if isinstance(node, Entries) and step in node.entries:
                node = node.entries[str(step)][1]
            elif isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
                node = node.items[step]
            else:
                return False
        return node is not None

    def add(self, line: int, column: int, path: str, message: str, *, secret: bool = False) -> None:
        """Note a problem at a line and column; past the limit only that there are more."""
        if self.full:
            return
        if len(self.problems) == MAX_PROBLEMS:
            path, message = "", "there are more problems in this file: mend these first"
        secret = secret or not 0 < line <= len(self._lines) or _secretive(self._lines, line - 1)
        source = "" if secret else self._lines[line - 1][:500]
        problem = Problem(
            file=str(self.file), line=line, column=column, path=path, message=message, source=source
        )  # fmt: skip
        if problem not in self.problems:
            self.problems.append(problem)


def _secretive(lines: list[str], number: int) -> bool:
    """Whether a line, or one that it is indented under, looks as if a secret could stand there."""
    reach = _depth(lines[number])
    if _SECRETIVE.search(lines[number]):
        return True
    for line in reversed(lines[:number]):
        if line.strip() and _depth(line) < reach:
            if _SECRETIVE.search(line):
                return True
            reach = _depth(line)
        if not reach:
            break
    return False


def _depth(line: str) -> int:
    """How far a line is indented; an item may stand right under its key, and is deeper all the same."""
    text = line.lstrip()
    return 2 * (len(line) - len(text)) + text.startswith("- ")


def path_text(steps: Steps) -> str:
    """`("canaries", 3, "url")` as people write it: `canaries[3].url`."""
    said = ""
    for step in steps:
        if isinstance(step, int):
            said += f"[{step}]"
        elif re.fullmatch(r"[\w-]{1,60}", step):
            said += f".{step}" if said else step
        else:
            said += f"[{quoted(step)}]"
    return said


def _text(file: Path) -> str:
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise Unreadable("is not a file: name a YAML file")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise Unreadable("there is no such file") from None
    except (OSError, ValueError) as error:
        raise Unreadable(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise Unreadable(f"is larger than {MAX_BYTES} bytes: split it into several files")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _position(data[: error.start].decode("utf-8", "replace"))
        raise Unreadable("is not UTF-8 text here: save the file as UTF-8", line, column) from None
    odd = _UNPRINTABLE.search(text)
    if odd is not None:
        line, column = _position(text[: odd.start()])
        raise Unreadable(f"has a control character (U+{ord(odd.group()):04X}) here: remove it", line, column)
    return text


def _position(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
