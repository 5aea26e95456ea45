"""Draws dashboards with what a Prometheus knows, one picture each: what Grafana would show, near enough to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from crawlhealth.bundle.preview.asking import Prometheus, Series
from crawlhealth.bundle.preview.canvas import Box, Page
from crawlhealth.bundle.preview.charts import Line, Span, lines, states
from crawlhealth.bundle.preview.choosing import Chosen, choices, named, put_in, span
from crawlhealth.bundle.preview.figures import bars, stats, table
from crawlhealth.bundle.preview.frames import rows
from crawlhealth.bundle.preview.looks import PALETTE, legend, look

STEPS: Final = 240
"""So many moments of a time range are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A dashboard at a moment: whom to ask, what is chosen, and the time that is shown."""

    prometheus: Prometheus
    chosen: Chosen
    span: Span

    @property
    def seconds(self) -> float:
        """How long the time is that is shown."""
        return self.span.until - self.span.since

    def query(self, target: Mapping[str, Any]) -> list[Series]:
        """What a query of a panel finds. Raises PreviewError."""
        expr = put_in(target["expr"], self.chosen, self.span.step, self.seconds)
        if target["instant"]:
            return self.prometheus.now(expr, self.span.until)
        return self.prometheus.over_time(expr, self.span.since, self.span.until, self.span.step)


def view(dashboard: Mapping[str, Any], prometheus: Prometheus, now: float, wanted: Mapping[str, str]) -> View:
    """A dashboard as it is when somebody opens it. `wanted` are values of variables. Raises PreviewError."""
    seconds = span(dashboard)
    chosen = choices(dashboard, prometheus, now, seconds, wanted)
    return View(
        prometheus=prometheus, chosen=chosen, span=Span(since=now - seconds, until=now, step=max(seconds / STEPS, 0.25))
    )


def draw(dashboard: Mapping[str, Any], shown: View, path: Path, width: int) -> None:
    """Write the picture of a dashboard. Raises PreviewError, OSError."""
    page = Page(dashboard, width)
    chosen = "   ".join(f"{name}: {', '.join(values) or 'All'}" for name, values in shown.chosen.items())
    when = f"{_moment(shown.span.since)} to {_moment(shown.span.until)} UTC"
    page.head(dashboard["title"], chosen, when)
    found = [(mark, at) for mark in dashboard["annotations"]["list"] for at in _moments(mark, shown)]
    marks = [(at, mark["iconColor"]) for mark, at in found]
    page.marks({mark["name"]: mark["iconColor"] for mark, _ in found})
    colours: dict[str, str] = {}
    for panel in dashboard["panels"]:
        box = page.place(panel["gridPos"])
        if panel["type"] == "row":
            page.row(box, named(panel["title"], shown.chosen))
        else:
            _panel(
                page, page.panel(box, named(panel["title"], shown.chosen)), panel, shown, marks=marks, colours=colours
            )
    page.save(path)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _moments(mark: Mapping[str, Any], shown: View) -> set[float]:
    """The moments of an annotation within the time that is shown."""
    if mark["useValueForTime"] != "on":
        return set()
    expr = put_in(mark["expr"], shown.chosen, shown.span.step, shown.seconds)
    found = shown.prometheus.over_time(expr, shown.span.since, shown.span.until, shown.span.step)
    moments = {round(value / 1000, 1) for series in found for _, value in series.points}
    return {at for at in moments if shown.span.since < at < shown.span.until}


def _panel(
    page: Page,
    box: Box,
    panel: Mapping[str, Any],
    shown: View,
    *,
    marks: Sequence[tuple[float, str]],
    colours: dict[str, str],
) -> None:
    answers = [shown.query(target) for target in panel["targets"]]
    now = shown.span.until
    if panel["type"] == "table":
        found = rows(panel, answers)
        if found:
            table(page, box, panel, found, now)
    else:
        found_lines = named_lines(panel, answers, colours)
        if panel["type"] == "timeseries" and found_lines:
            lines(page, box, panel, found_lines, shown.span, marks=marks)
        elif panel["type"] == "state-timeline" and found_lines:
            states(page, box, found_lines, shown.span)
        elif panel["type"] == "stat" and found_lines:
            stats(page, box, panel, found_lines, now)
        elif found_lines:
            bars(page, box, panel, found_lines, now)
    if not any(answers):
        page.say(box, panel["fieldConfig"]["defaults"]["noValue"])


def named_lines(panel: Mapping[str, Any], answers: Sequence[Sequence[Series]], colours: dict[str, str]) -> list[Line]:
    """The named series of a panel. A name has one colour on all of the page, unless a panel says another."""
    found: list[Line] = []
    for target, series in zip(panel["targets"], answers, strict=True):
        for one in series:
            name = legend(target["legendFormat"], one.labels)
            looks = look(panel, name)
            colour = looks.colour or colours.setdefault(name, _free(name, {line.colour for line in found}))
            found.append(Line(name=name, look=looks, series=one, colour=colour))
    return found


def _free(name: str, taken: Set[str]) -> str:
    """The colour of a name: the same on every page, but where another one of its panel has it."""
    first = crc32(name.encode()) % len(PALETTE)
    around = (*PALETTE[first:], *PALETTE[:first])
    return next((colour for colour in around if colour not in taken), around[0])
