"""Sets the scene: practice site, imported past, exporter, and Prometheus with Alertmanager where they are installed."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from crawlhealth import bundle
from crawlhealth.demo import past
from crawlhealth.demo.processes import Patience, Process, free_port, get
from crawlhealth.demo.sink import Sink
from crawlhealth.demo.site import PracticeSite
from crawlhealth.demo.story import SITE
from crawlhealth.demo.view import View, view

TIME_SCALE: Final = 150.0
"""What the durations of the alerts are divided by."""
START_SECONDS: Final = 30.0
_ADDRESS: Final = "127.0.0.1:8000"
_LISTENING: Final = "listening on "
_FILES: Final = ("crawlhealth.yml", "canaries/shop.yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything that runs. The addresses of what is not installed are None."""

    site: PracticeSite
    sink: Sink
    exporter: Process
    exporter_url: str
    prometheus_url: str | None
    alertmanager_url: str | None

    @property
    def paging(self) -> bool:
        """Whether alerts can arrive."""
        return self.prometheus_url is not None and self.alertmanager_url is not None

    @property
    def addresses(self) -> dict[str, str]:
        """What there is to open, by name."""
        every = {
            "exporter": self.exporter_url,
            "practice site": self.site.url("/"),
            "Prometheus": self.prometheus_url,
            "Alertmanager": self.alertmanager_url,
        }
        return {name: url for name, url in every.items() if url is not None}

    def look(self) -> View:
        """The shop as it is seen now. Raises DemoError if the exporter ended, or an error of requests."""
        self.exporter.check()
        return view(get(self.exporter_url + "/metrics").text, SITE, self.sink.notices())


def set_up(stack: ExitStack, folder: Path, patience: Patience, say: Callable[[str], None]) -> Setting:
    """Start everything; `stack` ends it. Raises DemoError, Ended."""
    site = stack.enter_context(PracticeSite())
    sink = stack.enter_context(Sink())
    path = write_config(folder, site.port)
    say(f"importing {past.DAYS} days of the shop's past")
    _import_past(folder, path, patience)
    exporter = stack.enter_context(Process("exporter", _crawlhealth("serve", "--config", str(path)), folder))

    def listening() -> bool:
        exporter.check()
        return _LISTENING in exporter.log()

    patience.until(listening, START_SECONDS, "the exporter does not listen")
    url = exporter.log().partition(_LISTENING)[2].split()[0].rstrip("/")
    patience.until(lambda: exporter.answers(url + "/-/ready"), START_SECONDS, "the exporter is not ready")
    bundle.write(folder, time_scale=TIME_SCALE, page_url=sink.url("/page"), notify_url=sink.url("/notify"))
    alertmanager_url = _alertmanager(stack, folder, patience, say)
    config = _prometheus_config(folder, url, alertmanager_url)
    (folder / "prometheus.yml").write_text(config, encoding="utf-8")
    return Setting(
        site=site,
        sink=sink,
        exporter=exporter,
        exporter_url=url,
        prometheus_url=_prometheus(stack, folder, patience, say),
        alertmanager_url=alertmanager_url,
    )


def write_config(folder: Path, port: int) -> Path:
    """Write the demo's configuration with the practice site's real port; returns the main file."""
    for name in _FILES:
        text = resources.files(__package__).joinpath("files", *name.split("/")).read_text(encoding="utf-8")
        text = text.replace(_ADDRESS, f"127.0.0.1:{port}").replace("listen: 127.0.0.1:9877", "listen: 127.0.0.1:0")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / _FILES[0]


def _crawlhealth(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "crawlhealth.cli", *arguments]


def _import_past(folder: Path, config: Path, patience: Patience) -> None:
    file = folder / "past.jsonl"
    file.write_text("".join(line + "\n" for line in past.windows(SITE, now=time.time())), encoding="utf-8")
    with Process("import", _crawlhealth("import", "--config", str(config), str(file)), folder) as importing:
        patience.until(lambda: importing.status() is not None, START_SECONDS, "the import does not end")
        if importing.status() != 0:
            importing.check()


def _alertmanager(stack: ExitStack, folder: Path, patience: Patience, say: Callable[[str], None]) -> str | None:
    binary = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if binary is None:
        say("Alertmanager is not on the PATH: no alert will be sent, and none is expected")
        return None
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        binary,
        f"--config.file={folder / 'alerting' / 'alertmanager.yml'}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={url.removeprefix('http://')}",
        "--cluster.listen-address=",
    ]
    process = stack.enter_context(Process("alertmanager", command, folder))
    patience.until(lambda: process.answers(url + "/-/ready"), START_SECONDS, "Alertmanager is not ready")
    return url


def _prometheus(stack: ExitStack, folder: Path, patience: Patience, say: Callable[[str], None]) -> str | None:
    binary = shutil.which("prometheus")
    if binary is None:
        say("Prometheus is not on the PATH: nothing scrapes the exporter, and no alert is expected")
        return None
    config = folder / "prometheus.yml"
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        binary,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address={url.removeprefix('http://')}",
    ]
    process = stack.enter_context(Process("prometheus", command, folder))
    patience.until(lambda: process.answers(url + "/-/ready"), START_SECONDS, "Prometheus is not ready")
    return url


def _prometheus_config(folder: Path, exporter_url: str, alertmanager_url: str | None) -> str:
    """Prometheus' configuration; JSON is YAML."""
    config: dict[str, object] = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "alerting" / "rules" / "*.yml")],
        "scrape_configs": [
            {"job_name": "crawlhealth", "static_configs": [{"targets": [exporter_url.removeprefix("http://")]}]}
        ],
    }
    if alertmanager_url is not None:
        targets = [alertmanager_url.removeprefix("http://")]
        config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": targets}]}]}
    return json.dumps(config, indent=2)
