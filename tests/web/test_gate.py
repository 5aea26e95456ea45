"""The exporter behind a web configuration: a real process, real TLS, real passwords."""

from __future__ import annotations

import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import bcrypt
import pytest
import requests
import trustme

from crawlhealth.web.gate import Rate
from crawlhealth.web.webfile import RateLimit
from running import Exporter
from waiting import until

CONFIG = "sites: {shop: {hosts: [shop.example]}}\n"
PASSWORD = "correct horse battery staple"


def hashed(password: str, cost: int = 4) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def write(tmp_path: Path, authority: trustme.CA) -> Callable[[str], Path]:
    """Writes a web configuration beside a server certificate, a CA and nothing else."""

    def certify() -> None:
        issued = authority.issue_cert("127.0.0.1")
        issued.private_key_pem.write_to_path(tmp_path / "server.key")
        issued.cert_chain_pems[0].write_to_path(tmp_path / "server.crt")

    def write(text: str) -> Path:
        certify()
        authority.cert_pem.write_to_path(tmp_path / "ca.crt")
        path = tmp_path / "web.yml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Exporter]]:
    running: list[Exporter] = []

    def start(web: Path, config: str = CONFIG, **asking: object) -> Exporter:
        exporter = Exporter(tmp_path, config, arguments=["--web.config.file", str(web)], asking=asking)
        running.append(exporter)
        return exporter.start()

    yield start
    for exporter in running:
        exporter.stop()


TLS = "tls_server_config: {cert_file: server.crt, key_file: server.key"


def test_every_path_needs_the_password(
    write: Callable[[str], Path], start: Callable[..., Exporter], tmp_path: Path
) -> None:
    web = write(f"basic_auth_users: {{prometheus: '{hashed(PASSWORD)}', other: '{hashed('x')}'}}\n")
    exporter = start(web, auth=("prometheus", PASSWORD))
    for path in ("/", "/sites/shop", "/metrics", "/-/healthy", "/-/ready", "/api/v1/sites", "/nothing"):
        for auth in (
            None,
            ("prometheus", "x"),
            ("other", PASSWORD),
            ("nobody", PASSWORD),
            ("", ""),
            ("prometheus", ""),
        ):
            refused = exporter.get(path, auth=auth)
            assert (refused.status_code, path, auth) == (401, path, auth)
            assert refused.headers["www-authenticate"].startswith("Basic ")
        assert exporter.get(path).status_code != 401
    assert exporter.post("/-/reload", auth=None).status_code == 401
    assert exporter.post("/-/reload").status_code == 200
    for header in ("Basic", "Basic !!!", "Basic cHJvbWV0aGV1cw==", "Bearer x", "Basic " + "A" * 20_000):
        assert exporter.get("/metrics", auth=None, headers={"authorization": header}).status_code == 401
    assert PASSWORD not in exporter.log()


