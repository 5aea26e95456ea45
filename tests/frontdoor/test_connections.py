"""Connections that say nothing, and more of them than there are files."""

from __future__ import annotations

import http.client
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from running import Exporter

IMPATIENT = """
from starlette.responses import PlainTextResponse
from crawlhealth import web
listener = web.bind("127.0.0.1:0")
print(listener.getsockname()[1], flush=True)
web.run(PlainTextResponse("hello"), listener, on_hangup=lambda: None, patience=0.3)
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a server that waits 0.3 seconds for a request."""
    with subprocess.Popen([sys.executable, "-c", IMPATIENT], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.terminate()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX-Slow: "], ids=["nothing", "half a header"])
def test_a_connection_without_a_request_is_closed(port: int, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(sent)
        assert connection.recv(1000) == b""


def test_a_connection_with_a_request_is_kept(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1.0)
    connection.request("GET", "/")
    assert connection.getresponse().read() == b"hello"
    kept = connection.sock
    with pytest.raises(TimeoutError):
        kept.recv(1)
    connection.request("GET", "/")
    assert connection.getresponse().read() == b"hello"
    assert connection.sock is kept
    connection.close()


def test_a_lack_of_files_is_told_once_and_passes(tmp_path: Path) -> None:
    with Exporter(tmp_path, "sites: {}") as exporter:
        soft, hard = resource.prlimit(exporter.pid, resource.RLIMIT_NOFILE)
        assert soft == min(hard, 65_536), "as much as there may be"
        files = len(os.listdir(f"/proc/{exporter.pid}/fd"))
        resource.prlimit(exporter.pid, resource.RLIMIT_NOFILE, (files + 5, hard))
        host, _, number = exporter.url.removeprefix("http://").rpartition(":")
        with ExitStack() as open_ones:
            for _ in range(20):
                open_ones.enter_context(socket.create_connection((host, int(number)), timeout=10))
            answer = open_ones.enter_context(socket.create_connection((host, int(number)), timeout=1.5))
            answer.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n")
            with pytest.raises(TimeoutError):
                answer.recv(1000)
        assert exporter.get("/-/healthy").status_code == 200
        assert exporter.log().count("too many open files") == 1
        assert len(exporter.log().splitlines()) < 20
