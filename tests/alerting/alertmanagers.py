"""A real Alertmanager on the rendered configuration, and the webhook it tells."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from crawlhealth import bundle
from crawlhealth.demo.processes import Process, free_port
from running import plain_session
from waiting import until

START_SECONDS = 60.0
TOLD_SECONDS = 60.0
Told = tuple[str, str, str]
"""Name, site and status of an alert in a message."""


class Sink:
    """A webhook that keeps what it is sent, by path."""

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, Any]]] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append((self.path, json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Sink:
        Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def told(self, path: str) -> list[Told]:
        """The alerts told at a path, in order."""
        return [
            (alert["labels"]["alertname"], alert["labels"].get("site", ""), alert["status"])
            for at, message in list(self.received)
            if at == path
            for alert in message["alerts"]
        ]

    def wait_for(self, path: str, told: Told) -> None:
        """Wait until an alert has been told at a path."""
        until(lambda: told in self.told(path), TOLD_SECONDS, f"{path} is told {told}", lambda: str(self.received))


def options_for(sink: Sink, *, time_scale: float, group_labels: tuple[str, ...] = ()) -> bundle.Options:
    """A bundle whose webhooks are paths of the sink."""
    return bundle.Options(
        time_scale=time_scale,
        group_labels=group_labels,
        page_url=sink.url + "/page",
        notify_url=sink.url + "/notify",
        digest_url=sink.url + "/digest",
    )


@contextmanager
def alertmanager(folder: Path) -> Iterator[str]:
    """An Alertmanager with the configuration in folder/alerting; gives its address."""
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    assert program, "the package prometheus-alertmanager is needed"
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        program, f"--config.file={folder / 'alerting/alertmanager.yml'}", f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={url.removeprefix('http://')}", "--cluster.listen-address=",
    ]  # fmt: skip
    with Process("alertmanager", command, folder) as process:
        until(lambda: process.answers(url + "/-/ready"), START_SECONDS, "Alertmanager is ready", process.log)
        yield url


def post(url: str, *alerts: dict[str, str], ended: bool = False) -> None:
    """Tell Alertmanager of firing (or ended) alerts, each as its labels."""
    end = {"startsAt": "2020-01-01T00:00:00Z", "endsAt": "2020-01-01T00:05:00Z"} if ended else {}
    with plain_session() as session:
        body = [{"labels": labels, **end} for labels in alerts]
        session.post(url + "/api/v2/alerts", json=body, timeout=10).raise_for_status()


def muted(url: str) -> list[tuple[str, str]]:
    """Name and site of the alerts that are inhibited now."""
    with plain_session() as session:
        alerts: Sequence[dict[str, Any]] = session.get(url + "/api/v2/alerts", timeout=10).json()
    return sorted(
        (alert["labels"]["alertname"], alert["labels"].get("site", ""))
        for alert in alerts
        if alert["status"]["inhibitedBy"]
    )
