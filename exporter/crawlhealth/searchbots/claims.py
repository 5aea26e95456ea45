"""Which log a path belongs to: one that is configured is never the rotation of another, and no path is read twice."""

from __future__ import annotations

import glob
import os
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crawlhealth.searchbots.rotation import origins

PACKED: Final = (".gz", ".bz2", ".xz", ".zst", ".zip", ".lz4")


@dataclass(frozen=True, slots=True)
class Claims:
    """Whose each path is, by the label of its log: the first that names or matches it. `named` are without a `*`.

    `twice` has the paths that a log may not have, each with the label of that log and of the one that has it.
    """

    owners: Mapping[str, str]
    named: frozenset[str]
    twice: tuple[tuple[str, str, str], ...] = ()

    @classmethod
    def of(cls, patterns: Mapping[str, Path]) -> Claims:
        """By what stands there now; `patterns` are the paths of the logs by their labels, in order."""
        owners: dict[str, str] = {}
        named: set[str] = set()
        twice: list[tuple[str, str, str]] = []
        for label, pattern in patterns.items():
            path = str(pattern)
            if glob.has_magic(path):
                matches = sorted(glob.glob(path, recursive=True))
            else:
                named.add(path)
                matches = [path]
            for path in matches:
                owners.setdefault(path, label)
            twice.extend((path, label, owners[path]) for path in matches if owners[path] != label)
        return cls(owners, frozenset(named), tuple(twice))

    def of_log(self, label: str) -> list[str]:
        """The paths that a log has, in order."""
        return [path for path, owner in self.owners.items() if owner == label]


def origin(path: str, claimed: Container[str], *, sure: bool = False) -> str | None:
    """The path that a file was rotated away from, by its name and the paths that logs are written to.

    With `sure` only by names that a rotation alone gives: web-2.log may as well be a log of its own.
    """
    folder, name = os.path.split(path)
    for other, certain in origins(name):
        if (certain or not sure) and (found := os.path.join(folder, other)) in claimed:
            return found
    return None


class Folders:
    """What stands beside the logs, listed once for all of them: which names belong to which log."""

    def __init__(self, claims: Claims, bases: Iterable[str]) -> None:
        self._bases = frozenset(bases)
        self._apart = claims.named | self._bases
        self._claimed: Collection[str] = claims.owners.keys() | self._bases
        self._owners = claims.owners
        self._listed: dict[str, dict[str, list[str]]] = {}

    def paths(self, base: str, *, anew: bool = False) -> list[str]:
        """The log's own path and what was rotated away from it, compressed or not."""
        folder = os.path.dirname(base)
        if anew or folder not in self._listed:
            self._listed[folder] = self._list(folder)
        return self._listed[folder].get(base, [])

    def _list(self, folder: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        try:
            names = os.listdir(folder or ".")
        except OSError:
            return {}
        for name in names:
            path = os.path.join(folder, name)
            plain = path.removesuffix(".gz")
            if plain in self._apart:
                if plain == path:
                    found[path].append(path)
                continue
            # short numbers are another log's own where its pattern matches them
            sure = plain in self._owners and plain not in self._bases and self._foreign(plain)
            of = origin(plain, self._claimed, sure=sure)
            if of is not None:
                found[of].append(path)
        return found

    def _foreign(self, path: str) -> bool:
        """Whether a path that a pattern matches is none of the log's that this is for."""
        return not any(self._owners.get(base) == self._owners[path] for base in self._bases)
