"""The push API under load: how many observations a second one exporter takes, durably, and what a second of it costs.

`python bench/push.py [SECONDS]` (default 30; 600 for the ten minutes of the memory bound). Two rounds against a real
`crawlhealth serve`: observations with outcomes, and 20 KB pages to classify, both gzipped, each push answered when it
is on disk. Beside them prometheus_client's own `labels().inc()` and `observe()`, without HTTP, decoding or disk. The
rates are per second of processor time of the server, which is what one core takes with the clients elsewhere. Exits 1
when a bound is broken: 150,000 and 3,000 a second, and memory that grows by more than a tenth after the first third.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import requests
from prometheus_client import CollectorRegistry, Counter, Histogram

OUTCOMES_BOUND, PAGES_BOUND, GROWTH_BOUND = 150_000.0, 3_000.0, 1.10
SITES, ROUTES = 50, ("direct", "dc-us", "dc-eu")
CLIENTS = 2
ITEMS, PAGES = 20_000, 400
"""Items of one push."""
PAGE_BYTES = 20_000
KINDS = ("ok",) * 90 + ("hard_block",) * 3 + ("challenge",) * 4 + ("soft_block", "error", "error")
REASONS = {
    "hard_block": "http_403",
    "challenge": "cloudflare_challenge",
    "soft_block": "login_page",
    "error": "timeout",
}


@dataclass(slots=True)
class Round:
    """What one round came to."""

    items: int
    wall: float
    cpu: float
    rss: list[float] = field(default_factory=list)

    def report(self, name: str, bound: float) -> bool:
        """Print it; whether a bound is broken."""
        rate = self.items / self.cpu
        first = max(self.rss[: max(1, len(self.rss) // 3)])
        growth = max(self.rss) / first
        print(
            f"{name}: {rate:,.0f}/s on one core (bound {bound:,.0f}), {self.items / self.wall:,.0f}/s by the clock;"
            f" server {self.cpu / self.wall:.0%} busy, {max(self.rss):.0f} MB, grew x {growth:.2f}"
        )
        return rate < bound or growth > GROWTH_BOUND


def main(arguments: Sequence[str]) -> int:
    seconds = float(arguments[0]) if arguments else 30.0
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as (url, process):
        outcomes = play(url, process, [with_outcomes(seed) for seed in range(8)], ITEMS, seconds)
        pages = play(url, process, [with_pages(seed) for seed in range(8)], PAGES, seconds)
    failed = outcomes.report("observations with outcomes", OUTCOMES_BOUND)
    failed |= pages.report(f"pages of {PAGE_BYTES // 1000} KB to classify", PAGES_BOUND)
    print(f"prometheus_client, labels().inc() and observe(): {bare_client():,.0f}/s")
    return 1 if failed else 0


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """An exporter with its configuration and data in a folder."""
    sites = ", ".join(f"site-{number}: {{hosts: [s{number}.example]}}" for number in range(SITES))
    routes = ", ".join(f"{route}: {{}}" for route in ROUTES)
    path = folder / "crawlhealth.yml"
    path.write_text(f"listen: 127.0.0.1:0\nsites: {{{sites}}}\nroutes: {{{routes}}}\n", encoding="utf-8")
    command = [sys.executable, "-m", "crawlhealth.cli", "serve", "--config", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = next(line.rpartition(" ")[2].strip() for line in process.stderr if "listening on" in line)
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield url, psutil.Process(process.pid)
        finally:
            process.terminate()


def play(url: str, server: psutil.Process, bodies: Sequence[bytes], items: int, seconds: float) -> Round:
    """Send the bodies again and again, each with a time of its own as key, and watch the server."""
    end = time.monotonic() + seconds
    sent = [0] * CLIENTS

    def client(number: int) -> None:
        with requests.Session() as session:
            session.trust_env = False
            while time.monotonic() < end:
                body = bodies[(sent[number] + number) % len(bodies)]
                headers = {
                    "content-type": "application/x-ndjson", "content-encoding": "gzip",
                    "idempotency-key": f"{number}-{time.monotonic_ns()}",
                }  # fmt: skip
                answer = session.post(url + "/api/v1/observations", data=body, headers=headers, timeout=60)
                if answer.status_code == 429:
                    continue
                assert answer.json()["accepted"] == items, answer.text[:500]
                sent[number] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    began, before = time.monotonic(), sum(server.cpu_times()[:2])
    for thread in threads:
        thread.start()
    rss = []
    while any(thread.is_alive() for thread in threads):
        rss.append(server.memory_info().rss / 1e6)
        threads[0].join(0.5)
    wall, cpu = time.monotonic() - began, sum(server.cpu_times()[:2]) - before
    return Round(items=sum(sent) * items, wall=wall, cpu=cpu, rss=rss)


def with_outcomes(seed: int) -> bytes:
    """A body of observations that have their outcomes."""
    chance, now = random.Random(seed), time.time()
    lines = []
    for _ in range(ITEMS):
        kind = chance.choice(KINDS)
        item: dict[str, object] = {
            "site": f"site-{chance.randrange(SITES)}", "route": chance.choice(ROUTES), "outcome": kind,
            "at": round(now - chance.random() * 60, 3), "seconds": round(chance.lognormvariate(-1, 0.6), 3),
            "bytes": chance.randrange(1_000, 60_000),
        }  # fmt: skip
        if kind in REASONS:
            item["reason"] = REASONS[kind]
        lines.append(json.dumps(item))
    return gzip.compress("\n".join(lines).encode(), 6)


def with_pages(seed: int) -> bytes:
    """A body of pages with the facts of their responses, one in ten a challenge."""
    chance, now = random.Random(seed), time.time()
    lines = []
    for _ in range(PAGES):
        site = chance.randrange(SITES)
        page = challenge(chance) if chance.random() < 0.1 else listing(chance)
        item = {
            "url": f"https://s{site}.example/list/{chance.randrange(1000)}", "route": chance.choice(ROUTES),
            "status": 200, "headers": {"Content-Type": "text/html; charset=utf-8", "Server": "nginx"}, "body": page,
            "at": round(now - chance.random() * 60, 3), "seconds": 0.3, "page_type": "listing",
        }  # fmt: skip
        lines.append(json.dumps(item))
    return gzip.compress("\n".join(lines).encode(), 6)


def listing(chance: random.Random) -> str:
    """An ordinary page of products."""
    parts = ["<!doctype html><html><head><title>Copper &amp; Steel: kettles</title></head><body><h1>Kettles</h1>"]
    size = 0
    while size < PAGE_BYTES - 200:
        parts.append(
            f'<article class="product_pod"><h3><a href="/p/{chance.randrange(10**6)}">Kettle'
            f' {chance.randrange(10**6):x}</a></h3><p class="price_color">{chance.random() * 90:.2f}</p></article>'
        )
        size += len(parts[-1])
    return "".join(parts) + "</body></html>"


def challenge(chance: random.Random) -> str:
    """A page in place of it, as large."""
    code = chance.randbytes(PAGE_BYTES // 2).hex()
    scripts = (
        f'<script src="/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1"></script><script>_="{code}"</script>'
    )
    return f"<!doctype html><html><head><title>Just a moment...</title>{scripts}</head><body></body></html>"


def bare_client(seconds: float = 2.0) -> float:
    """Observations a second with prometheus_client alone, by processor time."""
    registry = CollectorRegistry()
    counter = Counter("requests", "Requests.", ["site", "route", "source", "outcome"], registry=registry)
    histogram = Histogram("seconds", "Seconds.", ["site", "source"], registry=registry)
    chance = random.Random(0)
    calls = [
        (f"site-{chance.randrange(SITES)}", chance.choice(ROUTES), chance.choice(KINDS), chance.random())
        for _ in range(10_000)
    ]
    done, began = 0, time.process_time()
    while time.process_time() - began < seconds:
        for site, route, kind, took in calls:
            counter.labels(site, route, "traffic", kind).inc()
            histogram.labels(site, "traffic").observe(took)
        done += len(calls)
    return done / (time.process_time() - began)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
