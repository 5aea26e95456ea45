"""A table of what ran on which engine, and of what could not be had, after the tests."""

from __future__ import annotations

from collections import Counter

import pytest

from compat.engines import ENGINES

_SHOWN = {"passed": "passed", "failed": "FAILED", "skipped": "not run"}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One row an engine, one column a kind of test."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, ()):
            said = dict(getattr(report, "user_properties", ()))
            if "engine" in said and (report.when == "call" or outcome != "passed"):
                key = (said["engine"], said["tried"])
                found.setdefault(key, Counter())["failed" if outcome == "error" else outcome] += 1
    if not found:
        return
    columns = list(dict.fromkeys(tried for _, tried in found))
    rows = [["", *columns]]
    for engine in map(str, ENGINES):
        rows.append([engine, *(_cell(found.get((engine, column))) for column in columns)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    terminalreporter.section("rules on other engines", sep="-")
    for row in rows:
        terminalreporter.write_line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


def _cell(outcomes: Counter[str] | None) -> str:
    """What became of the tests of one kind on one engine."""
    if not outcomes:
        return "-"
    if outcomes["failed"]:
        return f"{outcomes['failed']} FAILED"
    return f"{outcomes['passed']} passed" if outcomes["passed"] else "not run"
