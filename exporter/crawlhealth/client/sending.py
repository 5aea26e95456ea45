"""One push over HTTP, and what its answer means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Final, Self

import msgspec
import requests

from crawlhealth.client.report import Batch
from crawlhealth.secret import Secret

CONNECT_SECONDS: Final = 3.0
ANSWER_SECONDS: Final = 30.0
LONGEST_WAIT: Final = 60.0
"""Seconds of Retry-After that are obeyed at most."""
_LARGEST_ANSWER: Final = 1_000_000


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
            response = self._session.post(
                self._address,
                data=batch.data,
                headers={"Idempotency-Key": batch.key},
                timeout=(min(CONNECT_SECONDS, seconds), seconds),
                allow_redirects=False,
            )
        except (requests.RequestException, OSError) as error:
            self._session.close()  # the next attempt begins with a fresh connection
            return Attempt(next=Next.AGAIN, problem=type(error).__name__)
        return _meaning(response, batch)


def _meaning(response: requests.Response, batch: Batch) -> Attempt:
    status = response.status_code
    if status in {200, 202}:
        return _taken(response.content[:_LARGEST_ANSWER], batch)
    if status in {400, 403, 422}:  # nothing of it can be taken, or may be
        return Attempt(next=Next.SETTLED, rejected=batch.count, problem=f"{status}: {response.text[:200]}")
    if status == 413:
        return Attempt(next=Next.SPLIT, problem="413")
    return Attempt(next=Next.AGAIN, after=_retry_after(response), problem=f"answer {status}")


def _taken(body: bytes, batch: Batch) -> Attempt:
    try:
        answer = _decode(body)
    except msgspec.MsgspecError:
        return Attempt(next=Next.AGAIN, problem="200 with an answer that is not the exporter's")
    accepted = max(0, min(answer.accepted, batch.count))
    problem = f"item {answer.rejected[0].index}: {answer.rejected[0].reason[:200]}" if answer.rejected else ""
    return Attempt(next=Next.SETTLED, accepted=accepted, rejected=batch.count - accepted, problem=problem)


def _retry_after(response: requests.Response) -> float | None:
    written = response.headers.get("Retry-After", "")
    return min(float(written), LONGEST_WAIT) if written.isascii() and written.isdigit() else None
