"""What the rules cost a live Prometheus, with the score from the exporter and with fleet scoring.

    python bench/fleet.py [--sites 500 2000] [--minutes 12] [--scoring exporter fleet]

A target shows all series of so many sites (three routes, two canaries each). What rules look back on is brought in as
blocks, as far as they look back. Prints how long each group's evaluation took in the median, as Prometheus says of
itself, and what all groups take of one core. Exits 1 when the rules for the exporter's own score take more than 5 s.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path

import psutil
import requests

from crawlhealth import bundle, metrics, stats
from crawlhealth.bundle import rules
from crawlhealth.bundle.model import Group, Options, Record, Scoring
from crawlhealth.metrics import MetricSpec

SCRAPE = 30
BOUND = 5.0
ADDRESS = "127.0.0.1:19467"
VALUES = {
    "route": ("direct", "dc-us", "residential"),
    "source": ("traffic", "canary"),
    "outcome": ("ok", "hard_block", "challenge", "soft_block", "error"),
    "signal": ("hard_block", "challenge", "soft_block", "refused", "latency", "inverse_size"),
    "window": ("10m", "30m", "2h", "6h"),
    "band": ("normal", "degrading", "resisting", "unknown"),
    "canary": ("front", "listing"),
    "value": ("title", "price"),
    "le": (*(f"{bound:.3g}" for bound in stats.BOUNDS[48 : 225 : stats.SUBDIVISIONS]), "+Inf"),
    "width": ("1h", "6h"),
    "result": ("ok", "failed"),
    "reason": ("http_403", "http_429", "cloudflare_challenge"),
    "diagnosis": ("none",),
    "quantile": ("0.95", "0.9"),
    "phase": ("connect", "first_byte", "transfer"),
}  # fmt: skip
USUAL = {"ok": 0.96, "hard_block": 0.01, "challenge": 0.02, "soft_block": 0.005, "error": 0.005}
GAUGES = {
    "crawlhealth_band": 0.0,
    "crawlhealth_maintenance": 0.0,
    "crawlhealth_score": 100.0,
    "crawlhealth_parser_score": 100.0,
    "crawlhealth_advice_revisit_multiplier": 1.0,
    "crawlhealth_canary_success": 1.0,
    "crawlhealth_canary_value_ok": 1.0,
    "crawlhealth_canary_decoy_suspect": 0.0,
}
"""What is not 0.5, so that no alert is raised: each of them asks for its texts."""


def series(spec: MetricSpec, sites: int) -> Iterator[tuple[str, float]]:
    """The series of one metric, and by how much each grows in a second (a gauge: what it is)."""
    if spec.kind == "info" or not set(spec.labels) <= VALUES.keys() | {"site"}:
        return
    names = [name for name in spec.labels if name != "site"]
    suffix, choices = ("_bucket", [*names, "le"]) if spec.kind == "histogram" else ("", names)
    for site in range(sites) if "site" in spec.labels else [None]:
        owner = [] if site is None else [f'site="site-{site:05d}"']
        for chosen in product(*(VALUES[name] for name in choices)):
            labels = ",".join([*owner, *(f'{name}="{value}"' for name, value in zip(choices, chosen, strict=True))])
            known = dict(zip(choices, chosen, strict=True))
            rate = 0.02 * USUAL.get(known.get("outcome", "ok"), 1.0)
            if "le" in known:
                rate *= min(1.0, float(known["le"].replace("+Inf", "9")) / 2)
            yield f"{spec.name}{suffix}{{{labels}}}", rate if spec.kind != "gauge" else GAUGES.get(spec.name, 0.5)


@contextmanager
def target(sites: int) -> Iterator[int]:
    """A scrape target on a port; its counters grow with the clock."""
    counters: list[tuple[str, float]] = []
    gauges: list[tuple[str, float]] = []
    for spec in metrics.ALL:
        (gauges if spec.kind == "gauge" else counters).extend(series(spec, sites))
    still = "".join(f"{name} {value}\n" for name, value in gauges)
    begun = time.time() - 40 * 86400

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            lasted = int(time.time() - begun)
            body = (still + "".join(f"{name} {int(rate * lasted)}\n" for name, rate in counters)).encode()
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


LENGTH = r"((?:\d+(?:ms|[smhdw]))+)"
LOOK = re.compile(rf"\b([a-z_]+:[a-z0-9_:]+)(?:\{{[^}}]*\}})?\[{LENGTH}(?::{LENGTH}?)?\](?: offset {LENGTH})?")


def seconds(text: str) -> int:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    return sum(int(count) * units[unit] for count, unit in re.findall(r"(\d+)([smhdw])", text))


Looks = dict[str, tuple[int, list[tuple[int, int]]]]
"""By record: seconds between its samples, and from and to how many seconds ago rules read it."""


def looked_back(groups: tuple[Group, ...], options: Options) -> Looks:
    """What rules read of the past of other rules, where that is longer ago than half an hour."""
    texts = [(group, rule, rules.expression(rule, options)) for group in groups for rule in group.rules]
    every = {
        rule.name: 3600 if "% 3600" in text else round(group.interval.total_seconds())
        for group, rule, text in texts
        if isinstance(rule, Record)
    }
    found: Looks = {}
    for _, _, text in texts:
        for name, width, _, shift in LOOK.findall(text):
            if name in every:
                ago = seconds(shift)
                span = (ago + seconds(width) + 600, max(0, ago - 1500))
                found.setdefault(name, (every[name], []))[1].append(span)
    return {name: (step, spans) for name, (step, spans) in found.items() if max(a for a, _ in spans) > 1800}


def levels(name: str) -> list[str]:
    """The labels of a record, which its name begins with, but for the site."""
    return [part for part in name.partition(":")[0].split("_") if part != "site"]


def labelled(name: str, sites: int) -> Iterator[str]:
    """The series of a record."""
    choices = levels(name)
    for site in range(sites):
        for chosen in product(*(VALUES[choice] for choice in choices)):
            pairs = "".join(f',{choice}="{value}"' for choice, value in zip(choices, chosen, strict=True))
            yield f'{name}{{site="site-{site:05d}"{pairs}}}'


def value_of(name: str) -> tuple[str, ...]:
    """Values of a record in turn: something near to what it would be."""
    if "score" in name:
        return ("100", "99", "100", "98")
    if "band" in name:
        return ("0",)
    if "crawl_hour" in name or "six_hours" in name:
        return ("0.001", "0.002", "0.0015", "0.0005", "0.0012", "0.003", "0.0008")  # all is a little above it now
    return ("0.05", "0.06", "0.04")


def write_past(path: Path, looks: Looks, sites: int, now: int) -> int:
    """The past of records as OpenMetrics; returns how many samples."""
    count = 0
    with path.open("w") as file:
        for name, (step, spans) in sorted(looks.items()):
            if not set(levels(name)) <= VALUES.keys():
                continue
            ago = {a // step * step for begin, end in spans for a in range(end, begin, step)}
            values = value_of(name)
            times = [
                f" {values[place % len(values)]} {now // step * step - back}\n"
                for place, back in enumerate(sorted(ago, reverse=True))
                if back > 30
            ]
            for one in labelled(name, sites):
                file.write("".join([one + time_ for time_ in times]))
                count += len(times)
        file.write("# EOF\n")
    return count


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
    """Print the row of each group; returns the sum of medians over groups, a round of all."""
    options = Options(scoring=scoring)
    groups = bundle.groups(options)
    with tempfile.TemporaryDirectory() as name, target(sites) as port:
        folder = Path(name)
        bundle.write(folder, options)
        count = write_past(folder / "past.om", looked_back(groups, options), sites, int(time.time()))
        subprocess.run(
            ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", "--max-block-duration=486h",
             folder / "past.om", folder / "data"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        (folder / "past.om").unlink()
        with prometheus(folder, port) as process:
            took, failed, memory, head = watch(process, minutes)
    median = {group.name: statistics.median(took[group.name]) for group in groups}
    total = sum(median.values())
    share = sum(median[group.name] / group.interval.total_seconds() for group in groups)
    print(f"\n{sites} sites, {scoring}: {count / 1e6:.1f} million samples of the past, {head:,.0f} series")
    for group in sorted(groups, key=lambda one: -median[one.name]):
        if median[group.name] >= 0.02:
            every = group.interval / timedelta(seconds=1)
            print(f"  {group.name:<32} {len(group.rules):>3} rules every {every:>4.0f} s: {median[group.name]:6.2f} s")
    print(f"  all once: {total:.2f} s; {share:.0%} of a core; memory {memory / 2**20:,.0f} MB; {failed} failures")
    return total


def watch(process: int, minutes: float) -> tuple[dict[str, list[float]], int, float, float]:
    """How long evaluations took by group, how many failed, and memory and series in the end."""
    took: dict[str, list[float]] = defaultdict(list)
    seen: dict[str, str] = {}
    begun = time.time()
    warm = begun + min(240.0, minutes * 30)
    failed = 0
    while time.time() < begun + minutes * 60:
        time.sleep(2)
        try:
            groups = requests.get(f"http://{ADDRESS}/api/v1/rules", timeout=30).json()["data"]["groups"]
        except (requests.RequestException, ValueError):
            continue  # it is still starting
        for group in groups:
            if seen.get(group["name"]) != group["lastEvaluation"]:
                seen[group["name"]] = group["lastEvaluation"]
                failed += sum(rule["health"] == "err" for rule in group["rules"])
                if time.time() > warm or not took[group["name"]]:
                    took[group["name"]].append(group["evaluationTime"])
    head = requests.get(f"http://{ADDRESS}/api/v1/status/tsdb", timeout=60).json()["data"]["headStats"]["numSeries"]
    return took, failed, psutil.Process(process).memory_info().rss, head


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
