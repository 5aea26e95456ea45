"""The engine as `serve` runs it: on time beside hostile pages and hanging sites, bounded, gone when stopped."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import psutil
import pytest

from crawlhealth.canary import Engine
from crawlhealth.checks import Check, Selector, ValueSpec
from crawlhealth.config import Canary, Config, Fetching, Site
from crawlhealth.model import CanaryRun
from crawlhealth.outcome import Outcome, Reason
from rawserver import RawServer
from waiting import until

HOSTILE = {
    "bomb:gzip": Reason.BODY_TOO_LARGE,
    "bomb:br": Reason.BODY_TOO_LARGE,
    "bomb:zstd": Reason.BODY_TOO_LARGE,
    "drip": Reason.TIMEOUT,
    "drip_head": Reason.TIMEOUT,
    "large": Reason.BODY_TOO_LARGE,
    "endless": Reason.BODY_TOO_LARGE,
    "big_header": Reason.INVALID_RESPONSE,
    "nested_tags": Reason.SERVED,
    "many_attributes": Reason.PAGE_TOO_COMPLEX,
    "nested_divs": Reason.PAGE_TOO_COMPLEX,
    "catastrophic": Reason.SERVED,
    "bad_encoding": Reason.SERVED,
    "nul_bytes": Reason.SERVED,
    "endless_redirects": Reason.TOO_MANY_REDIRECTS,
}
BUSY = {Reason.TIMEOUT, Reason.PAGE_TOO_COMPLEX}
"""What a busy machine may make of a page that takes long; test_fetch and test_extract look closer."""
NASTY = (
    ValueSpec(name="v", selector=Selector(kind="css", expression="div div div div div p span::text")),
    ValueSpec(name="w", selector=Selector(kind="css", expression="p::text"), regex="(a+)+$"),
)
GOOD = (
    ValueSpec(
        name="title",
        selector=Selector(kind="css", expression="h1::text"),
        checks=(Check(name="equals", argument="Copper kettle"),),
    ),
)


SERVE = """
import sys
from crawlhealth.demo.site import PracticeSite
with PracticeSite() as site:
    print(site.url(""), flush=True)
    sys.stdin.read()
"""


class Shop:
    """The practice site in a process of its own: the engine must not share its processor time."""

    def __init__(self, base: str) -> None:
        self._base = base.rstrip("/")

    def url(self, path: str) -> str:
        return self._base + path


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    process = subprocess.Popen([sys.executable, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Shop(process.stdout.readline().strip())
    finally:
        process.stdin.close()
        process.wait()


class Recorded:
    """What the engine tells."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._late = threading.local()
        self.runs: list[CanaryRun] = []
        self.lags: dict[str, list[float]] = {}
        self.skipped = 0

    def record(self, run: CanaryRun) -> None:
        with self._lock:
            self.runs.append(run)
            self.lags.setdefault(run.site, []).append(self._late.seconds)

    def lag(self, seconds: float) -> None:
        self._late.seconds = seconds

    def skip(self) -> None:
        with self._lock:
            self.skipped += 1

    def of(self, site: str) -> list[CanaryRun]:
        return [run for run in self.runs.copy() if run.site == site]

    def engine(self, config: Config) -> Engine:
        return Engine(config, record=self.record, lag=self.lag, skipped=self.skip)


def canary(
    name: str, site: str, url: str, *, every: float, timeout: float, expect: tuple[ValueSpec, ...] = GOOD
) -> Canary:
    return Canary(
        name=name, site=site, url=url, every=timedelta(seconds=every), timeout=timedelta(seconds=timeout), expect=expect
    )


def site(name: str, concurrency: int = 32) -> Site:
    return Site(name=name, hosts=("127.0.0.1",), min_gap=timedelta(0), max_concurrency=concurrency)


def most(lags: list[float]) -> float:
    """What 95 of 100 do not exceed."""
    return sorted(lags)[int(len(lags) * 0.95)]


def memory() -> int:
    """Bytes that this process and its workers hold, the practice site aside."""
    process = psutil.Process()
    total = process.memory_info().rss
    for child in process.children():
        try:
            total += child.memory_info().rss if "-c" not in child.cmdline() else 0
        except psutil.NoSuchProcess:
            continue
    return int(total)


