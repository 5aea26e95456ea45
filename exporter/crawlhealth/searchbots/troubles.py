"""Why a log is not read: told once, and again when it changes."""

from __future__ import annotations

import glob
import logging
import os
import stat
from collections.abc import Collection, Container, Iterable
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 60.0
"""A log that was read may be away for so long, while it is rotated."""


class Troubles:
    """What keeps each log from being read, by its label."""

    def __init__(self) -> None:
        self._now: dict[str, str] = {}
        self._told: dict[str, str] = {}
        self._well: dict[str, float] = {}

    def note(self, label: str, trouble: str, *, now: float) -> None:
        """Take what is so now (nothing: all is well); tell it where it is new."""
        self._now[label] = trouble
        if not trouble:
            self._well[label] = now
            if self._told.pop(label, ""):
                log.warning("%s: is read again", label)
        elif (
            self._told.get(label) != trouble
            and not 0 <= now - self._well.get(label, -PATIENCE_SECONDS) < PATIENCE_SECONDS
        ):
            self._told[label] = trouble
            log.warning("%s: %s", label, trouble)

    def of(self, label: str) -> str:
        """What is so of a log."""
        return self._now.get(label, "")

    def keep(self, labels: Container[str]) -> None:
        """Forget all other logs."""
        for known in (self._now, self._told, self._well):
            for label in [each for each in known if each not in labels]:
                del known[label]


def why_unread(pattern: Path, paths: Iterable[str], own: Collection[str]) -> str:
    """Why a path of a log has no file; nothing where all have one. `own` are those that are files."""
    if glob.has_magic(str(pattern)):
        if own:
            return ""
        return next(filter(None, map(no_log, paths)), f"no file matches {pattern}")
    return "" if str(pattern) in own else no_log(str(pattern)) or f"{pattern} cannot be read"


def no_log(path: str) -> str:
    """Why what stands at a path is no log that can be followed; nothing where it may be one."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return f"{path} cannot be read: {error.strerror or error}"
    kinds = (
        ("a folder", stat.S_ISDIR),
        ("a pipe", stat.S_ISFIFO),
        ("a socket", stat.S_ISSOCK),
        ("a device", stat.S_ISCHR),
    )
    kind = next((name for name, is_so in kinds if is_so(mode)), "")
    return f"{path} is {kind} and no log: write the path of a file" if kind else ""
