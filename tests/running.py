"""A real `crawlhealth serve` as a process, and what it says on /metrics."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import requests
from prometheus_client.parser import text_string_to_metric_families

from waiting import until

START_SECONDS = 30.0

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Exporter:
    """The exporter on a free port, with its configuration in a folder of its own; a context manager."""

    def __init__(self, folder: Path, config: str, *, environ: Mapping[str, str] | None = None,
                 arguments: Sequence[str] = (), asking: Mapping[str, object] | None = None,
                 within: Sequence[str] = ()) -> None:  # fmt: skip
        """`arguments` go to `serve`; `asking` are arguments of every request to it (auth, verify, cert).

        `within` is a command that runs the one after it, confined in some way.
        """
        self.folder = folder
        self.path = folder / "crawlhealth.yml"
        self.log_path = folder / "serve.log"
        self._arguments = arguments
        self._within = within
        self.asking = dict(asking or {})
        self._environ = {**os.environ, **(environ or {})}
        self.write(config)
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def write(self, config: str) -> None:
        """Replace the configuration file by an atomic rename."""
        fresh = self.folder / "crawlhealth.yml.new"
        fresh.write_text("listen: 127.0.0.1:0\n" + textwrap.dedent(config), encoding="utf-8")
        fresh.replace(self.path)

    def start(self) -> Exporter:
        with self.log_path.open("ab") as out:
            offset = out.tell()
            self._process = subprocess.Popen(
                [*self._within, sys.executable, "-m", "crawlhealth.cli", "serve", "--config", str(self.path),
                 *self._arguments],
                stdout=out, stderr=out, cwd=self.folder, env=self._environ,
            )  # fmt: skip
        process = self._process

        def listening() -> bool:
            assert process.poll() is None, self.log()
            lines = [line for line in self.log()[offset:].splitlines() if "listening on" in line]
            self.url = lines[-1].rpartition(" ")[2] if lines else ""
            return bool(lines)

        until(listening, START_SECONDS, "the exporter listens")
        until(lambda: self.get("/-/ready").status_code == 200, START_SECONDS, "the exporter is ready")
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def get(self, path: str, **kwargs: object) -> requests.Response:
        with plain_session() as session:
            return session.get(self.url + path, timeout=20, **{**self.asking, **kwargs})  # type: ignore[arg-type]

    def post(self, path: str, **kwargs: object) -> requests.Response:
        with plain_session() as session:
            return session.post(self.url + path, timeout=20, **{**self.asking, **kwargs})  # type: ignore[arg-type]

    def delete(self, path: str, **kwargs: object) -> requests.Response:
        with plain_session() as session:
            return session.delete(self.url + path, timeout=20, **kwargs)  # type: ignore[arg-type]

    def samples(self) -> Samples:
        """Every sample on /metrics by its name and labels."""
        text = self.get("/metrics").text
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        """The sum of the samples of that name that bear these labels; None when there is none."""
        return total(self.samples(), name, **labels)

    def wait_for(self, name: str, expected: float, seconds: float = 20.0, **labels: str) -> None:
        """Wait until the sum of the named samples is at least `expected`."""
        until(
            lambda: (self.value(name, **labels) or 0.0) >= expected, seconds,
            f"{name}{labels} reaches {expected}", lambda: self.get("/metrics").text + self.log(),
        )  # fmt: skip

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the process and return its exit status."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(number)
        return self._process.wait(timeout=30)

    def __enter__(self) -> Exporter:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def plain_session() -> requests.Session:
    """A session that no proxy of the environment reaches."""
    session = requests.Session()
    session.trust_env = False
    return session


def total(samples: Samples, name: str, **labels: str) -> float | None:
    """The sum of the samples of a name that bear these labels; None when there is none."""
    wanted = set(labels.items())
    found = [value for (sample, bears), value in samples.items() if sample == name and wanted <= bears]
    return sum(found) if found else None
