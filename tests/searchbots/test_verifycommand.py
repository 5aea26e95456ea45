"""`crawlhealth verify`: every step that tells, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crawlhealth.cli import main
from searchbots.dnsserver import SERVFAIL, Zone, serving


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    zone = Zone()
    zone.names("66.249.66.1", "crawl-66-249-66-1.googlebot.com")
    zone.put("crawl-66-249-66-1.googlebot.com", "A", "66.249.66.1")
    zone.names("11.0.0.2", "crawl-2.googlebot.com")
    zone.names("11.0.0.6", SERVFAIL)
    folder = tmp_path_factory.mktemp("verify")
    (folder / "ranges").mkdir()
    (folder / "ranges" / "duckduckbot.json").write_text('{"prefixes": [{"ipv4Prefix": "20.191.45.212/32"}]}')
    with serving(zone) as server:
        path = folder / "crawlhealth.yml"
        path.write_text(
            f"searchbots: {{ranges: ./ranges, resolver: {{servers: ['{server}'], timeout: 1s}}}}\n"
            "sites: {books: {hosts: [books.example]}}\n"
        )
        yield path


def run(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments, "--config", str(config)])


def test_a_verified_bot_and_how_that_is_known(config: Path) -> None:
    result = run(config, "66.249.66.1", "--as", "googlebot")
    assert result.output.splitlines() == [
        "66.249.66.1",
        "  ranges of Googlebot: no file common-crawlers.json among the ranges",
        "  PTR  1.66.249.66.in-addr.arpa: crawl-66-249-66-1.googlebot.com.",
        "  A    crawl-66-249-66-1.googlebot.com: 66.249.66.1",
        "Googlebot: verified (crawl-66-249-66-1.googlebot.com leads back to it)",
    ]
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("address", "name", "last"),
    [
        pytest.param(
            "11.0.0.2", "Googlebot",
            "Googlebot: fake (its name does not lead back to it: anybody can write such a name)", id="no way back",
        ),
        pytest.param(
            "11.0.0.9", "YandexBot", "YandexBot: fake (it has no name, and every YandexBot has one)", id="no name"
        ),
        pytest.param(
            "11.0.0.6", "Baiduspider",
            "Baiduspider: unverified (asking for its name failed, which proves nothing)", id="SERVFAIL",
        ),
        pytest.param(
            "11.0.0.6", "360Spider",
            "360Spider: unverifiable (the operator of 360Spider publishes no way to tell)", id="no method",
        ),
        pytest.param("20.191.45.1", "DuckDuckBot", "DuckDuckBot: fake (not in duckduckbot.json)", id="not in them"),
    ],
)  # fmt: skip
def test_what_is_not_verified_says_why_and_exits_1(config: Path, address: str, name: str, last: str) -> None:
    result = run(config, address, "--as", name)
    assert result.output.splitlines()[-1] == last
    assert result.exit_code == 1


def test_json(config: Path) -> None:
    result = run(config, "20.191.45.212", "--as", "DuckDuckBot", "--json")
    found = {
        "bot": "DuckDuckBot",
        "identity": "verified",
        "why": "duckduckbot.json has it",
        "method": "ranges",
        "ranges": "duckduckbot.json has it",
    }
    assert json.loads(result.output) == {"address": "20.191.45.212", "questions": [], "bots": [found]}


def test_without_a_bot_it_tells_which_it_is(config: Path) -> None:
    lines = run(config, "66.249.66.1").output.splitlines()
    assert "Googlebot: verified (crawl-66-249-66-1.googlebot.com leads back to it)" in lines
    assert not any("bingbot" in line for line in lines)
    result = run(config, "11.0.0.2")
    assert result.output.splitlines()[-1] == "no bot that can be proven; name the one it calls itself with --as"
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("66.249.66",), "'66.249.66' is no address: write one as in 66.249.66.1", id="no address"),
        pytest.param(("66.249.66.1", "--as", "Gogglebot"), "no bot 'Gogglebot' is known: write one of", id="no bot"),
    ],
)
def test_usage(config: Path, arguments: tuple[str, ...], said: str) -> None:
    result = run(config, *arguments)
    assert said in result.output
    assert result.exit_code == 2
