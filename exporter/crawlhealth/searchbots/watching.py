"""Watching: verification, targets, domains and dependencies as one running part, and what it shows on /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from crawlhealth import metrics
from crawlhealth.searchbots.dependencies import Dependencies
from crawlhealth.searchbots.expiry import Expiries
from crawlhealth.searchbots.looks import Look
from crawlhealth.searchbots.rangefolder import Get
from crawlhealth.searchbots.redirects import Redirects
from crawlhealth.searchbots.shelf import FILE_NAME, Shelf
from crawlhealth.searchbots.targets import Result, Targets
from crawlhealth.searchbots.verify import Verifier
from crawlhealth.searchbotsettings import SearchbotSettings

Step = Callable[[], None]


class Watching(Collector):
    """What is watched beside the logs. `steps` are to be taken about once a second each; none waits for a network.

    Fetching files of ranges anew is the exception, and the step `ranges` alone.
    """

    def __init__(
        self,
        settings: Callable[[], SearchbotSettings],
        folder: Path,
        *,
        look: Look,
        get: Get,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._shelf = Shelf(folder / FILE_NAME, now=clock())
        self.verifier = Verifier(settings, shelf=self._shelf, clock=clock, get=get)
        self.targets = Targets(lambda: settings().targets, look, clock=clock)
        self.redirects = Redirects(
            lambda: settings().watched_domains if settings().domains.redirects else (), look, clock=clock
        )
        self.expiries = Expiries(
            lambda: settings().watched_domains if settings().domains.expiry else (),
            lambda: settings().domains.rdap,
            look,
            shelf=self._shelf,
            clock=clock,
        )
        self.dependencies = Dependencies(lambda: settings().dependencies, clock=clock)
        self.steps: Mapping[str, Step] = {
            "verify": self.verifier.tick,
            "ranges": self.verifier.renew,
            "targets": self.targets.tick,
            "redirects": self.redirects.tick,
            "expiries": self.expiries.tick,
            "dependencies": self.dependencies.tick,
        }

    def stop(self) -> None:
        """End what can be ended, and write down what was found. Raises HistoryError."""
        try:
            self.verifier.stop()
        finally:
            self._shelf.close()

    def collect(self) -> Iterable[Metric]:
        """Everything of this part that has a value now."""
        every = chain(self._verification(), self._ranges(), self._targets(), self._domains(), self._dependencies())
        return (family for family in every if family.samples)

    def _verification(self) -> Iterator[Metric]:
        verifier = self.verifier
        for spec, number in (
            (metrics.VERIFICATION_KNOWN, verifier.known),
            (metrics.VERIFICATION_WAITING, verifier.resolver.waiting),
        ):
            gauge = spec.gauge()
            gauge.add_metric([], number)
            yield gauge
        asked = metrics.VERIFICATION_CACHE.counter()
        for result, count in (("hit", verifier.hits), ("miss", verifier.misses)):
            asked.add_metric([result], count)
        yield asked
        lookups = metrics.VERIFICATION_LOOKUPS.counter()
        for result in ("confirmed", "named", "nameless", "failed"):
            lookups.add_metric([result], verifier.lookups[result])
        lookups.add_metric(["refused"], verifier.refused)
        yield lookups

    def _ranges(self) -> Iterator[Metric]:
        at, good = metrics.RANGES_TIME.gauge(), metrics.RANGES_GOOD.gauge()
        files, problems = self.verifier.ranges.files, self.verifier.range_problems
        for name, file in sorted(files.items()):
            at.add_metric([name], file.at)
        for name in sorted({*files, *problems}):
            good.add_metric([name or "*"], float(name not in problems and "" not in problems))
        yield from (at, good)

    def _targets(self) -> Iterator[Metric]:
        up, seconds, probes = metrics.TARGET_UP.gauge(), metrics.TARGET_SECONDS.gauge(), metrics.TARGET_PROBES.counter()
        for name, state in self.targets.states():
            up.add_metric([name], float(state.up))
            if state.result in (Result.OK, Result.HTTP_5XX):
                seconds.add_metric([name], state.seconds)
            for result in Result:
                probes.add_metric([name, result.value], self.targets.probes[name, result.value])
        yield from (up, probes, seconds)

    def _domains(self) -> Iterator[Metric]:
        expiry, at, good = metrics.DOMAIN_EXPIRY.gauge(), metrics.DOMAIN_LOOKUP.gauge(), metrics.DOMAIN_GOOD.gauge()
        for domain, known, problem in self.expiries.known():
            if known is not None:
                expiry.add_metric([domain], known.until)
                at.add_metric([domain], known.at)
            good.add_metric([domain], float(problem is None))
        loop = metrics.REDIRECT_LOOP.gauge()
        for domain, looped in self.redirects.loops():
            loop.add_metric([domain], float(looped))
        yield from (expiry, at, good, loop)

    def _dependencies(self) -> Iterator[Metric]:
        up = metrics.DEPENDENCY_UP.gauge()
        for name, problem in self.dependencies.problems():
            up.add_metric([name], float(problem is None))
        yield up
