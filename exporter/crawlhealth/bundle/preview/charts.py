"""Lines over time and states over time, as Grafana draws them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator, MultipleLocator

from crawlhealth.bundle.preview.asking import Series
from crawlhealth.bundle.preview.canvas import Box, Page, fits, points
from crawlhealth.bundle.preview.clock import ticks
from crawlhealth.bundle.preview.looks import EDGE, FAINT, PALETTE, Look

LEGEND = 24
_LINES = 2
_NAME = 240.0
_SIZE = 11.5
_MORE = 30
"""Pixels that are kept for the number of names left out."""
ROUND_SECONDS = (15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A named series with its looks, and its colour on this page."""

    name: str
    colour: str
    look: Look
    series: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The time that is shown, and the step between two moments, in unix seconds."""

    since: float
    until: float
    step: float

    def sampled(self, series: Series) -> tuple[np.ndarray, np.ndarray]:
        """Moments and values at every step, NaN where there is none."""
        count = round((self.until - self.since) / self.step) + 1
        values = np.full(count, math.nan)
        for at, value in series.points:
            values[min(count - 1, max(0, round((at - self.since) / self.step)))] = value
        return self.since + self.step * np.arange(count), values


def lines(
    page: Page,
    box: Box,
    panel: Mapping[str, Any],
    found: Sequence[Line],
    span: Span,
    *,
    marks: Sequence[tuple[float, str]],
) -> None:
    """A panel of lines, or of stacked areas, with marks at some moments."""
    custom = panel["fieldConfig"]["defaults"]["custom"]
    below = laid(found, box.width)
    sides = [line.look.custom.get("axisPlacement") == "right" for line in found]
    left = max(66.0, 36 + 6.4 * len(panel["fieldConfig"]["defaults"]["unit"].partition("suffix:")[2]))
    plot = box.inner(
        left=left, top=4, right=40 if any(sides) else 8, bottom=20 + LEGEND * len(below) - (4 if len(below) > 1 else 0)
    )
    axes = page.axes(plot)
    axes.set_xlim(span.since, span.until)
    axes.grid(axis="both", color=EDGE, linewidth=0.6)
    axes.set_axisbelow(True)
    steps = custom["lineInterpolation"] == "stepAfter"
    if custom["stacking"]["mode"] == "normal":
        _stack(axes, found, span, step=steps)
    else:
        _draw(axes, [line for line, aside in zip(found, sides, strict=True) if not aside], span, steps=steps)
    _scale(axes, panel, found, span)
    if any(sides):
        _aside(axes, [line for line, aside in zip(found, sides, strict=True) if aside], span, steps=steps)
    if custom["thresholdsStyle"]["mode"] == "area":
        _areas(axes, panel["fieldConfig"]["defaults"]["thresholds"]["steps"])
    for at, colour in marks:
        axes.axvline(at, color=colour, linewidth=1, linestyle=(0, (2, 3)))
    _names_below(page, box, below, len(found))


def _draw(axes: Axes, found: Sequence[Line], span: Span, *, steps: bool) -> None:
    for line in found:
        at, values = span.sampled(line.series)
        custom, colour = line.look.custom, line.colour
        if custom.get("drawStyle") == "points":
            axes.plot(at, values, ".", color=colour, markersize=6, zorder=3)  # over all lines
            continue
        dashed = custom.get("lineStyle", {}).get("fill") == "dash"
        axes.plot(
            at,
            values,
            color=colour,
            linewidth=0.75 * custom.get("lineWidth", 2),
            linestyle=(0, (5, 4)) if dashed else "-",
            drawstyle="steps-post" if steps else "default",
        )
        if custom.get("fillOpacity"):
            axes.fill_between(at, values, 0, color=colour, alpha=custom["fillOpacity"] / 100, linewidth=0)


def _aside(axes: Axes, found: Sequence[Line], span: Span, *, steps: bool) -> None:
    """Lines that have an axis of their own, on the right."""
    right = axes.twinx()
    for edge in right.spines.values():
        edge.set_visible(False)
    right.tick_params(colors=FAINT, labelsize=points(11), length=0)
    _draw(right, found, span, steps=steps)
    right.set_ylim(0, max(1.0, right.get_ylim()[1]))
    look = found[0].look
    right.yaxis.set_major_locator(_heights(look.unit, right.get_ylim()[1]))
    right.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: look.text(float(value), span.until)))


def _stack(axes: Axes, found: Sequence[Line], span: Span, *, step: bool) -> None:
    if not found:
        return
    sampled = [span.sampled(line.series) for line in found]
    values = np.nan_to_num(np.vstack([one for _, one in sampled]))
    shades = [line.colour for line in found]
    axes.stackplot(sampled[0][0], values, colors=shades, alpha=0.85, linewidth=0, step="post" if step else None)


def _scale(axes: Axes, panel: Mapping[str, Any], found: Sequence[Line], span: Span) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    axes.margins(y=0.08)
    low, high = axes.get_ylim()
    least, most = defaults.get("min"), defaults.get("max")
    low = low if least is None else least
    high = max(high, defaults["custom"].get("axisSoftMax", high))
    axes.set_ylim(low, max(high, low + 1e-9) if most is None else most)
    look = found[0].look if found else Look()
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(_heights(look.unit, high - low))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: look.text(float(value), span.until)))
    places, texts = ticks(span.since, span.until, most=max(2, int(axes.get_window_extent().width / 90)))
    axes.set_xticks(places, texts)


def _heights(unit: str, reach: float) -> Locator:
    """Where lines across are drawn: at round numbers of the unit, five at most or so."""
    least = reach / 5
    if unit == "bytes" and least > 0:
        return MultipleLocator(2.0 ** math.ceil(math.log2(least)))
    if unit == "s" and ROUND_SECONDS[0] <= least <= ROUND_SECONDS[-1]:
        return MultipleLocator(next(step for step in ROUND_SECONDS if step >= least))
    return MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10])


def _areas(axes: Axes, steps: Sequence[Mapping[str, Any]]) -> None:
    low, high = axes.get_ylim()
    starts = [low if step.get("value") is None else step["value"] for step in steps]
    for start, end, step in zip(starts, [*starts[1:], high], steps, strict=True):
        if step["color"] != "transparent" and end > start and start < high:
            axes.axhspan(start, min(end, high), color=step["color"], alpha=0.22, linewidth=0, zorder=0)
    axes.set_ylim(low, high)


def laid(found: Sequence[Line], room: float) -> list[list[tuple[float, Line]]]:
    """The names below in two lines at most, each with where it begins from the left."""
    placed: list[list[tuple[float, Line]]] = [[]]
    x = 4.0
    for line in found:
        width = 28 + len(fits(line.name, _NAME, _SIZE)) * 6.6
        if x + width > room - _MORE and placed[-1]:
            if len(placed) == _LINES:
                break
            placed.append([])
            x = 4.0
        placed[-1].append((x, line))
        x += width
    return placed


def _names_below(page: Page, box: Box, placed: Sequence[Sequence[tuple[float, Line]]], count: int) -> None:
    for number, names in enumerate(placed):
        y = box.y + box.height - 9 - 20 * (len(placed) - 1 - number)
        for x, line in names:
            page.box(Box(x=box.x + x, y=y - 2, width=14, height=4), line.colour)
            page.text(box.x + x + 20, y, fits(line.name, _NAME, _SIZE), _SIZE)
    left = count - sum(len(names) for names in placed)
    if left:
        page.text(box.x + box.width - 4, y, f"+ {left}", _SIZE, colour=FAINT, across="right")


def states(page: Page, box: Box, found: Sequence[Line], span: Span) -> None:
    """A panel of states: a bar for each series, coloured by what its value is called."""
    names = min(box.width * 0.24, 8 + max(len(line.name) for line in found) * 11.5 * 0.58)
    plot = box.inner(left=names, top=2, right=8, bottom=20 + LEGEND)
    shown = found[: max(1, int(plot.height / 13))]
    axes = page.axes(plot)
    axes.set_xlim(span.since, span.until)
    axes.set_ylim(len(shown), 0)
    axes.set_yticks([])
    known: dict[str, str] = {}
    for row, line in enumerate(shown):
        for begin, end, value in _stretches(line.series, span):
            colour, text = line.look.shade(value) or PALETTE[0], line.look.text(value, span.until)
            known.setdefault(text, colour)
            axes.barh(row + 0.5, end - begin, left=begin, height=0.82, color=colour, linewidth=0)
            if (end - begin) / (span.until - span.since) * plot.width > len(text) * 7 + 8 and plot.height / len(
                shown
            ) > 13:
                axes.text((begin + end) / 2, row + 0.5, text, ha="center", va="center", fontsize=points(11),
                          color=ink(colour))  # fmt: skip
        middle = plot.y + (row + 0.5) * plot.height / len(shown)
        page.text(box.x + names - 6, middle, fits(line.name, names, 11.5), 11.5, across="right")
    places, texts = ticks(span.since, span.until, most=max(2, int(plot.width / 90)))
    axes.set_xticks(places, texts)
    x, y = box.x + 4, box.y + box.height - 9
    for text, colour in known.items():
        page.box(Box(x=x, y=y - 5, width=12, height=10), colour)
        page.text(x + 18, y, text, 11.5)
        x += 34 + len(text) * 11.5 * 0.56
    if len(shown) < len(found):
        page.text(box.x + box.width - 4, y, f"1 to {len(shown)} of {len(found)}", 11.5, colour=FAINT, across="right")


def _stretches(series: Series, span: Span) -> list[tuple[float, float, float]]:
    """Begin, end and value of each time in which a series had one value."""
    found: list[tuple[float, float, float]] = []
    for at, value in series.points:
        end = min(at + span.step, span.until)
        if found and found[-1][2] == value and at - found[-1][1] < span.step / 2:
            found[-1] = (found[-1][0], end, value)
        else:
            found.append((at, end, value))
    return found


def ink(colour: str) -> str:
    """The colour of text on another colour: dark on bright ones."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#111217" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "#ffffff"
