"""A real nginx behind a load balancer, whose access log has nginx's `main` format: who came is in X-Forwarded-For."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType

import requests

from crawlhealth.demo.processes import free_port
from running import plain_session
from waiting import until

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
MAIN = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer"'
    ' "$http_user_agent" "$http_x_forwarded_for"'
)
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def as_logged(address: str, agent: str, at: float) -> str:
    """A line as nginx writes it of a visitor behind the load balancer."""
    stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at))
    return f'127.0.0.1 - - [{stamp}] "GET /page HTTP/1.1" 200 5 "-" "{agent}" "{address}"\n'


class Nginx:
    """A context manager; `log` is the access log."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self._port = folder, folder / "access.log", free_port()
        folder.mkdir(exist_ok=True)
        temporary = " ".join(f"{kind}_temp_path {folder / kind};" for kind in _TEMPORARY)
        (folder / "nginx.conf").write_text(
            ("user root;\n" if os.geteuid() == 0 else "")  # else its workers may not read this folder
            + f"worker_processes 1;\nerror_log {folder / 'error.log'};\npid {folder / 'nginx.pid'};\ndaemon off;\n"
            + f"events {{}}\nhttp {{ {temporary}\n log_format main '{MAIN}';\n access_log {self.log} main;\n"
            + f" server {{ listen 127.0.0.1:{self._port}; location / {{ return 200 'home\\n'; }} }}\n}}\n"
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._session = plain_session()

    def __enter__(self) -> Nginx:
        assert NGINX is not None
        command = [NGINX, "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")]
        self._process = subprocess.Popen(command, env={**os.environ, "TZ": "UTC"}, stderr=subprocess.DEVNULL)
        until(self._answers, 20, "nginx answers", (self.folder / "error.log").read_text)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._session.close()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(20)

    def visit(self, agent: str, address: str, times: int = 1) -> None:
        """So many visits, each in the log when this returns."""
        before = self.lines()
        for _ in range(times):
            headers = {"User-Agent": agent, "X-Forwarded-For": address}
            assert self._session.get(f"http://127.0.0.1:{self._port}/page", headers=headers, timeout=10).ok
        until(lambda: self.lines() == before + times, 10, "nginx has written its log")

    def lines(self) -> int:
        """Lines of the present log."""
        return self.log.read_bytes().count(b"\n") if self.log.exists() else 0

    def rotate(self) -> None:
        """Rotate and compress at once, as logrotate does without delaycompress: older ones move on by a number."""
        rotated = self.folder / "access.log.1"
        for number in range(8, 0, -1):
            old = self.folder / f"access.log.{number}.gz"
            if old.exists():
                old.rename(self.folder / f"access.log.{number + 1}.gz")
        self.log.rename(rotated)
        assert self._process is not None
        self._process.send_signal(signal.SIGUSR1)
        until(self.log.exists, 10, "nginx has opened a new log")
        packed = self.folder / "access.log.1.gz"
        packed.write_bytes(gzip.compress(rotated.read_bytes()))
        status = rotated.stat()
        os.utime(packed, ns=(status.st_atime_ns, status.st_mtime_ns))  # as gzip does
        rotated.unlink()

    def _answers(self) -> bool:
        try:
            return self._session.get(f"http://127.0.0.1:{self._port}/", timeout=10).ok
        except requests.ConnectionError:
            return False
