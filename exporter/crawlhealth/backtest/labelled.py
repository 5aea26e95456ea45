"""Labelled: windows of time in which people know that something was wrong, and how well stays agree with them. Pure.

A file of them is CSV (`site,start,end`, with or without this line before them) or JSON Lines with these names; times
are 2026-12-01T00:00:00Z or unix seconds. What is labelled is taken as all there was: a stay that overlaps no window of
its site is a false alarm.
"""

from __future__ import annotations

import csv
import json
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from crawlhealth.backtest.stays import Stay

MOST: Final = 100_000
MAX_LINE: Final = 10_000
NAMES: Final = ("site", "start", "end")


class LabelError(Exception):
    """A line that is no labelled window: says which and what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """From `start` until `end` (unix seconds) something was wrong with a site."""

    site: str
    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How stays agree with labelled windows: how many of these were found, and how soon.

    A window is found by a stay that overlaps it; `median_delay` is in seconds, 0 for a stay that had begun before.
    `false_alarms` are stays that overlap no window.
    """

    windows: int
    found: int
    median_delay: float | None
    false_alarms: int

    @property
    def recall(self) -> float | None:
        """The share that was found; None without any window."""
        return self.found / self.windows if self.windows else None


def read(lines: Iterable[str]) -> list[Labelled]:
    """The windows of a file. Raises LabelError."""
    found: list[Labelled] = []
    for number, site, start, end in _cells(lines):
        if len(found) == MOST:
            raise LabelError(f"line {number}: more than {MOST:,} windows: label fewer sites at a time")
        begin, last = _time(number, start), _time(number, end)
        if not site:
            raise LabelError(f"line {number}: no site: write {','.join(NAMES)}")
        if last <= begin:
            raise LabelError(f"line {number}: the end is not after the start")
        found.append(Labelled(site=site, start=begin, end=last))
    return found


def agreement(stays: Iterable[Stay], windows: Sequence[Labelled]) -> Agreement:
    """How stays agree with the windows of the same sites."""
    by_site: dict[str, list[Labelled]] = {}
    for window in windows:
        by_site.setdefault(window.site, []).append(window)
    first: dict[Labelled, float] = {}
    false = 0
    for stay in stays:
        end = math.inf if stay.end is None else stay.end
        met = [w for w in by_site.get(stay.site, ()) if stay.start < w.end and end > w.start]
        false += not met
        for window in met:
            first[window] = min(first.get(window, math.inf), max(0.0, stay.start - window.start))
    return Agreement(
        windows=len(windows),
        found=len(first),
        median_delay=statistics.median(first.values()) if first else None,
        false_alarms=false,
    )


def _cells(lines: Iterable[str]) -> Iterator[tuple[int, str, object, object]]:
    """The line number, site, start and end of each window as they are written."""
    order: Sequence[int] = range(len(NAMES))
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_LINE:
            raise LabelError(f"line {number}: longer than {MAX_LINE:,} characters")
        text = line.strip().lstrip("\ufeff")
        if not text:
            continue
        if text.startswith("{"):
            yield number, *_of_json(number, text)
            continue
        try:
            cells = [cell.strip() for cell in next(csv.reader([text]))]
        except csv.Error as error:
            raise LabelError(f"line {number}: {error}: write {','.join(NAMES)}") from error
        if number == 1 and {cell.lower() for cell in cells} >= set(NAMES):
            order = [[cell.lower() for cell in cells].index(name) for name in NAMES]
            continue
        if len(cells) <= max(order):
            raise LabelError(f"line {number}: write {','.join(NAMES)}")
        site, start, end = (cells[place] for place in order)
        yield number, site, start, end


def _of_json(number: int, text: str) -> tuple[str, object, object]:
    try:
        said = json.loads(text)
        return str(said["site"]), said["start"], said["end"]
    except (ValueError, KeyError, RecursionError) as error:
        raise LabelError(f'line {number}: write {{"site": ..., "start": ..., "end": ...}}') from error


def _time(number: int, written: object) -> float:
    try:
        if isinstance(written, str) and "T" in written:
            when = datetime.fromisoformat(written)
            value = when.timestamp() if when.tzinfo is not None else math.nan
        else:
            value = float(str(written))
    except (ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise LabelError(f"line {number}: {written!r} is no time: write 2026-12-01T00:00:00Z or unix seconds")
    return value
