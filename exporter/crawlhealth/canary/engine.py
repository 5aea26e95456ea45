"""The canary engine: scheduler, fetcher, extraction and runner wired together, for `serve` and for `probe`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from crawlhealth.canary.arrival import Arrival
from crawlhealth.canary.extract import Extractor, TooComplex
from crawlhealth.canary.fetch import Fetcher
from crawlhealth.canary.routecheck import RouteChecks
from crawlhealth.canary.runner import Runner, Sizes, SizesKey
from crawlhealth.canary.scheduler import Scheduler
from crawlhealth.canary.structures import Structures
from crawlhealth.config import Canary, Config
from crawlhealth.model import CanaryRun, Structure


class Engine:
    """Runs all canaries of a configuration on schedule.

    `record` gets each run, `lag` the seconds that it started late (politeness waits aside), `skipped` is called for
    each run that was left out. All are called from the engine's threads; no run is recorded once `stop` has returned.
    `sizes` are those of the last ok bodies by site, canary and route, as of an earlier process; `structures` those of
    their values that must stay unchanged.
    """

    def __init__(
        self,
        config: Config,
        *,
        record: Callable[[CanaryRun], object],
        lag: Callable[[float], object] = lambda _seconds: None,
        skipped: Callable[[], object] = lambda: None,
        sizes: Mapping[SizesKey, Iterable[int]] | None = None,
        structures: Mapping[SizesKey, Mapping[str, Structure]] | None = None,
    ) -> None:
        self._record = record
        self._sizes = Sizes(sizes or {})
        self._structures = Structures(structures or {})
        self._extractor = Extractor(config.fetch.extract_timeout.total_seconds())
        self._fetcher = Fetcher(config.fetch)
        self._config = config
        self._runner = self._make_runner(config)
        self._recording = threading.Lock()
        self._stopped = False
        self._checks = RouteChecks(self._run)
        self._scheduler = Scheduler(config, self._run, lag=lag, skipped=skipped)

    def start(self) -> None:
        """Begin; returns at once."""
        if any(canary.expect for canary in self._config.canaries):
            with suppress(TooComplex):  # logged; runs will say so until a worker starts
                self._extractor.warm_up()
        self._scheduler.start()

    def stop(self) -> None:
        """Start no more runs, give those under way a short while, and end the worker processes."""
        self._checks.stop()
        self._scheduler.stop()
        with self._recording:
            self._stopped = True
        self._extractor.close()

    def take(self, canary: Canary, arrival: Arrival) -> CanaryRun | None:
        """Judge and record what the user's own crawler got of a canary.

        None when its site has left the configuration, or the engine has stopped.
        """
        run = self._runner.take(canary, arrival)
        if run is None:
            return None
        with self._recording:
            if self._stopped:
                return None
            self._record(run)
        return run

    def check_routes(self, site: str) -> bool:
        """Run a canary of a site over all its routes soon, beside the schedule; False where that would tell nothing."""
        return self._checks.begin(site, self._config)

    def replace(self, config: Config) -> None:
        """Follow a new configuration; runs under way end under the old one."""
        self._fetcher = Fetcher(config.fetch)
        self._extractor.seconds = config.fetch.extract_timeout.total_seconds()
        self._config = config
        self._runner = self._make_runner(config)
        keys = {(canary.site, canary.name, route) for canary in config.canaries for route in canary.routes}
        self._sizes.keep(keys)
        self._structures.keep(keys)
        self._scheduler.replace(config)

    @staticmethod
    @contextmanager
    def once(
        config: Config,
        *,
        sizes: Mapping[SizesKey, Iterable[int]] | None = None,
        structures: Mapping[SizesKey, Mapping[str, Structure]] | None = None,
    ) -> Iterator[Runner]:
        """A runner without a schedule, for a single look."""
        with Extractor(config.fetch.extract_timeout.total_seconds()) as extractor:
            yield Runner(
                config,
                fetcher=Fetcher(config.fetch),
                extractor=extractor,
                sizes=Sizes(sizes or {}),
                structures=Structures(structures or {}),
            )

    def _make_runner(self, config: Config) -> Runner:
        return Runner(
            config,
            fetcher=self._fetcher,
            extractor=self._extractor,
            sizes=self._sizes,
            structures=self._structures,
        )

    def _run(self, canary: Canary, routes: tuple[str, ...]) -> float | None:
        runs = self._runner.run(canary, routes)
        for run in runs:
            with self._recording:
                if not self._stopped:
                    self._record(run)
        return max((run.retry_after for run in runs if run.retry_after is not None), default=None)
