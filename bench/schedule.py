"""The schedule under load: 5,000 canaries every 60 s on 250 sites, healthy, and with a tenth of the sites hanging.

`python bench/schedule.py [SECONDS [SECONDS_HANGING]]` (default 300 and 150) prints the figures and exits 1
when a bound is broken: p99 of the start lag (politeness waits aside), starts per second against their mean, memory of
all processes, and how much the hanging sites change the p99 of the others. The practice site is a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import psutil

from crawlhealth.canary import Engine
from crawlhealth.checks import Check, Selector, ValueSpec
from crawlhealth.config import Canary, Config, Site
from crawlhealth.demo.site import PracticeSite
from crawlhealth.model import CanaryRun
from crawlhealth.outcome import Reason

SITES, CANARIES, EVERY, TIMEOUT = 250, 20, 60.0, 20.0
P99_BOUND, BUNCHING_BOUND, RSS_BOUND, HANGING_BOUND = 0.050, 3.0, 300.0, 2.0
NOTICEABLE = 0.005
"""Under this many seconds a p99 is as good as none: twice of it is no harm."""
EXPECT = (
    ValueSpec(
        name="title",
        selector=Selector(kind="css", expression="h1::text"),
        checks=(Check(name="equals", argument="Copper kettle"),),
    ),
    ValueSpec(
        name="price",
        selector=Selector(kind="css", expression="p.price::text"),
        checks=(Check(name="number", argument={"equals": 89.9}),),
    ),
)


@dataclass(slots=True)
class Seen:
    """What one phase of the benchmark saw: lag and moment of each start, by site."""

    lags: dict[str, list[float]] = field(default_factory=dict)
    starts: Counter[int] = field(default_factory=Counter)
    good: int = 0
    runs: int = 0
    timeouts: int = 0
    skipped: int = 0
    rss: float = 0.0

    def p99(self, *, without: frozenset[str] = frozenset()) -> float:
        lags = sorted(lag for site, of_site in self.lags.items() if site not in without for lag in of_site)
        return lags[int(len(lags) * 0.99)]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["serve"]:
        return serve()
    healthy_seconds = float(arguments[0]) if arguments else 300.0
    hanging_seconds = float(arguments[1]) if len(arguments) > 1 else healthy_seconds / 2
    hanging = frozenset(name(number) for number in range(0, SITES, 10))
    with practice_site() as port:
        print(f"{SITES * CANARIES} canaries on {SITES} sites every {EVERY:g} s for {healthy_seconds:g} s")
        healthy = watch(port, frozenset(), healthy_seconds)
        failed = report(healthy, healthy.p99(), healthy_seconds)
        print(
            f"the same with {len(hanging)} sites hanging until the timeout of {TIMEOUT:g} s, for {hanging_seconds:g} s"
        )
        troubled = watch(port, hanging, hanging_seconds)
        failed |= report(troubled, troubled.p99(without=hanging), hanging_seconds)
        before, after = healthy.p99(without=hanging), troubled.p99(without=hanging)
        change = max(after, NOTICEABLE) / max(before, NOTICEABLE)
        failed |= line(
            "change of the others' p99", f"{before * 1000:.1f} -> {after * 1000:.1f} ms", change < HANGING_BOUND
        )
    return 1 if failed else 0


def report(seen: Seen, p99: float, seconds: float) -> bool:
    per_second = [seen.starts[second] for second in sorted(seen.starts)][1:-1]
    mean = sum(per_second) / len(per_second)
    failed = line(
        "runs", f"{seen.runs} ({seen.good} good, {seen.timeouts} timed out, {seen.skipped} skipped)", seen.good > 0
    )
    failed |= line("runs missing", f"{1 - (seen.runs + seen.skipped) / (SITES * CANARIES * seconds / EVERY):.1%}", True)
    failed |= line("p99 of the start lag", f"{p99 * 1000:.1f} ms (at most {P99_BOUND * 1000:g})", p99 <= P99_BOUND)
    worst = max(per_second) / mean
    failed |= line("most starts in a second", f"{worst:.2f} x the mean of {mean:.1f}", worst <= BUNCHING_BOUND)
    failed |= line("memory of all processes", f"{seen.rss:.0f} MB (at most {RSS_BOUND:g})", seen.rss <= RSS_BOUND)
    return failed


def line(what: str, value: str, good: bool) -> bool:
    print(f"  {what:<28} {value}{'' if good else '   OVER'}", flush=True)
    return not good


def watch(port: int, hanging: frozenset[str], seconds: float) -> Seen:
    seen, lock, mine = Seen(), threading.Lock(), threading.local()

    def lag(late: float) -> None:
        mine.late, mine.at = late, int(time.time())

    def record(run: CanaryRun) -> None:
        with lock:
            seen.lags.setdefault(run.site, []).append(mine.late)
            seen.starts[mine.at] += 1
            seen.runs += 1
            seen.good += run.success
            seen.timeouts += run.classification.reason is Reason.TIMEOUT

    def skipped() -> None:
        with lock:
            seen.skipped += 1

    engine = Engine(configuration(port, hanging), record=record, lag=lag, skipped=skipped)
    engine.start()
    pause, end = threading.Event(), time.monotonic() + seconds
    while time.monotonic() < end:
        pause.wait(1.0)
        seen.rss = max(seen.rss, memory())
    engine.stop()
    return seen


def configuration(port: int, hanging: frozenset[str]) -> Config:
    sites = {name(n): Site(name=name(n), hosts=(address(n),)) for n in range(SITES)}
    canaries = tuple(
        Canary(
            name=f"canary-{number}", site=name(n), expect=EXPECT,
            url=f"http://{address(n)}:{port}{'/~hang' if name(n) in hanging else ''}/product/3",
            every=timedelta(seconds=EVERY), timeout=timedelta(seconds=TIMEOUT),
        )
        for n in range(SITES)
        for number in range(CANARIES)
    )  # fmt: skip
    return Config(sites=sites, canaries=canaries)


def memory() -> float:
    """Resident megabytes of this process and its workers, the practice site aside."""
    own = psutil.Process(os.getpid())
    total = own.memory_info().rss
    for child in own.children():
        try:
            if "serve" not in child.cmdline():
                total += child.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return float(total / (1 << 20))


def name(number: int) -> str:
    return f"site-{number}"


def address(number: int) -> str:
    return f"127.0.{1 + number // 200}.{1 + number % 200}"


def serve() -> int:
    with PracticeSite(log_limit=1, addresses=[address(number) for number in range(SITES)]) as site:
        print(site.port, flush=True)
        sys.stdin.read()
    return 0


@contextmanager
def practice_site() -> Iterator[int]:
    command = [sys.executable, __file__, "serve"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
