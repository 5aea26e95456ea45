"""Reading one HTTP/1.x answer off a line: its head within a bound, its body piece by piece."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Final

from crawlhealth.canary.failure import Failure
from crawlhealth.outcome import Reason

PIECE_BYTES: Final = 65_536
_LONGEST_CHUNK_LINE: Final = 4_096
_WITHOUT_BODY: Final = frozenset({204, 304})
_SINGLE: Final = frozenset({"content-type", "location", "refresh", "retry-after", "server"})
"""Headers that make no list: a second one, as proxies like to add, must not spoil the first."""
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_TRUNCATED: Final = "the body ends too early"


class Answer:
    """One answer. `headers` are name and value as sent, in order, with names in lower case; `joined` is by name.

    Of a header that makes no list `joined` has the first. Making one reads the head, interim answers (1xx) included, of
    at most `most` bytes. Raises Failure.
    """

    __slots__ = ("_left", "_method", "_source", "headers", "joined", "status")

    def __init__(self, source: io.BufferedReader, method: str, most: int) -> None:
        self._source = source
        self._method = method
        self._left = most
        self.status, self.headers = self._read_head()
        while 100 <= self.status < 200 and self.status != 101:
            self.status, self.headers = self._read_head()
        self.joined: dict[str, str] = {}
        for name, value in self.headers:
            if name not in self.joined:
                self.joined[name] = value
            elif name not in _SINGLE:
                self.joined[name] = f"{self.joined[name]}, {value}"

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes in, transfer coding removed. Raises Failure, also for a body that breaks off."""
        if self._method == "HEAD" or self.status in _WITHOUT_BODY or self.status < 200:
            return iter(())
        coding = self._values("transfer-encoding")
        if coding and coding != ["identity"]:
            if coding != ["chunked"]:
                raise Failure(Reason.UNDECODABLE_BODY, "a transfer coding that is not chunked")
            return self._chunks()
        lengths = set(self._values("content-length"))
        if not lengths:
            return self._until_closed()
        length = lengths.pop()
        if lengths or not (length.isascii() and length.isdigit() and len(length) < 20):
            raise Failure(Reason.INVALID_RESPONSE, "a Content-Length that is not one number")
        return self._exactly(int(length))

    def _values(self, wanted: str) -> list[str]:
        """The comma-separated values of a header, in lower case."""
        found = self.joined.get(wanted)
        return [] if found is None else [value.strip().lower() for value in found.split(",")]

    def _read_head(self) -> tuple[int, list[tuple[str, str]]]:
        line = self._head_line()
        if not line:
            raise Failure(Reason.CONNECTION_RESET, "the connection was closed without an answer")
        words = line.split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or len(words[1]) != 3 or not words[1].isdigit():
            raise Failure(Reason.INVALID_RESPONSE, "not an HTTP/1 answer")
        headers: list[tuple[str, str]] = []
        while (line := self._head_line()) not in (b"\r\n", b"\n"):
            if not line.endswith(b"\n"):
                raise Failure(Reason.INVALID_RESPONSE, "the head of the answer breaks off")
            text = line.decode("latin-1")
            name, colon, value = text.partition(":")
            if text[0] in " \t":
                if headers:  # a header's old-fashioned second line
                    headers[-1] = (headers[-1][0], f"{headers[-1][1]} {text.strip()}")
            elif colon:
                headers.append((name.strip().lower(), value.strip()))
        return int(words[1]), headers

    def _head_line(self) -> bytes:
        line = self._source.readline(self._left + 1)
        self._left -= len(line)
        if self._left < 0:
            raise Failure(Reason.INVALID_RESPONSE, "the head of the answer is too long")
        return line

    def _until_closed(self) -> Iterator[bytes]:
        while piece := self._source.read1(PIECE_BYTES):
            yield piece

    def _exactly(self, left: int) -> Iterator[bytes]:
        while left:
            piece = self._source.read1(min(left, PIECE_BYTES))
            if not piece:
                raise Failure(Reason.TRUNCATED_BODY, f"{_TRUNCATED}: {left} bytes are missing")
            left -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while size := self._chunk_size():
            yield from self._exactly(size)
            if self._chunk_line().strip():
                raise Failure(Reason.INVALID_RESPONSE, "a chunk that is longer than it says")
        while self._chunk_line().strip():
            pass  # trailers say nothing that is needed

    def _chunk_size(self) -> int:
        digits = self._chunk_line().partition(b";")[0].strip()
        if not digits or len(digits) > 16 or not _HEX.issuperset(digits):
            raise Failure(Reason.INVALID_RESPONSE, "a chunk without a size")
        return int(digits, 16)

    def _chunk_line(self) -> bytes:
        line = self._source.readline(_LONGEST_CHUNK_LINE)
        if not line.endswith(b"\n"):
            if len(line) < _LONGEST_CHUNK_LINE:
                raise Failure(Reason.TRUNCATED_BODY, _TRUNCATED)
            raise Failure(Reason.INVALID_RESPONSE, "a chunk header that is too long")
        return line
