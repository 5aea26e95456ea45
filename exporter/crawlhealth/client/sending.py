"""One push over HTTP, and what its answer means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Final, Self

import msgspec
import requests

from crawlhealth.client import answer
from crawlhealth.client.report import Batch
from crawlhealth.secret import Secret

CONNECT_SECONDS: Final = 3.0
ANSWER_SECONDS: Final = 30.0
LONGEST_WAIT: Final = 60.0
"""Seconds of Retry-After that are obeyed at most."""


class Next(Enum):
    """What becomes of a batch after one attempt."""

    SETTLED = "settled"
    AGAIN = "again"
    SPLIT = "split"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of sending one batch. `after` is how long the server asked to wait, in seconds."""

    next: Next
    accepted: int = 0
    rejected: int = 0
    after: float | None = None
    problem: str = ""


class _Rejected(msgspec.Struct):
    index: int = -1
    reason: str = ""


class _Answer(msgspec.Struct):
    accepted: int
    rejected: list[_Rejected] = []


_decode = msgspec.json.Decoder(_Answer).decode
_refusal = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Endpoint:
    """Where batches go: the exporter at `url`, with a bearer token if one is given. For one thread."""

    def __init__(self, url: str, token: Secret | None) -> None:
        self._address = url.rstrip("/") + "/api/v1/observations"
        self._session = requests.Session()
        self._session.trust_env = False  # the crawler's proxies do not lead to the exporter
        self._session.headers.update({"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"})
        if token is not None:
            self._session.headers["Authorization"] = f"Bearer {token.reveal()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.close()

    def push(self, batch: Batch, seconds: float = ANSWER_SECONDS) -> Attempt:
        """Send a batch once, with at most `seconds` to answer; a failure is an answer too."""
        try:
            with self._session.post(
                self._address,
                data=batch.data,
                headers={"Idempotency-Key": batch.key},
                timeout=(min(CONNECT_SECONDS, seconds), seconds),
                allow_redirects=False,
                stream=True,
            ) as response:
                return _meaning(response, answer.read(response) or b"", batch)
        except (requests.RequestException, OSError) as error:
            self._session.close()  # the next attempt begins with a fresh connection
            return Attempt(next=Next.AGAIN, problem=type(error).__name__)


def _meaning(response: requests.Response, body: bytes, batch: Batch) -> Attempt:
    status = response.status_code
    if status in {200, 202}:
        return _taken(body, batch)
    if status in {400, 403, 422} and _of_the_exporter(body):  # nothing of it can be taken, or may be
        said = body[:200].decode("utf-8", "replace")
        return Attempt(next=Next.SETTLED, rejected=batch.count, problem=f"{status}: {said}")
    if status == 413:
        return Attempt(next=Next.SPLIT, problem="413")
    return Attempt(next=Next.AGAIN, after=_retry_after(response), problem=f"answer {status}")


def _of_the_exporter(body: bytes) -> bool:
    """Whether a refusal is in the exporter's words; a page of a proxy in between says nothing about the batch."""
    try:
        _refusal(body)
    except (ValueError, RecursionError):
        return False
    return True


def _taken(body: bytes, batch: Batch) -> Attempt:
    try:
        said = _decode(body)
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors, and so is text that is none
        return Attempt(next=Next.AGAIN, problem="200 with an answer that is not the exporter's")
    accepted = max(0, min(said.accepted, batch.count))
    problem = f"item {said.rejected[0].index}: {said.rejected[0].reason[:200]}" if said.rejected else ""
    return Attempt(next=Next.SETTLED, accepted=accepted, rejected=batch.count - accepted, problem=problem)


def _retry_after(response: requests.Response) -> float | None:
    written = response.headers.get("Retry-After", "")
    return min(float(written), LONGEST_WAIT) if written.isascii() and written.isdigit() else None
