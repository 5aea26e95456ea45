"""Targets: one HEAD a minute at each, shared by all who want to know whether it is up."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from crawlhealth.outcome import Reason
from crawlhealth.searchbots.looks import Look, Looked
from crawlhealth.searchbots.rounds import Rounds
from crawlhealth.searchbotsettings import Target

log = logging.getLogger(__name__)

EVERY: Final = 60.0
TIMEOUT: Final = 10.0
IN_A_ROW: Final = 5
"""So many probes without an answer, one after another, and a target is down, not just slow once."""
MOST_AT_ONCE: Final = 32


class Result(StrEnum):
    """What came of a probe."""

    OK = "ok"
    TIMEOUT = "timeout"
    HTTP_5XX = "http_5xx"
    CONNECT = "connect"  # no connection, or none that speaks HTTP


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """What the last probe of a target found. `missed` is how many in a row got no answer."""

    up: bool
    result: Result
    at: float
    seconds: float
    missed: int = 0
    detail: str = ""

    @property
    def down(self) -> bool:
        """Whether it is down for good: nothing answered for five minutes."""
        return self.missed >= IN_A_ROW


def result_of(looked: Looked) -> tuple[Result, bool]:
    """What a look says of a target, and whether it is up: 502, 503 and 504 say that nobody is behind it."""
    if looked.status is not None:
        result = Result.HTTP_5XX if looked.status >= 500 else Result.OK
        return result, looked.status not in (502, 503, 504)
    if looked.reason is Reason.TOO_MANY_REDIRECTS:
        return Result.OK, True
    return (Result.TIMEOUT if looked.reason is Reason.TIMEOUT else Result.CONNECT), False


class Targets:
    """The states of all targets. `tick` begins the probes that are due and waits for none."""

    def __init__(self, targets: Callable[[], Mapping[str, Target]], look: Look, *, clock: Callable[[], float]) -> None:
        self._targets = targets
        self._look = look
        self._clock = clock
        self._states: dict[str, TargetState] = {}
        self.probes: Counter[tuple[str, str]] = Counter()
        """Probes by target and result."""
        self.rounds = Rounds("probe", self._probe, most=MOST_AT_ONCE, retry=EVERY, clock=clock)

    def tick(self) -> None:
        """Begin what is due."""
        self.rounds.tick(self._targets())

    def state(self, name: str) -> TargetState | None:
        """What the last probe found; None before the first."""
        return self._states.get(name)

    def states(self) -> Iterator[tuple[str, TargetState]]:
        """The states of all configured targets that were probed."""
        return ((name, self._states[name]) for name in self._targets() if name in self._states)

    def _probe(self, name: str) -> float:
        target = self._targets().get(name)
        if target is None:
            return EVERY
        looked = self._look(target.url, method="HEAD", timeout=TIMEOUT)
        result, up = result_of(looked)
        before = self._states.get(name)
        missed = 0 if up else 1 + (before.missed if before is not None else 0)
        detail = looked.detail or (f"HTTP {looked.status}" if looked.status is not None else "")
        state = TargetState(
            up=up, result=result, at=self._clock(), seconds=looked.seconds, missed=missed, detail=detail
        )  # fmt: skip
        if missed == IN_A_ROW:
            log.warning("target %s is down, five probes in a row: %s", name, detail)
        elif up and before is not None and before.down:
            log.info("target %s is up again", name)
        self._states[name] = state
        self.probes[name, result.value] += 1
        return EVERY
