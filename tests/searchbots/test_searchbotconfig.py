"""What may be written under `searchbots` for verification, targets, domains and dependencies."""

# ruff: noqa: E501 - a problem is written, and looked for, on one line

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from configured import CONFIG, Folder
from crawlhealth.secret import Secret

GOOD = """
searchbots:
  ranges: ./ranges
  refresh:
    googlebot.json: {url: 'https://operator.example/googlebot.json', every: 12h}
  resolver: {servers: ['127.0.0.1:5353', '::1', '[::1]:54'], timeout: 3s, concurrency: 10}
  targets:
    money: {url: 'https://money.example/'}
  domains: {names: [shop.example, 'http://shop.example:8080'], rdap: 'https://rdap.example/'}
  dependencies:
    redis: {url: 'rediss://redis.example:6380', username: probe, password: {env: REDIS}, timeout: 2s}
"""


def test_everything_is_read(tmp_path: Path) -> None:
    settings = Folder(tmp_path, {"REDIS": "sesame"}).load(CONFIG + GOOD).searchbots
    assert settings.ranges == tmp_path / "ranges"
    assert settings.refresh["googlebot.json"].every == timedelta(hours=12)
    assert settings.resolver.endpoints == (("127.0.0.1", 5353), ("::1", 53), ("::1", 54))
    assert settings.targets["money"].url == "https://money.example/"
    assert settings.domains.names == ("shop.example", "http://shop.example:8080")
    assert settings.dependencies["redis"].password == Secret("sesame")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param("resolver: {servers: [dns.example]}", "is no name server: write its address", id="a name of a server"),
        pytest.param("resolver: {servers: ['127.0.0.1:99999']}", "is no name server", id="a port that is none"),
        pytest.param("resolver: {timeout: 1h}", "must be from 100ms to 30s: write for instance 2s", id="a long timeout"),
        pytest.param("resolver: {concurrency: 0}", "must be from 1 to 1000: write for instance 64", id="none at once"),
        pytest.param("refresh: {a.json: {url: 'https://a.example/'}}", "add ranges: ./ranges", id="no folder"),
        pytest.param("ranges: r\n  refresh: {../a: {url: 'https://a.example/'}}", "write it as in googlebot.json", id="a path"),
        pytest.param("ranges: r\n  refresh: {a.json: {url: 'https://a.example/', every: 1m}}", "asks too often", id="often"),
        pytest.param("targets: {a: {url: 'ftp://a.example/'}}", "write for instance https://shop.example/", id="no web"),
        pytest.param("targets: {a: {}}", "needs url: add it", id="no URL"),
        pytest.param("domains: {names: ['shop.example/x']}", "is no domain: write it as in shop.example", id="a path of it"),
        pytest.param("domains: {rdap: nowhere}", "write for instance https://rdap.org/", id="no service"),
        pytest.param("dependencies: {r: {url: 'http://a.example'}}", "write for instance redis://127.0.0.1:6379", id="no Redis"),
        pytest.param("dependencies: {r: {url: 'redis://a', username: b}}", "needs a password: add", id="half of it"),
    ],
)  # fmt: skip
def test_problems(tmp_path: Path, written: str, said: str) -> None:
    problems = Folder(tmp_path).problems(CONFIG + f"searchbots:\n  {written}\n")
    assert any(said in problem for problem in problems), problems


def test_a_password_in_a_url_is_refused_and_not_shown(tmp_path: Path) -> None:
    written = "searchbots: {dependencies: {r: {url: 'redis://u:sesame@a.example'}}}\n"
    problems = Folder(tmp_path).problems(CONFIG + written)
    assert "must hold no user and password" in "".join(problems)
    assert "sesame" not in "".join(problems)
