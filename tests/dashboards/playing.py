"""A Prometheus that holds a made-up past and scrapes a made-up exporter, with the bundle's rules on a fast clock."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from crawlhealth import bundle
from crawlhealth.bundle.preview import Prometheus
from crawlhealth.demo.processes import Process, free_port
from dashboards.courses import Past
from waiting import until

START_SECONDS = 60.0


@contextmanager
def exposed(past: Past) -> Iterator[str]:
    """An exporter that shows what is the present in a made-up past, as time goes on; gives its host and port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = past.page(time.time()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def bring(folder: Path, past: Past, moments: Mapping[str, Sequence[float]], labels: Mapping[str, str]) -> None:
    """Put a past into the storage of a Prometheus that does not run yet. `moments` are those of matching series."""
    for number, (of, chosen) in enumerate(moments.items()):
        text = folder / f"past-{number}.txt"
        text.write_text(past.openmetrics(chosen, labels, of))
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder / "data")]
        subprocess.run(command, check=True, capture_output=True, timeout=280)


@contextmanager
def prometheus(folder: Path, target: str, *, options: bundle.Options, scrape: str = "1s") -> Iterator[Prometheus]:
    """A Prometheus with the bundle's rules that scrapes the target and itself."""
    bundle.write(folder, options)
    port = free_port()
    config = folder / "prometheus.json"
    labels = dict.fromkeys(options.group_labels, "one")
    written = {
        "global": {"scrape_interval": scrape, "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "alerting" / "rules" / "*.yml")],
        "scrape_configs": [
            {"job_name": options.job, "static_configs": [{"targets": [target], "labels": labels}]},
            {"job_name": "prometheus", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]},
        ],
    }
    config.write_text(json.dumps(written))
    command = [
        "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=60d", f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with Process("prometheus", command, folder) as process:
        until(lambda: process.answers(url + "/-/ready"), START_SECONDS, "Prometheus is ready", process.log)
        yield Prometheus(url=url)
