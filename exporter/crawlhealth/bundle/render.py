"""Renders the bundle, writes it, and tells where files on disk differ from it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Final

from crawlhealth.bundle import alertmanager, compose, dashboards, fleet, grafanaalerts, rules, volume
from crawlhealth.bundle.alerts import canaries, certificates, errors, exporter, score, searchbots
from crawlhealth.bundle.model import Alert, Group, Options
from crawlhealth.bundle.yamltext import HEADER

PARTS: Final[tuple[Callable[[Options], tuple[Group, ...]], ...]] = (
    score.groups,
    fleet.groups,
    canaries.groups,
    errors.groups,
    volume.groups,
    exporter.groups,
    certificates.groups,
    searchbots.groups,
)
"""Everything that brings rules, in the order of the files."""
FILES: Final[tuple[Callable[[Options], Mapping[str, str]], ...]] = (
    alertmanager.files,
    dashboards.files,
    compose.files,
)
"""Everything that brings other files, as relative path to text."""

DEFAULTS: Final = Options()


def groups(options: Options = DEFAULTS) -> tuple[Group, ...]:
    """Every group of rules. Raises ValueError when two groups or two alerts have one name."""
    found = tuple(chain.from_iterable(part(options) for part in PARTS))
    names = Counter([group.name for group in found])
    names.update(rule.name for group in found for rule in group.rules if isinstance(rule, Alert))
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ValueError(f"described twice: {', '.join(twice)}")
    return found


def alerts(options: Options = DEFAULTS) -> tuple[Alert, ...]:
    """Every alert."""
    return tuple(rule for group in groups(options) for rule in group.rules if isinstance(rule, Alert))


def render(options: Options = DEFAULTS) -> Mapping[str, str]:
    """Every file of the bundle, as relative path to text; equal options give equal bytes.

    Raises ValueError for a severity of an alert that does not exist, naming the one that was meant.
    """
    described = groups(options)
    _check_names(options, [alert.name for alert in alerts(options)])
    files = {**rules.rule_files(described, options), **grafanaalerts.alerting(described, options)}
    for part in FILES:
        files.update(part(options))
    return files


def write(out: Path, options: Options = DEFAULTS) -> list[str]:
    """Write every file of `render(options)` under `out`, making folders; returns their names. Raises OSError."""
    return write_files(out, render(options))


def write_files(out: Path, files: Mapping[str, str]) -> list[str]:
    """Write texts under `out`, making folders; returns their names. Raises OSError."""
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)


def check(out: Path, options: Options = DEFAULTS) -> list[str]:
    """Unified diffs from the files under `out` to those of `render(options)`; empty when all are up to date.

    A rule file or a dashboard that is not rendered is a difference too: it would go on being read.
    """
    return compare(out, render(options))


def left(out: Path, files: Mapping[str, str]) -> list[str]:
    """A line on every file beside `files` under `out` that would go on being read, or applied; sorted.

    These are rule files, dashboards, and, where objects of the operator are written, others that were rendered once.
    """
    folders = {str(PurePosixPath(name).parent) for name in files}
    beside = [
        path
        for folder, pattern in ((rules.FOLDER, "*.yml"), (dashboards.FOLDER, "*.json"), (".", "*.yml"))
        if folder in folders
        for path in (out / folder).glob(pattern)
        if folder != "." or path.read_bytes().startswith(HEADER.encode())
    ]
    names = sorted(path.relative_to(out).as_posix() for path in beside)
    return [f"{name}: is not rendered any more: remove it\n" for name in names if name not in files]


def compare(out: Path, files: Mapping[str, str]) -> list[str]:
    """Unified diffs from the files under `out` to these texts, and what is `left`; empty when they are the same."""
    differences = []
    for name, text in files.items():
        path = out / name
        present = path.read_text(encoding="utf-8") if path.is_file() else ""
        if present != text:
            lines = difflib.unified_diff(
                present.splitlines(keepends=True), text.splitlines(keepends=True), name, f"{name} (rendered)"
            )
            differences.append("".join(lines))
    return differences + left(out, files)


def _check_names(options: Options, names: list[str]) -> None:
    for name in options.severities:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise ValueError(f"there is no alert {name}: {meant}")
