"""What the rules cost a live Prometheus, with the score from the exporter and with fleet scoring.

    python bench/fleet.py [--sites 500 2000] [--minutes 12] [--scoring exporter fleet]

A target shows so many sites as the exporter does (three routes, two canaries each; `exposed.py`). What rules look back
on is brought in as blocks, as far as they look back. Prints how long evaluations of a group took in the median, as
Prometheus says of itself, and how much processor time each expression takes: asked one by one of a Prometheus that does
nothing else, so that whatever else the machine does weighs little. Exits 1 when the rules for the exporter's own score
take more than 5 s of it.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import requests

import exposed
from crawlhealth import bundle
from crawlhealth.bundle import rules
from crawlhealth.bundle.model import Group, Options, Scoring
from exposed import SITE, Line
from looks import SCRAPE, looked_back, write_past

BOUND = 5.0
TRIES = 5
SETTLES = 30
"""Seconds in which a Prometheus comes to rest after its start."""
DEAREST = 6
"""Rules of each group that are printed."""
ADDRESS = "127.0.0.1:19467"


@contextmanager
def target(site: Sequence[Line], sites: int) -> Iterator[int]:
    """A scrape target on a port: `site` under so many names, and what an exporter shows once."""
    names = [f"site-{number:05d}" for number in range(sites)]

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            now = time.time()
            said = [(SITE in line.labels, f"{line.of(SITE)} {line.at(now)}\n") for line in site]
            each = "".join(text for owned, text in said if owned)
            once = "".join(text for owned, text in said if not owned)
            body = (once + "".join([each.replace(SITE, name) for name in names])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()


@contextmanager
def prometheus(folder: Path, config: str) -> Iterator[int]:
    """A Prometheus in a folder, by its process."""
    (folder / "prometheus.yml").write_text(config)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             "--storage.tsdb.retention.time=30d", f"--web.listen-address={ADDRESS}"],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def measure(sites: int, scoring: Scoring, minutes: float) -> float:
    """Print the row of each group and of the dearest rules; returns the processor time of one round of all."""
    options = Options(scoring=scoring)
    groups = bundle.groups(options)
    site = list(exposed.lines(time.time()))
    with tempfile.TemporaryDirectory() as name, target(site, sites) as port:
        folder = Path(name)
        bundle.write(folder, options)
        labels = f'instance="127.0.0.1:{port}",job="crawlhealth"'
        past = folder / "past.om"
        count = write_past(past, looked_back(groups, options), site, labels, sites=sites, now=int(time.time()))
        subprocess.run(
            ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", "--max-block-duration=486h",
             past, folder / "data"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        past.unlink()
        config = (
            f"global: {{scrape_interval: {SCRAPE}s, scrape_timeout: {SCRAPE}s}}\n"
            "rule_files: ['alerting/rules/*.yml']\n"
            f"scrape_configs: [{{job_name: crawlhealth, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
        )
        with prometheus(folder, config) as process:
            seen = watch(process, minutes)
            now = time.time() - SCRAPE
        with prometheus(folder, "global: {}\n") as process:
            used = worked(process, groups, options, now)
    print(f"\n{sites} sites, {scoring}: {count / 1e6:.1f} million samples of the past, {seen.head:,.0f} series")
    return report(groups, seen, used)


def report(groups: Sequence[Group], seen: Seen, used: Mapping[tuple[str, str], float]) -> float:
    """Print what groups and their dearest rules took; returns the processor time of one round of all."""
    took = {key: statistics.median(each) for key, each in seen.took.items()}
    work = {group.name: sum(used[group.name, rule.name] for rule in group.rules) for group in groups}
    total = sum(work.values())
    for group in sorted(groups, key=lambda one: -work[one.name]):
        if work[group.name] < total / 100:
            continue
        every = f"every {group.interval / timedelta(seconds=1):.0f} s"
        times = f"processor {work[group.name]:5.2f} s, took {took.get((group.name, ''), math.nan):5.2f} s"
        print(f"  {group.name:<32} {len(group.rules):>3} rules {every:>11}: {times}")
        for rule in sorted((rule.name for rule in group.rules), key=lambda rule: -used[group.name, rule])[:DEAREST]:
            if used[group.name, rule] >= total / 50:
                print(f"    {rule:<58} {used[group.name, rule]:5.2f} s")
    share = sum(work[group.name] / group.interval.total_seconds() for group in groups)
    waited = sum(took.get((group.name, ""), math.nan) for group in groups)
    print(
        f"  all once: processor {total:.2f} s, took {waited:.2f} s; {share:.0%} of a core;"
        f" memory {seen.memory / 2**20:,.0f} MB; {seen.failed} failures",
        flush=True,
    )
    return total


def worked(process: int, groups: Sequence[Group], options: Options, now: float) -> dict[tuple[str, str], float]:
    """Seconds of processor time for each rule's expression at one moment, the least of some: a collection of garbage
    that falls into one of them is that of all.
    """
    ready = time.time() + 300
    while time.time() < ready:
        try:
            if requests.get(f"http://{ADDRESS}/-/ready", timeout=30).ok:
                break
        except requests.RequestException:
            pass
        time.sleep(1)
    time.sleep(SETTLES)
    used = {}
    program = psutil.Process(process)
    for group in groups:
        for rule in group.rules:
            query = {"query": f"count({rules.expression(rule, options)})", "time": f"{now}"}
            times = []
            for _ in range(TRIES):
                before = program.cpu_times()
                requests.post(f"http://{ADDRESS}/api/v1/query", data=query, timeout=600).raise_for_status()
                after = program.cpu_times()
                times.append(after.user + after.system - before.user - before.system)
            used[group.name, rule.name] = min(times)
    return used


@dataclass(slots=True)
class Seen:
    """How long evaluations took, by group and rule ("" for the whole group), how many failed, memory and series."""

    took: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    failed: int = 0
    memory: float = 0.0
    head: float = 0.0


def watch(process: int, minutes: float) -> Seen:
    """What evaluations took after a while of warming up; at least one of every group."""
    seen = Seen()
    last: dict[str, str] = {}
    begun = time.time()
    warm = begun + min(240.0, minutes * 30)
    while time.time() < begun + minutes * 60:
        time.sleep(2)
        try:
            groups = requests.get(f"http://{ADDRESS}/api/v1/rules", timeout=30).json()["data"]["groups"]
        except (requests.RequestException, ValueError):
            continue  # it is still starting
        for group in groups:
            name = group["name"]
            if last.get(name) == group["lastEvaluation"]:
                continue
            last[name] = group["lastEvaluation"]
            seen.failed += sum(rule["health"] == "err" for rule in group["rules"])
            if time.time() > warm or not seen.took[name, ""]:
                seen.took[name, ""].append(group["evaluationTime"])
                for rule in group["rules"]:
                    seen.took[name, rule["name"]].append(rule["evaluationTime"])
    stats = requests.get(f"http://{ADDRESS}/api/v1/status/tsdb", timeout=60).json()["data"]["headStats"]
    seen.head, seen.memory = stats["numSeries"], psutil.Process(process).memory_info().rss
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--minutes", type=float, default=12.0)
    parser.add_argument("--scoring", nargs="+", type=Scoring, default=list(Scoring))
    arguments = parser.parse_args()
    slow = False
    for scoring in arguments.scoring:
        for sites in arguments.sites:
            slow |= measure(sites, scoring, arguments.minutes) > BOUND and scoring is Scoring.EXPORTER
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
