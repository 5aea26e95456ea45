"""Thousands of sites over several routes with weeks of history: evaluation, start, scrape, memory and disk.

    python bench/scale.py [--sites 1000 3000 10000] [--days 15]

Makes a history as a running exporter would have left it (hours of all days with their marks, minutes of the last six
hours), learns the baselines once, then starts a real `crawlhealth serve` on it. Prints one table, a row for each number
of sites. Exits 1 when, for 10,000 sites or fewer, one evaluation takes more than 0.5 s of processor time, or the
exporter more than 900 MB.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import requests
import zstandard

from crawlhealth import configfile, stats
from crawlhealth.history import FILE_NAME, History, rollup
from crawlhealth.history.batch import Batch
from crawlhealth.history.database import transaction
from crawlhealth.judge import Judge
from crawlhealth.marks import GOOD
from crawlhealth.outcome import Source
from crawlhealth.tally import Tally, pack

ROUTES = ("direct", "dc-us", "residential")
HOUR, DAY = 3600, 86400
FINE_HOURS = 6
AN_HOUR = 66
"""Requests of a site and route in an hour: 200 of a site."""
READY_SECONDS = 600
BOUNDS = {"evaluation CPU s": 0.5, "RSS MB": 900.0}
BOUND_SITES = 10_000
EVALUATIONS = 9
LAG_EVERY = 0.01


def tally(draw: random.Random, requests: int) -> Tally:
    """Some traffic of a calm site."""
    one = Tally(bytes=requests * 20_000, records_valid=requests * 10, retries=int(draw.random() < 0.1))
    for _ in range(requests):
        chance = draw.random()
        if chance < 0.02:
            one.challenge += 1
        elif chance < 0.03:
            one.hard_block += 1
        elif chance < 0.04:
            one.error += 1
        else:
            one.ok += 1
            bucket = stats.bucket(draw.lognormvariate(-1.2, 0.5))
            one.latency[bucket] = one.latency.get(bucket, 0) + 1
            one.latency_sum += stats.middle(bucket)
    one.extractions_ok = one.ok
    return one


def name(number: int) -> str:
    return f"site-{number:05d}"


def write_config(folder: Path, sites: int, *, detail: str) -> Path:
    path = folder / "crawlhealth.yml"
    lines = [
        "listen: 127.0.0.1:0", "data_dir: ./data", f"metrics: {{detail: {detail}}}",
        "routes: {dc-us: {proxy: 'http://127.0.0.1:9'}, residential: {proxy: 'http://127.0.0.1:9'}}", "sites:",
    ]  # fmt: skip
    lines += [f"  {name(n)}: {{hosts: [{name(n)}.example], routes: [{', '.join(ROUTES)}]}}" for n in range(sites)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def make(folder: Path, sites: int, days: int) -> None:
    """The history as it stands on disk after `days` of traffic."""
    draw = random.Random(1)
    now = time.time()
    hours = [pack(tally(draw, AN_HOUR)) for _ in range(500)]
    minutes = [pack(tally(draw, 1)) for _ in range(500)]
    total = pack(tally(draw, AN_HOUR * 100))
    config = configfile.load(write_config(folder, sites, detail="full"), environ={})
    history = History.open(config.data_dir / FILE_NAME, config.history, now=now)
    whole = int(now // HOUR * HOUR) - FINE_HOURS * HOUR
    with closing(history):
        connection = history._writer  # the only way to write what took weeks
        connection.execute("PRAGMA synchronous=OFF")
        with transaction(connection):
            connection.executemany(
                "INSERT INTO days (site, day, step, strata) VALUES (?, ?, ?, ?)",
                _days(draw, sites, whole - days * DAY, whole, hours),
            )
            connection.executemany(
                "INSERT INTO judged VALUES (?, ?, ?)",
                (
                    (day, name(n), bytes([GOOD] * 24))
                    for day in range((whole - days * DAY) // DAY * DAY, whole, DAY)
                    for n in range(sites)
                ),
            )
            for start in range(whole, whole + FINE_HOURS * HOUR, 60):
                connection.executemany(
                    "INSERT INTO minutes (start, site, route, source, seconds, tally)"
                    " VALUES (?, ?, ?, 'traffic', 60, ?)",
                    ((start, name(n), route, draw.choice(minutes)) for n in range(sites) for route in ROUTES_SORTED),
                )
            connection.executemany(
                "INSERT INTO totals VALUES (?, ?, 'traffic', ?)",
                ((name(n), route, total) for n in range(sites) for route in ROUTES),
            )


ROUTES_SORTED = tuple(sorted(ROUTES))


def _days(
    draw: random.Random, sites: int, begin: int, end: int, tallies: list[bytes]
) -> Iterator[tuple[str, int, int, bytes]]:
    for n in range(sites):
        for day in range(begin // DAY * DAY, end, DAY):
            packed = [
                (route, Source.TRAFFIC, float(hour), draw.choice(tallies))
                for route in ROUTES_SORTED
                for hour in range(max(day, begin), min(day + DAY, end), HOUR)
            ]
            yield name(n), day, HOUR, zstandard.compress(rollup._encode(packed))


def learn(path: Path, out: multiprocessing.Queue[dict[str, float]]) -> None:
    """A first start: windows are made anew from the slots, and every baseline is learnt; then evaluations."""
    config = configfile.load(path, environ={})
    sites = tuple(config.sites)
    history = History.open(config.data_dir / FILE_NAME, config.history, now=time.time())
    figures = {}
    with closing(history):
        began = time.perf_counter()
        judge = Judge(history)
        judge.judge(config, time.time())
        figures["windows anew s"] = time.perf_counter() - began
        began = time.perf_counter()
        while judge.behind:
            judge.catch_up(config, time.time())
            history.commit(time.time())
        figures["baselines s"] = time.perf_counter() - began
        draw = random.Random(2)
        minute = [tally(draw, 1) for _ in range(500)]
        took, used, commits = [], [], []
        for _ in range(EVALUATIONS):
            now = time.time()
            slots = {(s, r, Source.TRAFFIC, now // 60 * 60): draw.choice(minute) for s in sites for r in ROUTES}
            history.add_batch(Batch(slots=slots))
            began = time.perf_counter()
            history.commit(now)
            commits.append(time.perf_counter() - began)
            began, worked = time.perf_counter(), time.thread_time()
            judge.judge(config, now)
            took.append(time.perf_counter() - began)
            used.append(time.thread_time() - worked)
        figures["evaluation s"] = statistics.median(took)
        figures["evaluation CPU s"] = statistics.median(used)
        figures["commit of all strata s"] = statistics.median(commits)
    out.put(figures)


@contextmanager
def serving(path: Path) -> Iterator[tuple[str, subprocess.Popen[str], float]]:
    """A real exporter: its URL, its process, and the seconds from its start until it was ready."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "crawlhealth.cli", "serve", "--config", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "listening on" in line)
        threading.Thread(target=process.stderr.read, daemon=True).start()
        url = line.rpartition(" ")[2].strip()
        while requests.get(url + "/-/ready", timeout=60).status_code != 200:
            if time.perf_counter() - began > READY_SECONDS:
                raise TimeoutError("not ready")
            time.sleep(0.02)
        yield url, process, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait(timeout=60)


