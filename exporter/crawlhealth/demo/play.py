"""Plays the story against the running exporter and says whether it went as it should."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TextIO

import requests

from crawlhealth.demo.live import LiveScreen, Moment, PlainScreen, Screen, state
from crawlhealth.demo.processes import DemoError, Ended, Patience
from crawlhealth.demo.setting import Setting, set_up
from crawlhealth.demo.story import JOURNEY, STORY, Expectation, Stage, passed_through, untold
from crawlhealth.demo.view import View

STAGE_SECONDS: Final = 30.0
"""How long a stage may take until all that it expects is seen."""
STORY_SECONDS: Final = 165.0
"""How long the whole story may take, with its start."""
LOOK_EVERY: Final = 0.25
MUTE_SECONDS: Final = 10.0
"""How long the exporter may fail to answer a scrape."""
INTERRUPTED: Final = 130


class Play:
    """One play of the story: what was seen so far, and what failed.

    `begun` is when the demo began (monotonic). `impatient` ends the story at its first failure, and in time.
    """

    def __init__(self, setting: Setting, screen: Screen, patience: Patience, *, begun: float, impatient: bool) -> None:
        self.failures: list[str] = []
        self.bands: list[str | None] = []
        self._setting = setting
        self._screen = screen
        self._patience = patience
        self._begun = begun
        self._impatient = impatient

    def tell(self) -> None:
        """Play all stages. Raises DemoError, Ended."""
        for stage in STORY:
            self._setting.site.behave(*stage.behaviours)
            self._stage(stage)
            if self._impatient and self.failures:
                return
        if not passed_through(self.bands):
            self.failures.append(f"the whole story: the bands pass through {', '.join(JOURNEY)}, in this order")

    def stay(self) -> None:
        """Go on showing the last stage. Raises DemoError, Ended: there is no other way out."""
        while True:
            self._look(STORY[-1])

    def _stage(self, stage: Stage) -> None:
        begun = time.monotonic()
        broken: dict[str, View] = {}
        while True:
            view = self._look(stage)
            self.bands.append(view.band)
            for said in self._missing(stage.throughout, view):
                broken.setdefault(said, view)
            awaited = self._missing(stage.expects, view)
            now = time.monotonic()
            if not awaited and now - begun >= stage.seconds:
                break
            if now - begun > STAGE_SECONDS or (self._impatient and now - self._begun > STORY_SECONDS):
                self.failures += [f"{stage.name}: {said} ({state(view)})" for said in awaited]
                break
        self.failures += [f"{stage.name}: all the time {said} ({state(seen)})" for said, seen in broken.items()]
        told = untold(view.notices)
        if told:
            self.failures.append(f"{stage.name}: no alert but those of the story ({', '.join(told)})")
        self._screen.say(f"{now - self._begun:6.1f} s    after {stage.name}: {state(view)}")

    def _look(self, stage: Stage) -> View:
        """The shop a little later, and shown. Raises DemoError, Ended."""
        self._patience.pause(LOOK_EVERY)
        deadline = time.monotonic() + MUTE_SECONDS
        while True:
            try:
                view = self._setting.look()
                break
            except (requests.RequestException, ValueError) as error:
                if time.monotonic() > deadline:
                    raise DemoError(f"the exporter does not answer a scrape: {error}") from error
            self._patience.pause(LOOK_EVERY)
        self._screen.show(
            Moment(
                stage=stage,
                number=STORY.index(stage) + 1,
                stages=len(STORY),
                seconds=time.monotonic() - self._begun,
                view=view,
                awaited=self._missing(stage.expects, view),
            )
        )
        return view

    def _missing(self, expected: Iterable[Expectation], view: View) -> list[str]:
        """Which of the expectations do not hold; those on alerts only where alerts can arrive."""
        due = (one for one in expected if self._setting.paging or not one.paging)
        return [one.says for one in due if not one.holds(view)]


def run(*, once: bool, out: TextIO | None = None) -> int:
    """Play the demo; the exit status: 0 if the story went as it should, else 1, and 130 if it was interrupted.

    With `once` it ends with the story, else it stays until Ctrl-C. All that it started is ended when it returns.
    """
    out = out or sys.stdout
    plain = PlainScreen(out)
    status: int | None = None
    with Patience() as patience, ExitStack() as stack:
        try:
            begun = time.monotonic()
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crawlhealth-demo-")))
            setting = set_up(stack, folder, patience, plain.say)
            for name, url in setting.addresses.items():
                plain.say(f"{name + ':':<15} {url}")
            play = Play(setting, _screen(out, plain, setting), patience, begun=begun, impatient=once)
            play.tell()
            status = _conclude(play.failures, setting, plain)
            if not once:
                plain.say("the demo goes on until Ctrl-C")
                play.stay()
        except Ended:
            return INTERRUPTED if status is None else status
        except (DemoError, OSError) as error:
            plain.say(f"the demo cannot go on: {error}")
            return 1
    return status


def _screen(out: TextIO, plain: PlainScreen, setting: Setting) -> Screen:
    if not out.isatty() or os.environ.get("TERM") == "dumb":
        return plain
    return LiveScreen(out, setting.addresses, colour="NO_COLOR" not in os.environ)


def _conclude(failures: list[str], setting: Setting, screen: Screen) -> int:
    """Say how it went; the exit status."""
    if failures:
        screen.say("the story did NOT go as it should:")
        for failure in failures:
            screen.say(f"  not seen: {failure}")
        return 1
    alerts = "pages and resolutions arrived" if setting.paging else "alerts were not tried"
    screen.say(f"the story went as it should: every stage was seen, {alerts}")
    return 0
