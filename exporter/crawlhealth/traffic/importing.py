"""Importing a file of windows into the history of a configuration."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from crawlhealth import history
from crawlhealth.config import Config
from crawlhealth.stretch import Stretch
from crawlhealth.tally import Slot
from crawlhealth.traffic.windows import Problem, read_windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of an import: windows taken, and every line that was not."""

    taken: int
    problems: tuple[Problem, ...]


def import_windows(lines: Iterable[bytes], config: Config, *, now: float | None = None) -> Report:
    """Bring the windows of JSON Lines into the history; bad lines are reported and left out.

    `now` is the present unless given. Raises history.HistoryError when the history cannot be written.
    """
    moment = time.time() if now is None else now
    problems: list[Problem] = []

    def good() -> Iterator[Slot]:
        for item in read_windows(lines, config=config, now=moment):
            if isinstance(item, Problem):
                problems.append(item)
            else:
                yield item

    taken = history.import_windows(config.data_dir / history.FILE_NAME, config.history, good(), now=moment)
    return Report(taken=taken, problems=tuple(problems))


def stretches_of(
    lines: Iterable[bytes],
    config: Config,
    *,
    problem: Callable[[Problem], object],
    seconds: float = 3600.0,
    now: float | None = None,
) -> Iterator[Stretch]:
    """The windows of JSON Lines as `history.stretches_of` tells them, of any age and without any history.

    `problem` is told of every bad line, which is left out, before the first stretch comes. Raises
    history.HistoryError when there is no room for a temporary file.
    """
    moment = time.time() if now is None else now

    def good() -> Iterator[Slot]:
        for item in read_windows(lines, config=config, now=moment, to_keep=False):
            if isinstance(item, Problem):
                problem(item)
            else:
                yield item

    return history.stretches_of(good(), seconds=seconds)
