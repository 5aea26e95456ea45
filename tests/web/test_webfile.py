"""What a web configuration may say, and what is told of one that is wrong."""

from __future__ import annotations

import textwrap
from datetime import timedelta
from pathlib import Path

import pytest

from crawlhealth.configfile import ConfigError
from crawlhealth.web.webfile import RateLimit, WebFile, load

HASH = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG"


def read(folder: Path, text: str) -> WebFile:
    path = folder / "web.yml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return load(path, environ={})


def test_an_emptied_file_does_not_open_the_door(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is empty"):
        read(tmp_path, "")
    assert read(tmp_path, "basic_auth_users: {}") == WebFile()


def test_a_file_of_prometheus_exporters_is_understood(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        f"""
        tls_server_config:
          cert_file: server.crt
          key_file: keys/server.key
          client_auth_type: "RequireAndVerifyClientCert"
          client_ca_file: /etc/ca.crt
          client_allowed_sans: [prometheus.example]
          min_version: TLS12
          max_version: TLS13
          cipher_suites: [TLS_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
          prefer_server_cipher_suites: true
          curve_preferences: [CurveP256]
        http_server_config:
          http2: false
          headers: {{X-Frame-Options: deny, Strict-Transport-Security: max-age=31536000, X-XSS-Protection: ""}}
        basic_auth_users: {{prometheus: "{HASH}"}}
        rate_limit: {{interval: 1s, burst: 10}}
        """,
    )
    server = found.tls_server_config
    assert server is not None
    assert (server.cert_file, server.key_file) == (tmp_path / "server.crt", tmp_path / "keys/server.key")
    assert server.client_ca_file == Path("/etc/ca.crt")
    assert found.http_server_config.headers["X-Frame-Options"] == "deny"
    assert found.basic_auth_users == {"prometheus": HASH}
    assert found.rate_limit == RateLimit(interval=timedelta(seconds=1), burst=10)


TLS = "tls_server_config: {cert_file: a, key_file: b"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("tls_server_confg: {}", "did you mean tls_server_config?", id="an unknown key"),
        pytest.param(f"{TLS}, certfile: c}}", "unknown key 'certfile': did you mean cert_file?", id="one below"),
        pytest.param("tls_server_config: {cert_file: a}", "tls_server_config: needs key_file", id="a missing key"),
        pytest.param(f"{TLS}, cert: c}}", "stands beside cert_file", id="a certificate twice"),
        pytest.param(f"{TLS}, client_ca_file: c}}", "has no effect", id="a CA that nobody asks for"),
        pytest.param(f"{TLS}, client_auth_type: RequireAndVerifyClientCert}}", "needs client_ca_file", id="no CA"),
        pytest.param(f"{TLS}, client_auth_type: RequireAnyClientCert}}", "does not verify them", id="unverified"),
        pytest.param(f"{TLS}, client_auth_type: Maybe}}", "write one of NoClientCert", id="an unknown policy"),
        pytest.param(f"{TLS}, client_allowed_sans: [a]}}", "needs certificates", id="names without certificates"),
        pytest.param(f"{TLS}, min_version: TLS13, max_version: TLS12}}", "is above max_version", id="no version left"),
        pytest.param(f"{TLS}, min_version: TLS10}}", "'TLS10' is not known here", id="a version of long ago"),
        pytest.param(f"{TLS}, cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]}}", "cipher_suites[0]", id="a broken cipher"),
        pytest.param(f"{TLS}, curve_preferences: [X25519, CurveP256]}}", "only one curve", id="two curves"),
        pytest.param("http_server_config: {headers: {Server: x}}", "'Server' cannot be set", id="another header"),
        pytest.param(
            "http_server_config: {headers: {X-Frame-Options: maybe}}", "write deny or sameorigin", id="a value"
        ),
        pytest.param(
            'http_server_config: {headers: {X-XSS-Protection: "a\\r\\nb: c"}}', "cannot carry", id="a new line"
        ),
        pytest.param("basic_auth_users: {a: hunter2}", "is not a bcrypt hash", id="a password in the clear"),
        pytest.param(f"basic_auth_users: {{a: '{HASH.replace('10', '31')}'}}", "has a cost of 31", id="years of work"),
        pytest.param(f"basic_auth_users: {{'a:b': '{HASH}'}}", "without a colon", id="a name with a colon"),
        pytest.param("rate_limit: {interval: 1s}", "lets no request through", id="a rate of nothing"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_remedy(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert problem in str(caught.value)
    assert f"{tmp_path / 'web.yml'}:1:" in str(caught.value)


def test_no_error_shows_a_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, 'basic_auth_users: {a: "hunter2"}\ntls_server_config: {cert: x, key: "hunter3", nope: 1}\n')
    assert "hunter" not in caught.value.render()
