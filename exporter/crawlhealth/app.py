"""The running exporter: what is wired to what, and the loops that keep it going."""

from __future__ import annotations

import gc
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.registry import CollectorRegistry

from crawlhealth import configfile, metrics
from crawlhealth.canary import Engine
from crawlhealth.canary.arrivals import Arrivals
from crawlhealth.canary.reference import Reference
from crawlhealth.collector import Exposition, show
from crawlhealth.config import Config, Secret
from crawlhealth.history import FILE_NAME, Decisions, History
from crawlhealth.judge import Judge
from crawlhealth.looking import Looker
from crawlhealth.searchbots.posted import Posts
from crawlhealth.searchbots.service import EVERY, LogService
from crawlhealth.searchbots.stealth import Suspects
from crawlhealth.searchbots.watching import Watching
from crawlhealth.series import Text
from crawlhealth.shard import Shard
from crawlhealth.telemetry import Telemetry
from crawlhealth.traffic.intake import Intake
from crawlhealth.traffic.norms import Norms
from crawlhealth.verdict import Accepted, Override
from crawlhealth.web import (
    PAGE_INCIDENTS,
    PAGE_REFUSALS,
    PAGE_SPAN,
    DispatchState,
    SitePast,
    SitesState,
    Watch,
    WebState,
)

log = logging.getLogger(__name__)


CATCH_UP_EVERY = timedelta(seconds=1)
"""How often it is looked whether baselines are to be learnt."""
WATCH_EVERY = timedelta(seconds=1)
"""How often it is looked whether something of the search-bot part is due."""
SAVE_NORMS_EVERY = timedelta(minutes=1)
"""How often what was learnt of page sizes goes to disk."""