@pytest.mark.alone
def test_hostile_pages_hurt_neither_memory_nor_the_other_canaries(shop: Shop) -> None:
    hostile = [
        canary(kind, "hostile", shop.url(f"/~{kind}/product/3"), every=4.0, timeout=3.0, expect=NASTY)
        for kind in HOSTILE
    ]
    good = [canary(f"good-{n}", "good", shop.url("/product/3"), every=2.0, timeout=1.9) for n in range(20)]
    told = Recorded()
    config = Config(
        sites={"hostile": site("hostile"), "good": site("good")},
        canaries=(*hostile, *good),
        fetch=Fetching(extract_timeout=timedelta(seconds=1)),
    )
    before, peak = memory(), 0
    engine = told.engine(config)
    engine.start()

    def all_ran() -> bool:
        nonlocal peak
        peak = max(peak, memory())
        return {run.canary for run in told.of("hostile")} == set(HOSTILE)

    try:
        until(all_ran, 60.0, "every hostile page has been tried")
    finally:
        engine.stop()
    for run in told.of("hostile"):
        assert run.classification.reason in {HOSTILE[run.canary], *BUSY}, (run.canary, run.classification)
    good_runs = told.of("good")
    assert all(run.success for run in good_runs), [run.classification for run in good_runs if not run.success][:3]
    assert len({run.canary for run in good_runs}) == 20
    assert most(told.lags["good"]) < 0.5
    assert peak - before < 300 << 20


@pytest.mark.alone
def test_hanging_sites_do_not_slow_the_others(shop: Shop) -> None:
    sites = {f"site-{n}": site(f"site-{n}", 2) for n in range(20)}
    hanging = {f"site-{n}" for n in range(0, 20, 10)}
    canaries = [
        canary(f"c{number}", name, shop.url(f"{'/~hang' if name in hanging else ''}/product/3"), every=3.0, timeout=2.9)
        for name in sites
        for number in range(5)
    ]
    told = Recorded()
    engine = told.engine(Config(sites=sites, canaries=tuple(canaries)))
    engine.start()

    def all_ran_twice() -> bool:
        per_canary = Counter((run.site, run.canary) for run in told.runs.copy() if run.site not in hanging)
        return len(per_canary) == 90 and min(per_canary.values()) >= 2

    try:
        until(all_ran_twice, 60.0, "every healthy canary has run twice")
    finally:
        engine.stop()
    healthy = [run for run in told.runs if run.site not in hanging]
    assert all(run.success for run in healthy)
    assert len(healthy) < 90 * 4, "the healthy keep their pace, none of them at the cost of another"
    assert most([lag for name, of_site in told.lags.items() if name not in hanging for lag in of_site]) < 0.5
    assert told.skipped > 0, "hanging canaries skip their next runs"


def test_a_reload_adds_and_removes_canaries_while_others_go_on(shop: Shop) -> None:
    def config(*names: str) -> Config:
        canaries = tuple(canary(name, "shop", shop.url("/product/3"), every=0.5, timeout=0.45) for name in names)
        return Config(sites={"shop": site("shop")}, canaries=canaries)

    told = Recorded()
    engine = told.engine(config("stays", "goes"))
    engine.start()
    try:
        until(lambda: {run.canary for run in told.runs.copy()} == {"stays", "goes"}, 20.0)
        engine.replace(config("stays", "comes"))
        told.runs.clear()
        until(lambda: {run.canary for run in told.runs.copy()} >= {"stays", "comes"}, 20.0)
        told.runs.clear()
        until(lambda: len(told.runs) >= 4, 20.0)
        assert {run.canary for run in told.runs.copy()} == {"stays", "comes"}
    finally:
        engine.stop()


def test_a_canary_obeys_retry_after() -> None:
    answers = {"away": b"HTTP/1.1 429 Slow down\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n"}

    def script(connection: socket.socket, server: RawServer) -> None:
        name = server.head(connection).split()[1].decode().strip("/")
        connection.sendall(answers.get(name, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"))

    with RawServer(script) as server:
        canaries = tuple(
            canary(name, "shop", server.url(f"/{name}"), every=0.5, timeout=0.45, expect=())
            for name in ("away", "stays")
        )
        told = Recorded()
        engine = told.engine(Config(sites={"shop": site("shop")}, canaries=canaries))
        engine.start()
        try:
            until(lambda: len([run for run in told.runs.copy() if run.canary == "stays"]) >= 5, 20.0)
        finally:
            engine.stop()
    (away,) = [run for run in told.runs if run.canary == "away"]
    assert away.classification.outcome is Outcome.HARD_BLOCK
    assert away.retry_after == 60.0


def test_nothing_is_recorded_and_no_process_left_after_stop(shop: Shop) -> None:
    before = {child.pid for child in psutil.Process().children()}
    told = Recorded()
    hanging = canary("hangs", "shop", shop.url("/~hang/"), every=0.5, timeout=0.4)
    good = canary("good", "shop", shop.url("/product/3"), every=0.5, timeout=0.4)
    engine = told.engine(Config(sites={"shop": site("shop")}, canaries=(hanging, good)))
    engine.start()
    until(lambda: told.runs, 20.0)
    engine.stop()
    count = len(told.runs)
    until(lambda: {child.pid for child in psutil.Process().children()} <= before, 5.0, "the workers have ended")
    assert len(told.runs) == count
