"""One fetch on its way: its clock, its line, what it met, and the room that its body takes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Final

from crawlhealth.canary.wire import Line, Watch

LARGE_BYTES: Final = 512 << 10
"""A body over this size takes one of few places."""


class Room:
    """A bounded number of large bodies in memory at once, whoever they belong to. Thread-safe."""

    def __init__(self, places: int) -> None:
        self._places = threading.BoundedSemaphore(places)

    def enter(self, watch: Watch) -> None:
        """Take a place, when one is free. Raises Failure (timeout) when none is by the deadline."""
        if not self._places.acquire(timeout=watch.remaining()):
            raise watch.timeout()

    def leave(self) -> None:
        """Give a place back."""
        self._places.release()


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One fetch on its way, over all its redirects: its clock, its line, and what it met. Filled while it goes.

    `forwarded` says that the line ends at a proxy which speaks HTTP with the site itself, `large` that a
    place in `room` was taken, which whoever ends the attempt gives back.
    """

    watch: Watch
    room: Room
    large: bool = False
    line: Line | None = None
    address: str = ""
    public: bool = False
    forwarded: bool = False
    not_after: dict[str, float] = field(default_factory=dict)

    def grow(self, size: int) -> None:
        """Note how large the body is by now: with more than LARGE_BYTES it waits for a place. Raises Failure."""
        if size > LARGE_BYTES and not self.large:
            self.room.enter(self.watch)
            self.large = True

    def hang_up(self) -> None:
        """Close the line that is open."""
        if self.line is not None:
            self.line.hang_up()
            self.line = None