class Service:
    """Everything that `crawlhealth serve` runs, without the HTTP server.

    `path` is the configuration file, `config` what was read of it already; of both, only what belongs to the `shard`
    counts, where there is one. `start` begins the canaries and loops,
    `stop` ends them and commits.
    """

    def __init__(
        self,
        path: Path,
        *,
        environ: Mapping[str, str] | None = None,
        config: Config | None = None,
        shard: Shard | None = None,
    ) -> None:
        self._path = path
        self._environ = os.environ if environ is None else environ
        self._shard = shard
        self.config = self._part(configfile.load(path, environ=self._environ) if config is None else config)
        self.telemetry = Telemetry(shard)
        self.telemetry.reloaded(time.time())
        self.history = History.open(self.config.data_dir / FILE_NAME, self.config.history, now=time.time(), shard=shard)
        self._decisions = Decisions.open(self.config.data_dir / FILE_NAME, now=time.time())
        self._accepted: Mapping[str, Accepted] = self._decisions.accepted()
        self._judging = threading.Lock()
        self._sites = SitesState(
            names=lambda: self.config.sites,
            verdicts=lambda: self._judge.verdicts,
            put=self._put_override,
            end=self._end_override,
            why=self._why,
            owner=self._owner,
            shard=shard,
        )
        self.watch = Watch(self._sites.tag)
        self._engine = Engine(
            self.config,
            record=self.history.add_run,
            lag=self._lag,
            skipped=self._skipped,
            sizes=self.history.sizes(),
            structures={key: stored.structures for key, stored in self.history.committed().runs.items()},
        )
        self._reference = Reference()
        self._judge = Judge(
            self.history,
            self._decisions,
            reference=lambda: self._reference.up,
            degrading=self._engine.check_routes,
        )
        self._norms = Norms(self._decisions.norms())
        self.intake = Intake(self.history, self._norms, config=lambda: self.config, clock=time.time)
        self.telemetry.queued = lambda: self.intake.waiting
        self._arrivals = Arrivals(self._engine, self.history, lambda: self.config)
        self._awaited = _awaited(self.config, {}, time.time())
        looker = Looker(lambda: self.config.fetch, clock=time.time)
        self.watching = Watching(
            lambda: self.config.searchbots, self.config.data_dir, look=looker, get=looker.get, clock=time.time
        )
        verifier = self.watching.verifier
        self._logs = LogService(
            self.config.data_dir / FILE_NAME,
            lambda: self.config.searchbots,
            identify=verifier.identify,
            stealth=Suspects(lambda: verifier.ranges, lambda: self.config.searchbots.stealth),
            sent=self.watching.redirects.sent,
            clock=time.time,
        )
        self._posts = Posts(
            self._logs.store,
            self._logs.dispatches,
            lambda: self.config.searchbots,
            max_age=lambda: self.config.push.max_age,
            clock=time.time,
        )
        self._reloading = threading.Lock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin the canaries and the loops; returns at once."""
        self._loop("commit", lambda config: config.history.commit_every, self._commit, wait=self.history.wait)
        self._loop("evaluate", lambda config: config.score.evaluate_every, self._evaluate)
        self._loop("baselines", lambda _: CATCH_UP_EVERY, lambda: self._judge.catch_up(self.config, time.time()))
        self._loop("uplink", lambda config: config.uplink.every, self._look_at_reference)
        self._loop("learn", lambda _: SAVE_NORMS_EVERY, self._save_norms)
        self._loop("logs", lambda _: EVERY, self._logs.read)
        for name, step in self.watching.steps.items():
            self._loop(name, lambda _: WATCH_EVERY, step)
        self._engine.start()

    def stop(self) -> None:
        """End the canaries and the loops, and commit what is pending."""
        self._stopping.set()
        self._logs.end()
        self.history.wake()
        self._engine.stop()
        for thread in self._threads:
            thread.join()
        self._commit()
        self._save_norms()
        self._logs.stop()
        self.watching.stop()
        self._decisions.close()
        self.history.close()

    def reload(self) -> None:
        """Read the configuration again; raises ConfigError and changes nothing when it is broken."""
        with self._reloading:
            try:
                config = self._part(configfile.load(self._path, environ=self._environ))
            except configfile.ConfigError:
                self.telemetry.reload_failed()
                raise
            for name in ("data_dir", "listen", "history"):
                if getattr(config, name) != getattr(self.config, name):
                    log.warning("%s has changed: that takes a restart", name)
            self.config = config
            self._engine.replace(config)
            self._awaited = _awaited(config, self._awaited, time.time())
            self.telemetry.reloaded(time.time())
            log.info("configuration reloaded: %d sites, %d canaries", len(config.sites), len(config.canaries))

    def exposition(self) -> Exposition:
        """All that /metrics and the pages show, at this moment."""
        return Exposition(
            config=self.config,
            committed=self.history.committed(),
            verdicts=tuple(self._judge.verdicts.values()),
            now=time.time(),
            awaited=self._awaited,
            accepted=self._accepted,
            certificates=self.watching.redirects.certificates(),
        )

    def past(self, site: str, now: float) -> SitePast:
        """What the page of a site shows of its history. Raises HistoryError where that cannot be read."""
        since = now - PAGE_SPAN
        return SitePast(
            verdicts=self.history.verdicts(site, since),
            slots=self.history.hours(site, since),
            refusals=self.history.refusals(site, PAGE_REFUSALS),
            incidents=self._decisions.incidents(site=site, limit=PAGE_INCIDENTS),
            accepted=self._decisions.accepted_of(site),
        )

    def text(self) -> Text:
        """What /metrics shows of the sites and the history, at this moment."""
        text = Text()
        show(self.exposition(), text)
        self._logs.show(text.put)
        return text

    def registry(self) -> CollectorRegistry:
        """A registry of what is exposed beside the sites: the exporter itself."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self.telemetry)
        registry.register(self.watching)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        return registry

    def web_state(self) -> WebState:
        """What the HTTP side asks of this."""
        return WebState(
            text=self.text,
            registry=self.registry(),
            exposition=self.exposition,
            past=self.past,
            reload=self.reload,
            tokens=lambda: self.config.push.tokens,
            intake=self.intake,
            max_waiting_bytes=lambda: self.config.push.max_waiting_bytes,
            ready=self.ready,
            problem=self.problem,
            take_canary=self._arrivals.take,
            sites=self._sites,
            decisions=self._decisions,
            baseline=lambda: self.config.score.baseline,
            judge=self._evaluate,
            watch=self.watch,
            dispatches=DispatchState(
                settings=lambda: self.config.searchbots,
                tokens=lambda: self.config.push.tokens,
                take=self._posts.take,
                states=lambda tenant: self._logs.dispatches.states(tenant, time.time()),
                count=self.history.count,
                max_waiting_bytes=lambda: self.config.push.max_waiting_bytes,
            ),
        )

    def tenant_tokens(self) -> Sequence[Secret]:
        """The tokens of all tenants."""
        return [token for tenant in self.config.searchbots.tenants.values() for token in tenant.tokens]

    def ready(self) -> bool:
        """Whether every site has been judged once."""
        return self.telemetry.evaluated_at is not None

    def problem(self) -> str | None:
        """What keeps the exporter from working; None while it works."""
        if self._stopping.is_set():
            return "stopping"
        dead = [thread.name for thread in self._threads if not thread.is_alive()]
        return f"not running any more: {', '.join(dead)}" if dead else None

    def _part(self, config: Config) -> Config:
        return config if self._shard is None else config.part(self._shard)

    def _why(self, site: str) -> str:
        return self.config.unknown(site)

    def _owner(self, site: str) -> Shard | None:
        return self.config.owner(site)

    def _lag(self, seconds: float) -> None:
        self.history.observe(metrics.SCHEDULE_LAG, (), seconds)

    def _skipped(self) -> None:
        self.history.count(metrics.SKIPPED, ())

    def _commit(self) -> None:
        self.history.commit(time.time())

    def _evaluate(self) -> None:
        with self._judging:
            now = time.time()
            self._accepted = self._decisions.accepted()
            self._judge.judge(self.config, now)
            if self.telemetry.evaluated_at is None:
                gc.freeze()  # else each collection looks at what thousands of sites keep, and stops everything for long
            self.telemetry.evaluated(now, uplink_up=self._judge.uplink_up)
        self.watch.tell()

    def _put_override(self, override: Override) -> None:
        self._decisions.put(override)
        log.info("site %s: %s until %s", override.site, override.kind, override.until)
        self._evaluate()

    def _end_override(self, site: str) -> bool:
        ended = self._decisions.end(site, time.time())
        self._evaluate()
        return ended

    def _look_at_reference(self) -> None:
        self._reference.look(self.config.uplink.reference, self.config.fetch, now=time.time())

    def _save_norms(self) -> None:
        self._norms.keep(self.config.sites)
        self._decisions.put_norms(self._norms.changed())

    def _loop(
        self,
        name: str,
        every: Callable[[Config], timedelta],
        step: Callable[[], None],
        *,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        """Make a step again and again, `every` so often, or as soon as `wait` returns."""
        pause = self._stopping.wait if wait is None else wait

        def run() -> None:
            while not self._stopping.is_set():
                try:
                    step()
                except Exception:
                    log.exception("%s failed, will be tried again", name)
                if not self._stopping.is_set():
                    pause(every(self.config).total_seconds())

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()


def _awaited(config: Config, before: Mapping[tuple[str, str], float], now: float) -> Mapping[tuple[str, str], float]:
    """Since when each pushed canary is awaited: it begins when the canary is first configured."""
    keys = ((canary.site, canary.name) for canary in config.canaries if canary.fetch == "push")
    return {key: before.get(key, now) for key in keys}
