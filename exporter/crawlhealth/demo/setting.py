"""Sets the scene: practice site, imported past, exporter, and Prometheus with Alertmanager where they are installed."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
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
    processes: tuple[Process, ...]
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
        """The shop as it is seen now. Raises DemoError if a process has ended, or an error of requests."""
        for process in self.processes:
            process.check()
        return view(get(self.exporter_url + "/metrics").text, SITE, self.sink.notices())


def set_up(stack: ExitStack, folder: Path, patience: Patience, say: Callable[[str], None]) -> Setting:
    """Start everything; `stack` ends it. Raises DemoError, Ended."""
    site = stack.enter_context(PracticeSite())
    sink = stack.enter_context(Sink())
    path = write_config(folder, site.port)
    say(f"importing {past.DAYS} days of the shop's past")
    _import_past(folder, path, patience)
    exporter, url = _exporter(stack, folder, path, patience)
    options = bundle.Options(
        time_scale=TIME_SCALE,
        exporter_url=url,
        page_url=sink.url("/page"),
        notify_url=sink.url("/notify"),
        digest_url=sink.url("/digest"),
    )
    bundle.write(folder, options)
    alertmanager = _component(
        stack,
        folder,
        patience,
        ("prometheus-alertmanager", "alertmanager"),
        [
            f"--config.file={folder / 'alerting' / 'alertmanager.yml'}",
            f"--storage.path={folder / 'alertmanager'}",
            "--cluster.listen-address=",
        ],
    )
    config = folder / "prometheus.yml"
    config.write_text(prometheus_config(folder, url, alertmanager[1] if alertmanager else None), encoding="utf-8")
    prometheus = _component(
        stack,
        folder,
        patience,
        ("prometheus",),
        [f"--config.file={config}", f"--storage.tsdb.path={folder / 'prometheus'}"],
    )
    for name, component in (("Prometheus", prometheus), ("Alertmanager", alertmanager)):
        if component is None:
            say(f"{name} is not on the PATH: no alert can arrive, so none is expected")
    return Setting(
        site=site,
        sink=sink,
        processes=(exporter, *(component[0] for component in (prometheus, alertmanager) if component)),
        exporter_url=url,
        prometheus_url=prometheus[1] if prometheus else None,
        alertmanager_url=alertmanager[1] if alertmanager else None,
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


def _exporter(stack: ExitStack, folder: Path, path: Path, patience: Patience) -> tuple[Process, str]:
    exporter = stack.enter_context(Process("exporter", _crawlhealth("serve", "--config", str(path)), folder))

    def listening() -> bool:
        exporter.check()
        return any(_LISTENING in line for line in exporter.log().splitlines(keepends=True) if line.endswith("\n"))

    patience.until(listening, START_SECONDS, "the exporter does not listen")
    url = exporter.log().partition(_LISTENING)[2].split()[0].rstrip("/")
    patience.until(lambda: exporter.answers(url + "/-/ready"), START_SECONDS, "the exporter is not ready")
    return exporter, url


def _component(
    stack: ExitStack, folder: Path, patience: Patience, names: Sequence[str], options: Sequence[str]
) -> tuple[Process, str] | None:
    """Start Prometheus or Alertmanager on a free port and wait until it is ready; None when it is not on the PATH."""
    binary = next((found for name in names if (found := shutil.which(name))), None)
    if binary is None:
        return None
    port = free_port()
    command = [binary, *options, f"--web.listen-address=127.0.0.1:{port}"]
    process = stack.enter_context(Process(names[-1], command, folder))
    url = f"http://127.0.0.1:{port}"
    patience.until(lambda: process.answers(url + "/-/ready"), START_SECONDS, f"{names[-1]} is not ready")
    return process, url


def prometheus_config(folder: Path, exporter_url: str, alertmanager_url: str | None) -> str:
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