def scrape(url: str, *, zipped: bool) -> tuple[float, bytes]:
    """Seconds and body of the best of three scrapes."""
    best, body = float("inf"), b""
    for _ in range(3):
        began = time.perf_counter()
        encoding = "gzip" if zipped else "identity"
        with requests.get(url + "/metrics", headers={"accept-encoding": encoding}, stream=True, timeout=120) as answer:
            body = answer.raw.read(decode_content=False)
        best = min(best, time.perf_counter() - began)
    return best, gzip.decompress(body) if zipped else body


def longest_wait(url: str, done: threading.Event, waits: list[float]) -> None:
    """How long the event loop keeps a small question waiting."""
    with requests.Session() as session:
        while not done.wait(LAG_EVERY):
            began = time.perf_counter()
            session.get(url + "/-/healthy", timeout=60)
            waits.append(time.perf_counter() - began)


def serve(folder: Path, sites: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    path = write_config(folder, sites, detail="full")
    with serving(path) as (url, process, ready):
        figures["start s"] = ready
        done, waits = threading.Event(), list[float]()
        asking = threading.Thread(target=longest_wait, args=(url, done, waits))
        asking.start()
        figures["scrape gzip s"], body = scrape(url, zipped=True)
        figures["scrape plain s"], plain = scrape(url, zipped=False)
        done.set()
        asking.join()
        figures["longest wait s"] = max(waits)
        own = sum(1 for line in body.splitlines() if line.startswith(b"crawlhealth_") and b'site="' in line)
        figures["series a site"] = own / sites
        figures["MB of text"] = len(plain) / 1e6
        figures["RSS MB"] = psutil.Process(process.pid).memory_info().rss / 1e6
    with serving(write_config(folder, sites, detail="score")) as (url, _, _ready):
        figures["scrape score s"], _ = scrape(url, zipped=True)
    figures["disk MB"] = sum(file.stat().st_size for file in (folder / "data").iterdir()) / 1e6
    return figures


def measure(sites: int, days: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make(folder, sites, days)
        context = multiprocessing.get_context("spawn")
        out: multiprocessing.Queue[dict[str, float]] = context.Queue()
        child = context.Process(target=learn, args=(folder / "crawlhealth.yml", out))
        child.start()
        figures = out.get()
        child.join()
        return figures | serve(folder, sites)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, nargs="+", default=[1000, 3000, 10_000])
    parser.add_argument("--days", type=int, default=15)
    arguments = parser.parse_args()
    broken = []
    for sites in arguments.sites:
        figures = measure(sites, arguments.days)
        print(f"{sites} sites x {len(ROUTES)} routes, {arguments.days} days of hours, {FINE_HOURS} hours of minutes")
        for label, value in figures.items():
            print(f"  {label:24} {value:10.3f}", flush=True)
        if sites <= BOUND_SITES:
            broken += [
                f"{sites} sites: {label} over {most:g}" for label, most in BOUNDS.items() if figures[label] > most
            ]
    if broken:
        sys.exit("\n".join(broken))


if __name__ == "__main__":
    main()
