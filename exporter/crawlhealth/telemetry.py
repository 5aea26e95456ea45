"""The exporter's own state as gauges: version, configuration reloads, evaluation."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from crawlhealth import __version__, metrics
from crawlhealth.shard import Shard


class Telemetry(Collector):
    """What the exporter says about itself. Times are unix seconds; None until the first one."""

    def __init__(self, shard: Shard | None = None) -> None:
        self.shard = shard or Shard(1, 1)
        self.reload_successful = True
        self.reloaded_at: float | None = None
        self.evaluated_at: float | None = None
        self.uplink_up = True
        self.queued: Callable[[], int] | None = None
        """How many pushed items wait for the disk, asked at each scrape."""

    def reloaded(self, now: float) -> None:
        """Record that the configuration was read with success."""
        self.reload_successful = True
        self.reloaded_at = now

    def reload_failed(self) -> None:
        """Record that the configuration could not be read, and that the old one works on."""
        self.reload_successful = False

    def evaluated(self, now: float, *, uplink_up: bool = True) -> None:
        """Record that every verdict was computed, and whether our own uplink was up."""
        self.evaluated_at = now
        self.uplink_up = uplink_up

    def collect(self) -> Iterable[Metric]:
        """The gauges, and the build information."""
        build = metrics.BUILD.info()
        build.add_metric([], {"version": __version__, "python": platform.python_version()})
        yield build
        shards = metrics.SHARDS.gauge()
        shards.add_metric([str(self.shard.number)], self.shard.count)
        yield shards
        successful = metrics.RELOAD_SUCCESSFUL.gauge()
        successful.add_metric([], float(self.reload_successful))
        yield successful
        uplink = metrics.UPLINK.gauge()
        uplink.add_metric([], float(self.uplink_up))
        yield uplink
        if self.queued is not None:
            queue = metrics.PUSH_QUEUE.gauge()
            queue.add_metric([], self.queued())
            yield queue
        for spec, at in ((metrics.RELOAD_TIME, self.reloaded_at), (metrics.EVALUATION, self.evaluated_at)):
            if at is not None:
                family = spec.gauge()
                family.add_metric([], at)
                yield family
