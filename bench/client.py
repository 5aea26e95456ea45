"""What reporting costs a crawler: microseconds of its own thread, and memory while the exporter is away.

`python bench/client.py [REPORTS]` prints a table and exits 1 when a bound is broken. Beside it, what incrementing one
counter and observing one histogram of prometheus_client costs. The exporter that is away is a port where nobody
listens; the one that comes back, and counts, is a small server of this file's own.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
from prometheus_client import CollectorRegistry, Counter, Histogram

from crawlhealth.client import RegistryReporter, Reporter

MOST_MICROSECONDS = 5.0
MOST_MEGABYTES = 100.0
ROUNDS = 5
RATE = 50_000
"""Reports a second while the exporter is away: many times what one crawler does, to pass its ten minutes sooner."""


def main(arguments: list[str]) -> int:
    reports = int(arguments[0]) if arguments else 200_000
    sound = [cost("Reporter.report, exporter up", reports, up=True), cost("exporter away", reports, up=False)]
    registry = CollectorRegistry()
    exposed = RegistryReporter(registry)
    timed("RegistryReporter.report", lambda: exposed.report("shop", "ok", seconds=0.2, bytes=20_000), reports)
    requests = Counter("requests", "Requests.", ["site", "outcome"], registry=registry)
    seconds = Histogram("seconds", "Seconds.", ["site"], registry=registry)

    def counted() -> None:
        requests.labels("shop", "ok").inc()
        seconds.labels("shop").observe(0.2)

    timed("prometheus_client inc and observe", counted, reports)
    sound += [away(600_000, spool=False), away(600_000, spool=True)]
    return 0 if all(sound) else 1


def timed(name: str, call: Callable[[], None], times: int) -> float:
    """Microseconds of this thread for one call: the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.thread_time()
        for _ in range(times // ROUNDS):
            call()
        best = min(best, (time.thread_time() - begun) / (times // ROUNDS))
    print(f"{name:<40} {best * 1e6:6.2f} us")
    return best * 1e6


def cost(name: str, reports: int, *, up: bool) -> bool:
    with Counting() as server, Reporter(server.url if up else nowhere(), close_within=0.5) as reporter:

        def report() -> None:
            reporter.report("shop", "ok", route="dc-us", seconds=0.2, bytes=20_000, records_valid=1)

        return timed(name, report, reports) <= MOST_MICROSECONDS


def away(reports: int, *, spool: bool) -> bool:
    """As many reports as ten minutes at 1,000 a second bring, with nobody there; then the exporter comes back."""
    process = psutil.Process(os.getpid())
    with Counting() as server, tempfile.TemporaryDirectory() as folder:
        server.stop()
        before = process.memory_info().rss
        with Reporter(server.url, spool=Path(folder) if spool else None) as reporter:
            pause = threading.Event()
            most = 0
            for number in range(reports):
                reporter.report("shop", "ok", route="dc-us", seconds=number % 997 / 1000, bytes=number % 30_011)
                if number % (RATE // 10) == 0:
                    most = max(most, process.memory_info().rss)
                    pause.wait(0.1)
            grown = (max(most, process.memory_info().rss) - before) / 1e6
            down = reporter.counts()
            server.start()
            reporter.flush(60)
            counts = reporter.counts()
    exact = counts.delivered == server.counted == reports - counts.dropped
    name = "away for 600,000 reports, " + ("with a spool" if spool else "in memory")
    print(f"{name:<40} {grown:6.1f} MB more; {down.dropped} dropped, then {counts.delivered} delivered")
    return exact and grown <= MOST_MEGABYTES and (not spool or counts.dropped == 0)


def nowhere() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


class Counting:
    """A server that counts the lines pushed to it."""

    def __init__(self) -> None:
        self.counted = 0
        self.port = 0
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Counting:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        counting = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                lines = gzip.decompress(body).count(b"\n")
                counting.counted += lines
                answer = json.dumps({"accepted": lines, "rejected": []}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
