"""Working: pieces of work done in one process or in several, with word of how far they are."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Final, Protocol, TypeVar

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)
Told = Callable[[int], object]
"""Is told how many steps more are done."""

STEPS_AT_ONCE: Final = 500
"""Word is given after so many steps."""


class WorkError(Exception):
    """A process ended before its work was done."""


class Piece(Protocol[Result_co]):
    """Some work that needs nothing of the rest. It can be pickled, and so can its result."""

    @property
    def steps(self) -> int:
        """How many steps it is."""
        ...

    def done(self, told: Told) -> Result_co:
        """Do it."""
        ...


class Counted:
    """Counts single steps, and gives word of many together."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._steps = 0

    def one_more(self) -> None:
        """One more step is done."""
        self._steps += 1
        if self._steps >= STEPS_AT_ONCE:
            self.rest()

    def rest(self) -> None:
        """Give word of what it has not been given of."""
        self._told(self._steps)
        self._steps = 0


def each(pieces: Sequence[Piece[Result]], told: Told, *, processes: int = 1) -> Iterator[Result]:
    """The results of some pieces as they are done, in any order.

    Raises what a piece raises, and WorkError when a process dies.
    """
    several = min(processes, len(pieces))
    if several <= 1:
        for piece in pieces:
            yield piece.done(told)
        return
    context = multiprocessing.get_context("spawn")  # a fork would take the locks of other threads along
    running, readers = [], []
    for number in range(several):
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(pieces[number::several], writer), daemon=True)
        process.start()
        writer.close()
        running.append(process)
        readers.append(reader)
    try:
        yield from _read(readers, told)
        for process in running:
            process.join()
            if process.exitcode:
                raise WorkError(f"a process of the backtest ended with {process.exitcode}")
    finally:
        for process in running:
            process.kill()


def _read(readers: list[Connection], told: Told) -> Iterator[Result]:
    open_ = list(readers)
    while open_:
        for reader in wait(open_):
            assert isinstance(reader, Connection)
            try:
                word, value = reader.recv()
            except EOFError:
                open_.remove(reader)
                continue
            if word == "steps":
                told(value)
            elif word == "failed":
                raise value
            else:
                yield value


def _work(pieces: Sequence[Piece[Result]], writer: Connection) -> None:
    with writer, suppress(BrokenPipeError):  # whoever asked has gone
        try:
            for piece in pieces:
                writer.send(("result", piece.done(lambda steps: writer.send(("steps", steps)))))
        except Exception as error:  # noqa: BLE001 - it is raised again where the result is waited for
            writer.send(("failed", error))
