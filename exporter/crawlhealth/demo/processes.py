"""The processes of the demo: started with a log each, waited for, and ended by their id."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, Self

import requests

STOP_SECONDS: Final = 10.0
_LOG_TAIL: Final = 3000
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class DemoError(Exception):
    """The demo cannot go on; says why."""


class Ended(Exception):
    """Somebody ended the demo: Ctrl-C or a signal."""


class Patience:
    """Waiting that ends with `Ended` as soon as a signal asks for the end. Entered in the main thread only.

    A signal interrupts nothing by itself, so that no process is lost between its start and its note.
    """

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._handlers[number] = signal.signal(number, self._end)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal gave back

    def pause(self, seconds: float) -> None:
        """Wait so long. Raises Ended."""
        if self._ended.wait(seconds):
            raise Ended

    def until(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait until a condition holds. Raises DemoError after `seconds`, Ended."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise DemoError(f"waited {seconds:.0f} s in vain: {what}")
            self.pause(0.05)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._ended.set()


class Process:
    """One process with its output in `<folder>/<name>.log`, as a context manager. It gets no Ctrl-C of the terminal.

    It is asked to end (SIGTERM), and killed after `mercy` seconds.
    """

    def __init__(self, name: str, command: Sequence[str], folder: Path, *, mercy: float = STOP_SECONDS) -> None:
        self.name = name
        self._command = list(command)
        self._folder = folder
        self._mercy = mercy
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("wb") as out:
            self._process = subprocess.Popen(  # noqa: S603 - our own command line, no shell
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self._folder,
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(self._mercy)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    @property
    def pid(self) -> int:
        """Its id, once started."""
        assert self._process is not None
        return self._process.pid

    def status(self) -> int | None:
        """The exit status, None while it runs."""
        return None if self._process is None else self._process.poll()

    def log(self) -> str:
        """What it has written so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def check(self) -> None:
        """Raise DemoError, with the end of its log, if it has ended."""
        status = self.status()
        if status is not None:
            raise DemoError(f"{self.name} ended with status {status}:\n{self.log()[-_LOG_TAIL:]}")

    def answers(self, url: str) -> bool:
        """Whether it runs and answers a GET of `url` with 200. Raises DemoError if it has ended."""
        self.check()
        try:
            return get(url).status_code == 200
        except requests.RequestException:
            return False


def get(url: str) -> requests.Response:
    """GET of a loopback address, past every proxy of the environment."""
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url, timeout=5)


def free_port() -> int:
    """A TCP port of loopback that nobody listens on just now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
