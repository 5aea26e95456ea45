"""Pieces of work, in this process and in others."""

from __future__ import annotations

import os

import pytest

from crawlhealth.backtest.working import STEPS_AT_ONCE, WorkError, each
from squares import Square


@pytest.mark.parametrize("processes", [1, 2, 9])
def test_all_pieces_are_done_and_all_steps_told(processes: int) -> None:
    steps: list[int] = []
    results = list(each([Square(number=number) for number in (1, 2, 3)], steps.append, processes=processes))
    assert sorted(square for square, _ in results) == [1, 4, 9]
    assert len({process for _, process in results}) == min(processes, 3)
    assert (os.getpid() in {process for _, process in results}) is (processes == 1)
    assert sum(steps) == 3600
    assert max(steps) <= STEPS_AT_ONCE


@pytest.mark.parametrize("processes", [1, 2])
def test_what_a_piece_raises_is_raised(processes: int) -> None:
    with pytest.raises(ValueError, match="-3 is negative"):
        list(each([Square(number=1), Square(number=-3)], lambda _: None, processes=processes))


def test_a_process_that_dies_is_told() -> None:
    with pytest.raises(WorkError, match="ended with -9"):
        list(each([Square(number=1), Square(number=0)], lambda _: None, processes=2))


def test_nothing_to_do() -> None:
    assert list(each([], lambda _: None, processes=2)) == []
