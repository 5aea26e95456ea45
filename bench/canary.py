"""CPU per probe: this exporter's canaries against blackbox_exporter, on one local page with one regular expression.

`python bench/canary.py [PROBES]` prints a table and exits 1 when a ratio is over its bound. Both sides make a fresh
connection per probe, one after another, and every process of theirs is counted, extraction workers included; the server
of the page and the driver of blackbox are processes of their own and count on neither side. The median of three rounds,
taken in turn, counts.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psutil

from crawlhealth.canary import Engine
from crawlhealth.checks import Check, Selector, ValueSpec
from crawlhealth.config import Canary, Config, Site
from crawlhealth.demo.site import PracticeSite

PATTERN = r"£(\d+\.\d\d)"
ROUNDS = 3
WARM_UP = 200
PAGE = "/product/3"
PRICE = ValueSpec(
    name="price",
    selector=Selector(kind="css", expression="p.price::text"),
    regex=PATTERN,
    checks=(Check(name="number", argument={"equals": 89.9}),),
)
TITLE = ValueSpec(
    name="title",
    selector=Selector(kind="css", expression="h1::text"),
    checks=(Check(name="equals", argument="Copper kettle"),),
)
CASES = (("one regular expression", (PRICE,), 0.8), ("two CSS values and classification", (PRICE, TITLE), 1.2))


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["serve"]:
        return serve_page()
    if arguments[:1] == ["exporter"]:
        return run_exporter(arguments[1], int(arguments[2]), int(arguments[3]))
    probes = int(arguments[0]) if arguments else 3000
    binary = shutil.which("prometheus-blackbox-exporter") or shutil.which("blackbox_exporter")
    if binary is None:
        print("blackbox_exporter is not installed (Debian: prometheus-blackbox-exporter): nothing to compare with")
        return 2
    with page_server() as url:
        print(f"{url}, {ROUNDS} rounds of {probes} probes one after another; ms of CPU per probe")
        blackbox: list[float] = []
        ours: list[list[float]] = [[] for _ in CASES]
        for _ in range(ROUNDS):
            blackbox.append(blackbox_cost(binary, url, probes))
            for case, costs in enumerate(ours):
                costs.append(exporter_cost(url, case, probes))
        return report(blackbox, ours)


def report(blackbox: list[float], ours: list[list[float]]) -> int:
    base = statistics.median(blackbox)
    print(f"{'blackbox_exporter, one regular expression':<50} {base * 1000:.3f}")
    failed = False
    for (name, _, bound), costs in zip(CASES, ours, strict=True):
        cost = statistics.median(costs)
        failed = failed or cost / base > bound
        verdict = "ok" if cost / base <= bound else "OVER"
        print(f"{'crawlhealth, ' + name:<50} {cost * 1000:.3f}  ratio {cost / base:.2f} (at most {bound}) {verdict}")
    return 1 if failed else 0


def serve_page() -> int:
    with PracticeSite(log_limit=1) as site:
        print(site.url(PAGE), flush=True)
        sys.stdin.read()
    return 0


def run_exporter(url: str, case: int, probes: int) -> int:
    """Probes in a process of their own, as `serve` runs them; prints what they cost as JSON."""
    canary = Canary(name="canary", site="site", url=url, expect=CASES[case][1])
    config = Config(sites={"site": Site(name="site", hosts=("127.0.0.1",))}, canaries=(canary,))
    with Engine.once(config) as runner:
        good = sum(runner.run(canary, ("direct",))[0].success for _ in range(WARM_UP))
        before = cpu_of(os.getpid())
        good += sum(runner.run(canary, ("direct",))[0].success for _ in range(probes))
        cost = cpu_of(os.getpid()) - before
    print(json.dumps({"seconds": cost, "good": good}))
    return 0


def exporter_cost(url: str, case: int, probes: int) -> float:
    command = [sys.executable, __file__, "exporter", url, str(case), str(probes)]
    result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert result["good"] == WARM_UP + probes, f"probes failed: {result}"
    return float(result["seconds"]) / probes


def blackbox_cost(binary: str, url: str, probes: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "blackbox.yml")
        config.write_text(
            "modules:\n  page:\n    prober: http\n    timeout: 5s\n    http:\n      preferred_ip_protocol: ip4\n"
            f"      fail_if_body_not_matches_regexp: ['{PATTERN}']\n"
        )
        port = free_port()
        process = subprocess.Popen(
            [binary, f"--config.file={config}", f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"],
            stderr=subprocess.DEVNULL,
        )
        try:
            connection = waiting_connection(port)
            path = f"/probe?module=page&target={quote(url, safe='')}"
            probe(connection, path, WARM_UP)
            before = cpu_of(process.pid)
            probe(connection, path, probes)
            return (cpu_of(process.pid) - before) / probes
        finally:
            process.kill()
            process.wait()


def probe(connection: http.client.HTTPConnection, path: str, count: int) -> None:
    for _ in range(count):
        connection.request("GET", path)
        text = connection.getresponse().read()
        assert b"\nprobe_success 1" in text, text[-2000:]


def cpu_of(pid: int) -> float:
    """User and system seconds of a process, its children, and its children that have ended."""
    process = psutil.Process(pid)
    own = process.cpu_times()
    total = own.user + own.system + own.children_user + own.children_system
    for child in process.children(recursive=True):
        times = child.cpu_times()
        total += times.user + times.system
    return float(total)


@contextmanager
def page_server() -> Iterator[str]:
    command = [sys.executable, __file__, "serve"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def waiting_connection(port: int) -> http.client.HTTPConnection:
    pause = threading.Event()
    for _ in range(200):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.connect()
        except OSError:
            pause.wait(0.05)
        else:
            return connection
    raise SystemExit("blackbox_exporter does not listen")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
