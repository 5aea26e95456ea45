"""What the rules cost a live Prometheus, with the score from the exporter and with fleet scoring.

    python bench/fleet.py [--sites 500 2000] [--minutes 12] [--scoring exporter fleet]

A target shows so many sites as the exporter does (three routes, two canaries each; `exposed.py`). What rules look back
on is brought in as blocks, as far as they look back. Prints how long the evaluation of each group and of its dearest
rules took in the median, as Prometheus says of itself, and what all groups take of one core. Exits 1 when the rules for
the exporter's own score take more than 5 s.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import requests

import exposed
from crawlhealth import bundle
from crawlhealth.bundle.model import Options, Scoring
from exposed import SITE, Line
from looks import SCRAPE, looked_back, write_past

BOUND = 5.0
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
def prometheus(folder: Path, port: int) -> Iterator[int]:
    """A Prometheus with the rules of a folder, by its process."""
    (folder / "prometheus.yml").write_text(
        f"global: {{scrape_interval: {SCRAPE}s, scrape_timeout: {SCRAPE}s}}\nrule_files: ['alerting/rules/*.yml']\n"
        f"scrape_configs: [{{job_name: crawlhealth, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
    )
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
    """Print the row of each group and of the dearest rules; returns the sum of medians over groups."""
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
        with prometheus(folder, port) as process:
            seen = watch(process, minutes)
    each = {key: statistics.median(took) for key, took in seen.took.items()}
    total = sum(each.get((group.name, ""), math.inf) for group in groups)
    share = sum(each[group.name, ""] / group.interval.total_seconds() for group in groups)
    print(f"\n{sites} sites, {scoring}: {count / 1e6:.1f} million samples of the past, {seen.head:,.0f} series")
    for group in sorted(groups, key=lambda one: -each[one.name, ""]):
        if each[group.name, ""] >= 0.02:
            every = group.interval / timedelta(seconds=1)
            print(
                f"  {group.name:<32} {len(group.rules):>3} rules every {every:>4.0f} s: {each[group.name, '']:6.2f} s"
            )
            dear = sorted((rule.name for rule in group.rules), key=lambda rule: -each.get((group.name, rule), 0.0))
            for rule in dear[:DEAREST]:
                if each.get((group.name, rule), 0.0) >= total / 50:
                    print(f"    {rule:<60} {each[group.name, rule]:6.2f} s")
    memory = f"memory {seen.memory / 2**20:,.0f} MB"
    print(f"  all once: {total:.2f} s; {share:.0%} of a core; {memory}; {seen.failed} failures", flush=True)
    return total


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