def test_a_token_that_may_post_is_enough_for_what_crawlers_do(
    write: Callable[[str], Path], start: Callable[..., Exporter], tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("crawler-token")
    web = write(f"basic_auth_users: {{prometheus: '{hashed(PASSWORD)}'}}\n")
    exporter = start(web, CONFIG + "push: {tokens: [{file: token}]}\n", auth=("prometheus", PASSWORD))
    bearer = {"auth": None, "headers": {"authorization": "Bearer crawler-token"}}
    wrong = {"auth": None, "headers": {"authorization": "Bearer other"}}
    assert exporter.post("/-/reload", **bearer).status_code == 200
    assert exporter.post("/-/reload", **wrong).status_code == 401
    assert exporter.get("/api/v1/sites/shop", **bearer).status_code == 200
    assert exporter.get("/api/v1/sites/shop", **wrong).status_code == 401
    assert exporter.get("/metrics", **bearer).status_code == 401
    assert exporter.post("/-/reload").status_code == 401  # a password is not a token


@pytest.mark.alone
def test_a_name_is_not_betrayed_by_the_time_and_a_right_password_is_remembered(
    write: Callable[[str], Path], start: Callable[..., Exporter]
) -> None:
    web = write(f"basic_auth_users: {{prometheus: '{hashed(PASSWORD, 8)}'}}\n")
    exporter = start(web, auth=("prometheus", PASSWORD))

    def took(*auth: str) -> float:
        times = []
        for _ in range(7):
            begun = time.perf_counter()
            exporter.get("/-/healthy", auth=auth)
            times.append(time.perf_counter() - begun)
        return statistics.median(times)

    known, unknown, right = took("prometheus", "x"), took("nobody", "x"), took("prometheus", PASSWORD)
    assert right < known / 2
    assert 0.5 < known / unknown < 2


def test_tls_lets_in_only_clients_with_a_certificate_that_bears_an_allowed_name(
    write: Callable[[str], Path], start: Callable[..., Exporter], authority: trustme.CA, tmp_path: Path
) -> None:
    web = write(
        f"{TLS}, client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.crt,"
        " client_allowed_sans: [prometheus.example]}\n"
    )

    def client(name: str, issuer: trustme.CA) -> str:
        path = tmp_path / f"{name}-{id(issuer)}.pem"
        issuer.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(path)
        return str(path)

    exporter = start(web, verify=str(tmp_path / "ca.crt"), cert=client("prometheus.example", authority))
    assert exporter.url.startswith("https://")
    assert exporter.get("/metrics").status_code == 200
    for cert in (None, client("other.example", authority), client("prometheus.example", trustme.CA())):
        with pytest.raises(requests.ConnectionError):
            exporter.get("/metrics", cert=cert)
    plain = exporter.url.replace("https", "http")
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{plain}/metrics", timeout=20, proxies={"http": ""})
    assert exporter.get("/metrics").status_code == 200


def served_certificate(exporter: Exporter) -> str:
    host, _, port = exporter.url.rpartition("/")[2].partition(":")
    return ssl.get_server_certificate((host, int(port)))


def test_a_hangup_brings_new_certificates_and_passwords_and_a_broken_file_changes_nothing(
    write: Callable[[str], Path], start: Callable[..., Exporter], tmp_path: Path
) -> None:
    web = write(f"{TLS}}}\nbasic_auth_users: {{prometheus: '{hashed(PASSWORD)}'}}\n")
    exporter = start(web, verify=str(tmp_path / "ca.crt"), auth=("prometheus", PASSWORD))
    before = served_certificate(exporter)
    with requests.Session() as kept:
        kept.trust_env = False
        kept.verify = str(tmp_path / "ca.crt")
        kept.auth = ("prometheus", PASSWORD)
        assert kept.get(exporter.url + "/metrics", timeout=20).status_code == 200

        write(f"{TLS}}}\nbasic_auth_users: {{prometheus: hunter2}}\n")
        refused = exporter.post("/-/reload")
        assert refused.status_code == 400
        assert "is not a bcrypt hash" in refused.text
        assert "hunter2" not in refused.text
        assert exporter.value("crawlhealth_config_last_reload_successful") == 0
        assert served_certificate(exporter) == before

        write(f"{TLS}}}\nbasic_auth_users: {{prometheus: '{hashed('another')}'}}\n")
        exporter.send(1)
        until(lambda: exporter.get("/metrics", auth=("prometheus", "another")).status_code == 200, 20)
        assert served_certificate(exporter) != before
        assert kept.get(exporter.url + "/metrics", timeout=20).status_code == 401


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "tls_server_config: {cert_file: no.crt, key_file: server.key}", "no.crt cannot be read", id="no file"
        ),
        pytest.param(
            "tls_server_config: {cert_file: ca.crt, key_file: server.key}", "is not the key", id="another key"
        ),
        pytest.param("basic_auth_users: {a: b}", "is not a bcrypt hash", id="no hash"),
    ],
)
def test_a_broken_file_does_not_start(write: Callable[[str], Path], tmp_path: Path, text: str, problem: str) -> None:
    exporter = Exporter(tmp_path, CONFIG, arguments=["--web.config.file", str(write(text))])
    with pytest.raises(AssertionError):
        exporter.start()
    assert exporter.stop() == 1
    assert problem in exporter.log()
    assert "Traceback" not in exporter.log()


def test_a_file_is_checked_without_serving(write: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "crawlhealth.yml").write_text(CONFIG)

    def check(text: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "crawlhealth.cli", "check", "--config", str(tmp_path / "crawlhealth.yml")]
        command += ["--web.config.file", str(write(text))]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

    assert check(f"{TLS}}}").returncode == 0
    broken = check("tls_server_config: {cert_file: ca.crt, key_file: server.key}")
    assert (broken.returncode, "web.yml:1:" in broken.stderr, "is not the key" in broken.stderr) == (1, True, True)


def test_headers_are_added_and_blank_ones_left_out(
    write: Callable[[str], Path], start: Callable[..., Exporter]
) -> None:
    web = write(
        "http_server_config: {headers: {X-Frame-Options: deny, X-Content-Type-Options: '',"
        " Strict-Transport-Security: max-age=60}}\nrate_limit: {interval: 1h, burst: 100}\n"
    )
    headers = start(web).get("/").headers
    assert (headers["x-frame-options"], headers["strict-transport-security"]) == ("deny", "max-age=60")
    assert "x-content-type-options" not in headers
    assert "default-src 'none'" in headers["content-security-policy"]


def test_a_rate_lets_a_burst_through_and_then_one_each_interval() -> None:
    rate, limit = Rate(), RateLimit(interval=timedelta(seconds=2), burst=3)
    assert [rate.admits(limit, at) for at in (0, 0, 0, 0, 1, 2, 2, 3, 100, 100, 100, 100)] == [
        True, True, True, False, False, True, False, False, True, True, True, False,
    ]  # fmt: skip
    assert all(rate.admits(RateLimit(), 100) for _ in range(50))
