"""Rotations under a fast writer, with the reader killed: no line is lost, and none counts twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchbots.killing import follow


@pytest.mark.parametrize("how", ["rename", "copytruncate"])
def test_every_line_counts_once_whatever_is_killed(tmp_path: Path, how: str) -> None:
    counted = follow(tmp_path, rate=5000, seconds=4.0, how=how, kills=2)
    assert counted.written > 10_000
    assert (counted.lines, counted.unreadable) == (counted.written, 0)
    assert counted.visits == (counted.written + 9) // 10
