"""A page of panels in Grafana's grid, in pixels, on matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from crawlhealth.bundle.preview.looks import EDGE, FAINT, PAGE, PANEL, TEXT

DPI: Final = 100
MARGIN: Final = 16
HEAD: Final = 92
CELL: Final = 30
GAP: Final = 8
COLUMNS: Final = 24
TITLE: Final = 30


def points(pixels: float) -> float:
    """The size of a font in points."""
    return pixels * 72 / DPI


def fits(text: str, pixels: float, size: float) -> str:
    """`text` cut to what fits a width, in a font of `size` pixels."""
    most = max(1, int(pixels / (size * 0.58)))
    return text if len(text) <= most else text[: max(1, most - 1)] + "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A place on the page in pixels from its top left."""

    x: float
    y: float
    width: float
    height: float

    def inner(self, left: float = 0, top: float = 0, right: float = 0, bottom: float = 0) -> Box:
        """What is left of it within margins."""
        return Box(
            x=self.x + left,
            y=self.y + top,
            width=max(1.0, self.width - left - right),
            height=max(1.0, self.height - top - bottom),
        )


class Page:
    """A picture of `width` pixels that panels are put on."""

    def __init__(self, dashboard: Mapping[str, Any], width: int) -> None:
        self.width = width
        lines = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"])
        self.height = HEAD + lines * (CELL + GAP) + MARGIN
        self.figure = Figure(figsize=(width / DPI, self.height / DPI), dpi=DPI, facecolor=PAGE)
        FigureCanvasAgg(self.figure)

    def place(self, grid: Mapping[str, int]) -> Box:
        """Where a panel of this place in the grid stands."""
        column = (self.width - 2 * MARGIN + GAP) / COLUMNS
        return Box(
            x=MARGIN + grid["x"] * column,
            y=HEAD + grid["y"] * (CELL + GAP),
            width=grid["w"] * column - GAP,
            height=grid["h"] * (CELL + GAP) - GAP,
        )

    def axes(self, box: Box) -> Axes:
        """Axes in a place, without a frame."""
        left, bottom = box.x / self.width, 1 - (box.y + box.height) / self.height
        axes = self.figure.add_axes((left, bottom, box.width / self.width, box.height / self.height))
        axes.set_facecolor("none")
        for side in axes.spines.values():
            side.set_visible(False)
        axes.tick_params(colors=FAINT, labelsize=points(11), length=0)
        return axes

    def blank(self, box: Box) -> Axes:
        """Axes in a place, measured in pixels from the top left, that show nothing by themselves."""
        axes = self.axes(box)
        axes.set_xlim(0, box.width)
        axes.set_ylim(box.height, 0)
        axes.set_xticks([])
        axes.set_yticks([])
        return axes

    def box(self, box: Box, colour: str, edge: str = "none") -> None:
        """A filled box."""
        self.figure.add_artist(
            Rectangle(
                (box.x / self.width, 1 - (box.y + box.height) / self.height),
                box.width / self.width,
                box.height / self.height,
                facecolor=colour,
                edgecolor=edge,
                linewidth=0.8,
                zorder=-1,  # behind all axes
            )
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        *,
        colour: str = TEXT,
        bold: bool = False,
        across: str = "left",
    ) -> None:
        """A line of text with its middle at y."""
        self.figure.text(
            x / self.width,
            1 - y / self.height,
            text.replace("$", r"\$"),
            fontsize=points(size),
            color=colour,
            fontweight="bold" if bold else "normal",
            ha=across,
            va="center",
        )

    def head(self, title: str, chosen: str, when: str) -> None:
        """The title of the dashboard, what is chosen, and that this is no Grafana."""
        self.text(MARGIN, 26, title, 20, bold=True)
        self.text(MARGIN, 60, chosen, 13, colour=FAINT)
        self.text(
            self.width - MARGIN, 26, "PREVIEW: drawn by crawlhealth bundle --preview", 12, colour=FAINT, across="right"
        )
        self.text(self.width - MARGIN, 60, when, 13, colour=FAINT, across="right")

    def marks(self, named: Mapping[str, str]) -> None:
        """What the dotted lines on panels are: name and colour of each."""
        x = float(MARGIN)
        for name, colour in named.items():
            for dot in range(3):
                self.box(Box(x=x, y=76 + 5 * dot, width=2, height=3), colour)
            self.text(x + 10, 83, name, 12, colour=FAINT)
            x += 34 + len(name) * 7

    def row(self, box: Box, title: str) -> None:
        """The title of a row."""
        self.text(box.x, box.y + 18, f"▾ {title}", 15, bold=True)

    def panel(self, box: Box, title: str) -> Box:
        """The frame of a panel; returns what is left for its content."""
        self.box(box, PANEL, EDGE)
        self.text(box.x + 8, box.y + 16, fits(title, box.width - 16, 13.5), 13.5, bold=True)
        return box.inner(left=8, top=TITLE, right=8, bottom=8)

    def say(self, box: Box, text: str) -> None:
        """Why a panel is empty, in its middle."""
        lines = wrap(text, max(10, int(box.width / 8)))
        for number, line in enumerate(lines):
            y = box.y + box.height / 2 + (number - (len(lines) - 1) / 2) * 18
            self.text(box.x + box.width / 2, y, line, 13, colour=FAINT, across="center")

    def save(self, path: Path) -> None:
        """Write the picture. Raises OSError."""
        self.figure.savefig(path, format="png", facecolor=PAGE, metadata={"Software": None})
