"""A site's way over time as shapes in a plane of 1000 by 100, for a server-rendered SVG. Pure.

x runs from the beginning (0) to now (1000), y from the best score (0) down to none (100).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from crawlhealth.tally import Slot, Tally
from crawlhealth.verdict import Verdict
from crawlhealth.web import words

WIDTH = 1000.0
HEIGHT = 100.0
SILENCE = 2 * 3600.0
"""Verdicts are recorded every hour: without one for so long, the exporter did not run."""
TICKS = 8
"""At most so many times are written under a chart."""
BARS = 60
"""At most about so many bars stand in a chart."""

EDGE = 3.0
"""A time this near to an end, in percent, would stand out over it."""
FINE = 6 * 3600.0
"""What is older stands in hours only."""

_STEPS = (60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 21_600.0, 43_200.0, 86_400.0, 172_800.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A stretch of the score without a gap: SVG path data."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A time in one band; `said` names it, with its beginning and end."""

    x: float
    width: float
    band: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The requests of one step: heights of what was served, refused and failed, stacked from below."""

    x: float
    width: float
    served: float
    refused: float
    error: float
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A time under the chart, its place in percent of the width."""

    left: float
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart; `most` is the number of requests that the highest bar stands for, `step` what a bar spans."""

    title: str
    lines: tuple[Line, ...]
    gaps: tuple[Stretch, ...]
    bands: tuple[Stretch, ...]
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    most: int
    step: str
    said: str


def draw(verdicts: Sequence[Verdict], slots: Iterable[Slot], *, since: float, now: float) -> Chart:
    """The way from `since` to `now`: `verdicts` oldest first, the present one last; `slots` in any order.

    The last verdict before `since` says how it began.
    """
    shown = _clipped(verdicts, since)
    step = _step(now - since, BARS)
    if now - since > FINE:
        step = max(step, 3600.0)
    bars, most = _bars(slots, since=since, now=now, step=step)
    return Chart(
        title=f"Last {words.span(now - since)}",
        lines=tuple(_lines(shown, since, now)),
        gaps=tuple(_stretches(shown, since, now, by_score=True)),
        bands=tuple(_stretches(shown, since, now, by_score=False)),
        bars=bars,
        ticks=tuple(_ticks(since, now)),
        most=most,
        step=words.span(step),
        said=_said(shown),
    )


def _clipped(verdicts: Sequence[Verdict], since: float) -> list[Verdict]:
    """Those from `since` on, and the last one before it moved to `since`."""
    shown = [verdict for verdict in verdicts if verdict.at >= since]
    before = [verdict for verdict in verdicts if since - SILENCE <= verdict.at < since]
    return [replace(before[-1], at=since), *shown] if before else shown


def _said(shown: Sequence[Verdict]) -> str:
    """The chart for those who cannot see it."""
    scores = [verdict.score for verdict in shown if verdict.score is not None]
    if not scores:
        return "no score in this time"
    return f"score from {scores[0]} to {scores[-1]}, lowest {min(scores)}, highest {max(scores)}"


def _x(at: float, since: float, now: float) -> float:
    return round(WIDTH * min(1.0, max(0.0, (at - since) / max(now - since, 1e-9))), 2)


def _lines(shown: Sequence[Verdict], since: float, now: float) -> Iterable[Line]:
    points: list[str] = []
    last = -math.inf
    for verdict in shown:
        if points and (verdict.score is None or verdict.at - last > SILENCE):
            yield _line(points)
            points = []
        if verdict.score is not None:
            points.append(f"{_x(verdict.at, since, now)} {HEIGHT - verdict.score}")
        last = verdict.at
    if points:
        yield _line(points)


def _line(points: Sequence[str]) -> Line:
    """A path; a single point becomes a line of no length, which round ends make a dot."""
    return Line(path="M" + "L".join(points if len(points) > 1 else (*points, *points)))


def _stretches(shown: Sequence[Verdict], since: float, now: float, *, by_score: bool) -> Iterable[Stretch]:
    """Times in one band, or (by score) those without a score; a silence of the exporter belongs to none."""
    begun: tuple[float, str] | None = None
    last = since
    for verdict in shown:
        kind = _kind(verdict, by_score)
        silent = verdict.at - last > SILENCE
        if begun is not None and (silent or kind != begun[1]):
            yield from _stretch(begun, last if silent else verdict.at, since, now)
            begun = None
        begun = begun or (verdict.at, kind)
        last = verdict.at
    if begun is not None:
        yield from _stretch(begun, last, since, now)


def _kind(verdict: Verdict, by_score: bool) -> str:
    if not by_score:
        return verdict.band.value
    return "" if verdict.score is not None else "no score"


def _stretch(begun: tuple[float, str], end: float, since: float, now: float) -> Iterable[Stretch]:
    start, kind = begun
    if kind:
        x = _x(start, since, now)
        said = f"{kind}, {words.moment(start)} to {words.moment(end)}"
        yield Stretch(x=x, width=max(1.0, _x(end, since, now) - x), band=kind, said=said)


def _bars(slots: Iterable[Slot], *, since: float, now: float, step: float) -> tuple[tuple[Bar, ...], int]:
    sums: dict[float, Tally] = {}
    for slot in slots:
        if since <= slot.start <= now:
            sums.setdefault(slot.start // step * step, Tally()).merge(slot.tally)
    most = max((tally.requests for tally in sums.values()), default=0)
    bars = []
    for start, tally in sorted(sums.items()):
        if tally.requests:
            left, right = _x(start, since, now), _x(start + step, since, now)
            bars.append(_bar(tally, left, right - left, most, start))
    return tuple(bars), most


def _bar(tally: Tally, left: float, width: float, most: int, start: float) -> Bar:
    scale = HEIGHT / most
    refused, error = tally.refused / tally.requests, tally.error / tally.requests
    return Bar(
        x=left,
        width=max(0.5, width - 1.0),
        served=round(tally.ok * scale, 2),
        refused=round(tally.refused * scale, 2),
        error=round(tally.error * scale, 2),
        said=f"from {words.moment(start)}: {tally.requests:,} requests, {refused:.1%} refused, {error:.1%} errors",
    )


def _step(seconds: float, count: int) -> float:
    """The shortest round step that makes at most `count` of a time."""
    return next((step for step in _STEPS if seconds / step <= count), _STEPS[-1])


def _ticks(since: float, now: float) -> Iterable[Tick]:
    step = _step(now - since, TICKS)
    at = math.ceil(since / step) * step
    while at <= now:
        day = step >= 86_400
        said = datetime.fromtimestamp(at, UTC).strftime("%b %-d" if day else "%H:%M")
        left = round(_x(at, since, now) / WIDTH * 100, 2)
        if EDGE < left < 100 - EDGE:
            yield Tick(left=left, said=said)
        at += step
