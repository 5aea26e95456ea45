"""Shows the story: a table that is redrawn on a terminal, plain lines where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TextIO

from crawlhealth.demo.story import Stage
from crawlhealth.demo.view import View

_BAR: Final = 30
_COLOURS: Final[Mapping[str | None, str]] = {"normal": "32", "degrading": "33", "resisting": "31"}
_LAST_NOTICES: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What there is to show: the stage, how far the demo is in seconds, the view, and what is still awaited."""

    stage: Stage
    number: int
    stages: int
    seconds: float
    view: View
    awaited: Sequence[str] = ()


class Screen(Protocol):
    """Where the story is shown."""

    def say(self, text: str) -> None:
        """One line that stays."""

    def show(self, moment: Moment) -> None:
        """The present moment."""


class PlainScreen:
    """Lines, one for everything that changes: for logs."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._stage = ""
        self._band: str | None = None
        self._notices = 0

    def say(self, text: str) -> None:
        """Print the line."""
        print(text, file=self._out, flush=True)

    def show(self, moment: Moment) -> None:
        """Print what is new: a stage, a band, a notice, and the state at the end of a stage."""
        view, stage = moment.view, moment.stage
        if stage.name != self._stage:
            self._stage = stage.name
            self.say(f"{moment.seconds:6.1f} s  {moment.number}/{moment.stages} {stage.name}: {stage.tells}")
        for notice in view.notices[self._notices :]:
            about = notice.labels.get("canary") or notice.labels.get("site", "")
            self.say(f"{moment.seconds:6.1f} s    {kind(notice.paged)} {notice.alert} {about} {notice.status}")
        self._notices = len(view.notices)
        if view.band != self._band:
            self._band = view.band
            self.say(f"{moment.seconds:6.1f} s    {state(view)}")


class LiveScreen:
    """A table that redraws itself in place."""

    def __init__(self, out: TextIO, addresses: Mapping[str, str], *, colour: bool) -> None:
        self._out = out
        self._addresses = addresses
        self._colour = colour
        self._drawn = 0

    def say(self, text: str) -> None:
        """Put the line above the table."""
        self._wipe()
        print(text, file=self._out, flush=True)

    def show(self, moment: Moment) -> None:
        """Draw the table anew."""
        width, height = shutil.get_terminal_size()
        lines = table(moment, self._addresses)[: max(1, height - 1)]
        self._wipe()
        for line in lines:
            print(self._paint(line[: width - 1], moment.view.band), file=self._out)
        self._out.flush()
        self._drawn = len(lines)

    def _wipe(self) -> None:
        if self._drawn:
            self._out.write(f"\x1b[{self._drawn}F\x1b[J")
        self._drawn = 0

    def _paint(self, line: str, band: str | None) -> str:
        if not self._colour or ("█" not in line and "░" not in line):
            return line
        return f"\x1b[{_COLOURS.get(band, '0')}m{line}\x1b[0m"


def kind(paged: bool) -> str:
    """What a notice is called: a page goes to a person."""
    return "page  " if paged else "notice"


def state(view: View) -> str:
    """Band, scores and reasons in one line."""
    costs = ", ".join(f"{signal} {view.penalties[signal]:.1f}" for signal in view.reasons) or "none"
    return (
        f"{view.band or 'unknown'}: score {number(view.score)}, parser score {number(view.parser_score)}, "
        f"reasons: {costs}, decoy suspects: {', '.join(sorted(view.decoys)) or 'none'}"
    )


def number(value: float | None) -> str:
    """A score, or a dash while there is none."""
    return "–" if value is None else f"{value:.0f}"


def table(moment: Moment, addresses: Mapping[str, str]) -> list[str]:
    """The lines of the table. Pure."""
    view, stage = moment.view, moment.stage
    filled = round((view.score or 0) / 100 * _BAR)
    lines = [
        "",
        f" {moment.seconds:4.0f} s  {moment.number}/{moment.stages} {stage.name}: {stage.tells}",
        "",
        f" shop  {view.band or 'unknown':<10} {'█' * filled}{'░' * (_BAR - filled)} {number(view.score):>4}"
        f"  plain {number(view.score_raw):>3}  parser {number(view.parser_score):>3}",
        "",
    ]
    for signal, points in sorted(view.penalties.items(), key=lambda item: -item[1]):
        now = f"p95 {view.latency or 0:.3f} s" if signal == "latency" else f"{view.signals.get(signal, 0):.1%}"
        lines.append(f"   {signal:<12} {points:5.1f} points   {'' if signal == 'refused_cap' else now}".rstrip())
    lines += [
        "",
        f"   canaries     {view.canaries - len(view.failing)} of {view.canaries} fine"
        f"   decoy suspects: {', '.join(sorted(view.decoys)) or 'none'}",
        f"   awaited      {'; '.join(moment.awaited) or 'nothing'}",
        "",
    ]
    for notice in view.notices[-_LAST_NOTICES:]:
        about = notice.labels.get("canary") or notice.labels.get("site", "")
        lines.append(f"   {kind(notice.paged)}  {notice.alert} {about} {notice.status}")
    return [*lines, "", *(f"   {name:<14} {url}" for name, url in addresses.items())]
