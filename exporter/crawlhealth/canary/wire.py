"""The bounds of one fetch on the wire: a clock that every read and write obeys, and a budget of bytes."""

from __future__ import annotations

import io
import ssl
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from crawlhealth.canary.failure import Failure
from crawlhealth.model import Phase
from crawlhealth.outcome import Reason

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

READ_BYTES: Final = 16_384
"""How much one read takes from the network: a response head may exceed its bound by that much, unseen."""


class Watch:
    """The clock of one fetch: a deadline for all of it, and the seconds spent in each phase, failed ones included."""

    __slots__ = ("_clock", "_deadline", "_mark", "_phase", "_start", "phases")

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = self._mark = clock()
        self._deadline = self._start + seconds
        self._phase: Phase | None = None
        self.phases: dict[Phase, float] = {}

    def enter(self, phase: Phase | None) -> None:
        """Begin a phase: the time since the last change counts to the phase before; None ends the last one."""
        now = self._clock()
        before = self._phase
        if before is not None:
            self.phases[before] = self.phases.get(before, 0.0) + now - self._mark
            self._mark = now
        self._phase = phase

    def remaining(self) -> float:
        """Seconds until the deadline, more than zero; raises Failure when it has passed."""
        left = self._deadline - self._clock()
        if left <= 0:
            raise self.timeout()
        return left

    def timeout(self) -> Failure:
        """The failure that says in which phase time ran out."""
        during = self._phase.value if self._phase is not None else "start"
        return Failure(Reason.TIMEOUT, f"no complete answer after {self._deadline - self._start:g} s, during {during}")

    @property
    def seconds(self) -> float:
        """Seconds since the fetch began."""
        return self._clock() - self._start


class Socket(Protocol):
    """What a line needs of a socket: plain, TLS, or TLS through TLS."""

    def recv_into(self, buffer: WriteableBuffer, /) -> int | None: ...  # noqa: D102 - as socket.socket has it
    def sendall(self, data: ReadableBuffer, /) -> None: ...  # noqa: D102 - as socket.socket has it
    def settimeout(self, value: float | None, /) -> None: ...  # noqa: D102 - as socket.socket has it
    def close(self) -> None: ...  # noqa: D102 - as socket.socket has it


class Line(io.RawIOBase):
    """A connected socket: every read and write ends at the watch's deadline, and it takes a bounded number of bytes.

    Stands in for a socket in http.client and urllib3. `close` does nothing, since http.client closes the socket of an
    answer that it still reads; `hang_up` closes it. Raises Failure only.
    """

    def __init__(self, sock: Socket, watch: Watch) -> None:
        self._sock = sock
        self._watch = watch
        self._left = 0
        self._exceeded = Failure(Reason.INVALID_RESPONSE, "more data than allowed")

    @property
    def socket(self) -> Socket:
        """The socket itself."""
        return self._sock

    def allow(self, size: int, exceeded: Failure) -> None:
        """From now on take `size` bytes; beyond them `exceeded` is raised."""
        self._left = size
        self._exceeded = exceeded

    def readable(self) -> bool:
        """Always, until hung up."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read what is there, at least one byte unless the other side is done."""
        try:
            self._sock.settimeout(self._watch.remaining())
            count = self._sock.recv_into(buffer) or 0
        except (OSError, ValueError) as error:
            raise self._failure(error) from None
        self._left -= count
        if self._left < 0:
            raise self._exceeded
        return count

    def recv_into(self, buffer: WriteableBuffer, /) -> int:
        """The same under a socket's name."""
        return self.readinto(buffer)

    def recv(self, size: int, _flags: int = 0) -> bytes:
        """At most `size` bytes, none when the other side is done."""
        buffer = bytearray(size)
        return bytes(memoryview(buffer)[: self.readinto(buffer)])

    def exactly(self, size: int) -> bytes:
        """Just so many bytes; raises Failure when the other side is done before."""
        data = b""
        while len(data) < size:
            more = self.recv(size - len(data))
            if not more:
                raise Failure(Reason.CONNECTION_RESET, "the other side closed the connection")
            data += more
        return data

    def sendall(self, data: ReadableBuffer, _flags: int = 0) -> None:
        """Send all of it."""
        try:
            self._sock.settimeout(self._watch.remaining())
            self._sock.sendall(data)
        except (OSError, ValueError) as error:
            raise self._failure(error) from None

    def makefile(self, _mode: str, *_args: object, **_options: object) -> io.BufferedReader:
        """A buffered reader, for http.client and TLS through TLS."""
        return io.BufferedReader(self, READ_BYTES)

    def settimeout(self, _seconds: float | None) -> None:
        """Nothing: the deadline rules."""

    def gettimeout(self) -> float:
        """What is left of the deadline."""
        return self._watch.remaining()

    def close(self) -> None:
        """Nothing; see `hang_up`."""

    def hang_up(self) -> None:
        """Close the socket without waiting for anything."""
        self._sock.close()

    def _failure(self, error: OSError | ValueError) -> Failure:
        if isinstance(error, TimeoutError | BlockingIOError):
            return self._watch.timeout()
        if isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError):
            return Failure(Reason.CONNECTION_RESET, "the connection was reset")
        if isinstance(error, ssl.SSLError):
            return Failure(Reason.TLS, f"TLS failed: {error.reason or 'unknown'}")
        if isinstance(error, OSError):
            return Failure(Reason.CONNECTION_FAILED, error.strerror or "the connection failed")
        return Failure(Reason.INVALID_RESPONSE, "the connection is closed")
