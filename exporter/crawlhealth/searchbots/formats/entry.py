"""What one line of an access log says, whatever its format."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec
import numpy as np

QUOTE: Final = ord('"')
LINE_END: Final = ord("\n")


class Entry(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One line. Texts are bytes as the visitor sent them, with the log's own escapes undone.

    `day` is the date on the log's own clock. `request` is "METHOD PATH VERSION", or what stood in its place.
    """

    address: bytes
    at: float  # Unix seconds
    day: str
    status: int
    agent: bytes = b""
    request: bytes = b""
    host: bytes = b""
    forwarded: bytes = b""  # X-Forwarded-For
    target: str = ""
    decision: str = ""

    @property
    def path(self) -> str:
        """The path that was asked for, with its query; the whole request where it has none."""
        parts = self.request.split(b" ")
        return (parts[1] if len(parts) > 1 else self.request).decode("utf-8", "replace")

    @property
    def method(self) -> str:
        """GET and the like; empty where the request is none."""
        parts = self.request.split(b" ")
        return parts[0].decode("ascii", "replace") if len(parts) > 1 else ""


class Format(Protocol):
    """A reader of one log's lines, with what it must remember from one to the next."""

    name: str

    @property
    def state(self) -> bytes:
        """What later lines need of earlier ones, to be given to `resume` when reading goes on another time."""

    def resume(self, state: bytes) -> None:
        """Go on where a reader left that had this state."""

    def read(self, line: bytes) -> Entry | None:
        """What a line (without its end) says; None where it cannot be read. Never raises."""

    def unreadable(self, chunk: bytes, lines: int) -> int:
        """How many of the `lines` lines of a chunk cannot be read, or 0 where all of them have the right shape.

        That is found out in passing, not line by line: a line of the right shape may still be one that `read` refuses.
        """


def count_unreadable(form: Format, chunk: bytes) -> int:
    """The same, line by line: directives and blank lines are no entries, and nothing unreadable either."""
    lines = chunk.split(b"\n")
    return sum(form.read(line) is None and not line.startswith(b"#") and not line.isspace() for line in lines if line)


def count(chunk: bytes, letter: int) -> int:
    """How often a byte is in a chunk: three times as fast as `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == letter))
