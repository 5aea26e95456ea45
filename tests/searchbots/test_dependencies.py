"""Redis PING, against a real Redis where there is one, and against servers that only say so."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import trustme

from crawlhealth.searchbots.dependencies import Dependencies
from crawlhealth.searchbots.redis import RedisError, ping
from crawlhealth.searchbotsettings import Dependency
from crawlhealth.secret import Secret
from rawserver import RawServer
from searchbots.verifying import Clock
from waiting import until

real = pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def redis(folder: Path, *arguments: str, tls: bool = False) -> Iterator[int]:
    """A real Redis on a free port."""
    port = free_port()
    listen = ("--port", "0", "--tls-port", str(port)) if tls else ("--port", str(port))
    process = subprocess.Popen(
        ["redis-server", *listen, "--bind", "127.0.0.1", "--save", "", "--dir", str(folder), *arguments],
        stdout=subprocess.DEVNULL,
    )

    def listening() -> bool:
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(listening, 20, "Redis listens")
        yield port
    finally:
        process.terminate()
        process.wait(20)


def dependency(
    port: int,
    *,
    scheme: str = "redis",
    host: str = "127.0.0.1",
    username: str = "",
    password: str | None = None,
    ca_file: Path | None = None,
    seconds: float = 5.0,
) -> Dependency:
    return Dependency(
        name="redis",
        url=f"{scheme}://{host}:{port}",
        username=username,
        password=None if password is None else Secret(password),
        ca_file=ca_file,
        timeout=timedelta(seconds=seconds),
    )


@real
def test_a_real_redis_and_its_end(tmp_path: Path) -> None:
    clock = Clock()
    with redis(tmp_path) as port:
        dependencies = Dependencies(lambda: {"redis": dependency(port)}, clock=clock)
        assert dict(dependencies.problems()) == {}
        dependencies.tick()
        until(lambda: dict(dependencies.problems()) == {"redis": None}, 10, "it answers")
    clock.now += 31
    dependencies.tick()
    until(lambda: dict(dependencies.problems())["redis"], 10, "it is gone")
    assert "refused" in str(dict(dependencies.problems())["redis"])


@real
def test_a_real_redis_with_a_password_and_users(tmp_path: Path) -> None:
    with redis(tmp_path, "--requirepass", "sesame", "--user", "probe", "on", ">open", "+ping") as port:
        ping(dependency(port, password="sesame"))
        ping(dependency(port, username="probe", password="open"))
        with pytest.raises(RedisError, match="it answers a PING with NOAUTH"):
            ping(dependency(port))
        with pytest.raises(RedisError, match="it refuses the password: WRONGPASS") as caught:
            ping(dependency(port, password="wrong-secret"))
        assert "wrong-secret" not in str(caught.value)


@real
def test_a_real_redis_over_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    files = ("--tls-cert-file", "cert.pem", "--tls-key-file", "key.pem", "--tls-ca-cert-file", "ca.pem")
    with redis(tmp_path, *files, "--tls-auth-clients", "no", tls=True) as port:
        ping(dependency(port, scheme="rediss", host="localhost", ca_file=tmp_path / "ca.pem"))
        with pytest.raises(RedisError, match="its certificate is not good"):
            ping(dependency(port, scheme="rediss", host="localhost"))


def said(connection: socket.socket, data: bytes) -> None:
    connection.recv(1000)
    connection.sendall(data)
    connection.recv(1000)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"-LOADING Redis is loading the dataset in memory\r\n", "with LOADING", id="still loading"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n", "with HTTP/1.1", id="another protocol"),
        pytest.param(b"-ERR\nERROR all is lost\r\n", "with ERR$", id="a line of its own"),
        pytest.param(b"x" * 5000, "does not speak", id="endless"),
        pytest.param(b"+PO", "no answer within 0.3 s", id="half an answer"),
        pytest.param(b"\xff\xfe\r\n", "answers a PING", id="bytes"),
    ],
)
def test_what_is_no_pong_is_a_problem(data: bytes, problem: str) -> None:
    with (
        RawServer(lambda connection, _server: said(connection, data)) as server,
        pytest.raises(RedisError, match=problem),
    ):
        ping(dependency(server.port, seconds=0.3))


def test_the_deadline_is_for_all_of_it() -> None:
    def drip(connection: socket.socket, server: RawServer) -> None:
        connection.recv(1000)
        while not server.over.wait(0.05):
            connection.sendall(b"x")

    with RawServer(drip) as server, pytest.raises(RedisError, match="no answer within"):
        ping(dependency(server.port, seconds=0.4))


def test_a_connection_that_is_closed_is_a_problem() -> None:
    with (
        RawServer(lambda connection, _server: connection.close()) as server,
        pytest.raises(RedisError, match=r"closed the connection|reset"),
    ):
        ping(dependency(server.port))
