"""Figures, tables and bars, as Grafana draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

from crawlhealth.bundle.preview.canvas import Box, Page, fits
from crawlhealth.bundle.preview.charts import Line, ink
from crawlhealth.bundle.preview.frames import Cell, Rows
from crawlhealth.bundle.preview.looks import EDGE, FAINT, PALETTE, PANEL, TEXT, Look, look

_ROW: Final = 27
_LARGEST: Final = 44
_BLUE: Final = "#3b8fc4"


def stats(page: Page, box: Box, panel: Mapping[str, Any], found: Sequence[Line], now: float) -> None:
    """A panel of figures side by side, coloured by what they are."""
    width = box.width / len(found)
    named = panel["options"]["textMode"] == "value_and_name"
    calm = panel["options"]["colorMode"] == "none"
    most = panel["options"].get("text", {}).get("valueSize", _LARGEST)
    for number, line in enumerate(found):
        value = line.series.points[-1][1]
        colour = PANEL if calm else line.look.colour or line.look.shade(value) or _BLUE
        place = Box(
            x=box.x + number * width, y=box.y, width=width - (4 if number + 1 < len(found) else 0), height=box.height
        )
        page.box(place, colour)
        text = line.look.text(value, now)
        lines, size = _fitting(text, place.width - 12, place.height - (22 if named else 4), most)
        head = 20 if named else 0
        middle = place.x + place.width / 2
        top = place.y + (head + place.height) / 2 - (len(lines) - 1) * size * 0.6
        if named:
            name = fits(line.name, place.width, 12.5)
            page.text(middle, place.y + 14, name, 12.5, colour=ink(colour), across="center")
        for row, part in enumerate(lines):
            page.text(middle, top + row * size * 1.2, part, size, colour=ink(colour), bold=True, across="center")


def _fitting(text: str, width: float, height: float, most: float) -> tuple[list[str], float]:
    """The lines of a text and the largest size, in pixels, in which they fit, up to the most."""
    for size in (_LARGEST, 36, 30, 26, 22, 19, 17, 15, 13):
        if size > most:
            continue
        lines = wrap(text, max(4, int(width / (size * 0.7))), break_long_words=False) or [""]
        if len(lines) * size * 1.2 <= height and all(len(line) * size * 0.7 <= width for line in lines):
            return lines, size
    return [fits(text, width, 12)], 12


def table(page: Page, box: Box, panel: Mapping[str, Any], rows: Rows, now: float) -> None:
    """A table with the columns in their order, as many rows as fit."""
    looks = {name: look(panel, name) for name in rows[0]}
    texts = [{name: looks[name].text(row[name], now) for name in row} for row in rows]
    titles = {name: looks[name].title or name for name in rows[0]}
    widths = _widths(titles, texts, box.width)
    shown = max(1, int((box.height - _ROW) / _ROW))
    x = box.x
    for name, width in widths.items():
        page.text(x + 6, box.y + _ROW / 2, fits(titles[name], width - 6, 12), 12, colour=_BLUE, bold=True)
        for number, row in enumerate(rows[:shown]):
            _cell(page, Box(x=x, y=box.y + (number + 1) * _ROW, width=width, height=_ROW), looks[name], row[name],
                  texts[number][name])  # fmt: skip
        x += width
    if len(rows) > shown:
        page.text(
            box.x + box.width - 4, box.y - 14, f"{shown} of {len(rows)}: scroll", 11, colour=FAINT, across="right"
        )


def _widths(titles: Mapping[str, str], texts: Sequence[Mapping[str, str]], room: float) -> dict[str, float]:
    """How wide each column is, by its longest text."""
    wanted = {
        name: 16 + 7.2 * max(len(titles[name]), *(min(40, len(row[name])) for row in texts), 3) for name in titles
    }
    share = room / sum(wanted.values())
    return {name: width * share for name, width in wanted.items()}


def _cell(page: Page, box: Box, shown: Look, value: Cell, text: str) -> None:
    colour = shown.shade(value) if shown.custom.get("cellOptions", {}).get("type") == "color-background" else None
    if colour is not None and text:
        page.box(box.inner(left=1, top=1, right=1, bottom=1), colour)
    else:
        page.box(Box(x=box.x, y=box.y + box.height - 1, width=box.width, height=1), EDGE)
    shade = ink(colour) if colour and text else TEXT
    page.text(box.x + 6, box.y + box.height / 2, fits(text, box.width - 8, 12.5), 12.5, colour=shade)


def bars(page: Page, box: Box, panel: Mapping[str, Any], found: Sequence[Line], now: float) -> None:
    """Bars from nothing to the most there can be."""
    most = panel["fieldConfig"]["defaults"].get("max") or max(line.series.points[-1][1] for line in found) or 1.0
    height = min(44.0, box.height / len(found))
    names = min(box.width * 0.35, 8 + max(len(line.name) for line in found) * 12 * 0.58)
    for number, line in enumerate(found[: int(box.height / height)]):
        value = line.series.points[-1][1]
        place = Box(x=box.x + names, y=box.y + number * height + 4, width=box.width - names - 70, height=height - 8)
        page.box(place, EDGE)
        page.box(
            Box(x=place.x, y=place.y, width=max(1.0, place.width * min(1.0, value / most)), height=place.height),
            line.look.shade(value) or PALETTE[0],
        )
        page.text(box.x + names - 6, place.y + place.height / 2, fits(line.name, names, 12), 12, across="right")
        page.text(place.x + place.width + 8, place.y + place.height / 2, line.look.text(value, now), 13)
