"""Dependencies: whether the services that a dispatcher needs answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from crawlhealth.searchbots.redis import RedisError, ping
from crawlhealth.searchbots.rounds import Rounds
from crawlhealth.searchbotsettings import Dependency

log = logging.getLogger(__name__)

EVERY: Final = 30.0
MOST_AT_ONCE: Final = 16


class Dependencies:
    """Asks each service every half minute. `tick` begins what is due and waits for nothing."""

    def __init__(self, dependencies: Callable[[], Mapping[str, Dependency]], *, clock: Callable[[], float]) -> None:
        self._dependencies = dependencies
        self._problems: dict[str, str | None] = {}
        self.rounds = Rounds("dependency", self._ask, most=MOST_AT_ONCE, retry=EVERY, clock=clock)

    def tick(self) -> None:
        """Begin what is due."""
        self.rounds.tick(self._dependencies())

    def problems(self) -> Iterator[tuple[str, str | None]]:
        """What is wrong with each service that was asked; None with one that answers."""
        return ((name, self._problems[name]) for name in self._dependencies() if name in self._problems)

    def _ask(self, name: str) -> float:
        dependency = self._dependencies().get(name)
        if dependency is None:
            return EVERY
        problem: str | None = None
        try:
            ping(dependency)
        except RedisError as error:
            problem = str(error)
        if problem is not None and self._problems.get(name) is None:
            log.warning("%s does not answer: %s", name, problem)
        elif problem is None and self._problems.get(name) is not None:
            log.info("%s answers again", name)
        self._problems[name] = problem
        return EVERY
