"""The scan finds every line that matters, and `logs scan` tells what they say."""

from __future__ import annotations

import gzip
import ipaddress
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.scanning import logs
from crawlhealth.searchbots import formats
from crawlhealth.searchbots.bots import BOTS, Agents, named
from crawlhealth.searchbots.model import Bot
from crawlhealth.searchbots.scan import Network, Scanner, text_of
from crawlhealth.searchbots.visits import LogReader, Proxies, Stealth
from searchbots.logwriting import BROWSER, GOOGLE, line

TOKENS = [token for bot in BOTS for token in bot.tokens]


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(logs, ["scan", *arguments], input=text)


@given(st.lists(st.one_of(st.sampled_from(TOKENS), st.text("abcGoogbt -", max_size=20)), max_size=30))
def test_every_line_that_names_a_bot_is_found_once_and_whole(words: list[str]) -> None:
    lines = [f"before {word} after" for word in words]
    found = list(Scanner(BOTS).lines("".join(each + "\n" for each in lines).encode()))
    assert [each.decode() for each in found if any(token in each.decode() for token in TOKENS)] == [
        each for each in lines if any(token in each for token in TOKENS)
    ]


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        pytest.param(GOOGLE, "Googlebot", id="Googlebot"),
        pytest.param("Googlebot-Image/1.0", "Googlebot", id="its images are Googlebot's"),
        pytest.param(
            "(compatible; YandexImages/3.0; +http://yandex.com/bots)", "YandexImages", id="YandexImages apart"
        ),
        pytest.param("Baiduspider-render/2.0", "Baiduspider", id="Baidu's renderer"),
        pytest.param("AdsBot-Google (+http://www.google.com/adsbot.html)", "AdsBot-Google", id="AdsBot"),
        pytest.param("Sogou web spider/4.0", "Sogou web spider", id="a name with blanks"),
        pytest.param(
            "FeedFetcher-Google; (+http://www.google.com/x)", "Google user-triggered", id="asked for by users"
        ),
        pytest.param("bingbot and Googlebot", "bingbot", id="the first one counts"),
        pytest.param(BROWSER, None, id="a browser"),
        pytest.param("googlebot-lookalike", None, id="case counts"),
    ],
)
def test_an_agent_names_the_bot_whose_token_comes_first(agent: str, name: str | None) -> None:
    bot = Agents().bot(agent.encode())
    assert (bot.name if bot else None) == name


@pytest.mark.parametrize(
    ("network", "text"),
    [
        pytest.param("66.249.64.0/19", {b"66.249."}, id="whole octets only"),
        pytest.param("157.55.39.0/24", {b"157.55.39."}, id="three octets"),
        pytest.param("20.191.45.212/32", {b"20.191.45.212"}, id="a single address, which no dot follows"),
        pytest.param("10.0.0.0/8", set(), id="too wide to be looked for"),
        pytest.param("2001:4860:4801:10::/64", {b"2001:4860"}, id="version 6"),
        pytest.param("2001:0:1::/48", set(), id="zeros may be left out"),
    ],
)
def test_what_the_addresses_of_a_network_begin_with(network: str, text: set[bytes]) -> None:
    assert text_of(ipaddress.ip_network(network)) == text


@pytest.mark.parametrize(
    ("address", "agent", "stealth"),
    [
        pytest.param("66.249.66.1", BROWSER, True, id="a browser from its ranges"),
        pytest.param("66.249.200.1", BROWSER, False, id="a browser from beside them"),
        pytest.param("66.249.66.1", "Mozilla/5.0 (compatible; Google-Other-Tool)", False, id="an agent that says so"),
        pytest.param("66.249.66.1", "curl/8.0", False, id="no browser"),
    ],
)
def test_a_browser_from_published_ranges_is_stealth(address: str, agent: str, stealth: bool) -> None:
    networks: list[Network] = [ipaddress.ip_network("66.249.64.0/19")]
    google = named("googlebot")

    def owner(text: str) -> Bot | None:
        return google if ipaddress.ip_address(text) in networks[0] else None

    reader = LogReader(formats.reader("combined"), stealth=Stealth(networks, owner))
    text = line(1) + line(2, address=address, agent=agent)
    assert [each.stealth for each in reader.visits(text.encode())] == [False] + [True] * stealth


@pytest.mark.parametrize(
    ("address", "forwarded", "visitor"),
    [
        pytest.param("10.0.0.1", "203.0.113.9", "203.0.113.9", id="a proxy of ours is believed"),
        pytest.param("192.0.2.1", "203.0.113.9", "192.0.2.1", id="a stranger is not"),
        pytest.param("10.0.0.1", "203.0.113.9, 10.0.0.2", "203.0.113.9", id="from right to left over our own"),
        pytest.param("10.0.0.1", "66.249.66.1, 203.0.113.9", "203.0.113.9", id="what a visitor claims is not"),
        pytest.param("10.0.0.1", "unknown", "10.0.0.1", id="what is no address ends it"),
        pytest.param("10.0.0.1", "[2001:db8::1]:443", "2001:db8::1", id="with a port"),
        pytest.param("10.0.0.1", "203.0.113.9:1234", "203.0.113.9", id="version 4 with a port"),
        pytest.param("10.0.0.1", "", "10.0.0.1", id="nothing said"),
    ],
)
def test_the_visitor_behind_trusted_proxies(address: str, forwarded: str, visitor: str) -> None:
    proxies = Proxies([ipaddress.ip_network("10.0.0.0/8")])
    assert proxies.visitor(address.encode(), forwarded.encode()) == visitor.encode()


def test_the_report_as_json_is_the_contract(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(line(1) + line(2, status=404) + line(3, address="192.0.2.9") + line(4, agent=BROWSER) + "noise\n")
    result = run("--json", str(log))
    assert json.loads(result.stdout) == {
        "lines": 5,
        "unreadable": 1,
        "bots": {
            "Googlebot": {
                "visits": 3, "addresses": 2, "status": {"2xx": 2, "4xx": 1}, "days": {"2026-11-30": 3},
            }
        },
    }  # fmt: skip
    assert result.exit_code == 0


def test_the_report_for_people_names_status_days_and_paths(tmp_path: Path) -> None:
    log = tmp_path / "access.log.gz"
    log.write_bytes(gzip.compress((line(1) * 3 + line(2)).encode()))
    assert run(str(log)).stdout == (
        "4 lines\n4 visits of bots, 2026-11-30 to 2026-11-30\n\n"
        "Googlebot: 4 visits from 1 addresses\n  status    2xx 4\n  days      2026-11-30 4\n"
        "         3  /page/1\n         1  /page/2\n"
    )


def test_standard_input_is_read() -> None:
    assert json.loads(run("--json", "-", text=line(1)).stdout)["bots"]["Googlebot"]["visits"] == 1


def test_a_pipe_is_read_and_not_waited_for_where_nobody_writes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = run(str(pipe))
    assert result.exit_code == 1
    assert "pipe that nobody writes into" in result.stderr
    reader, writer = os.pipe()
    os.write(writer, line(1).encode())
    os.close(writer)
    assert run(f"/dev/fd/{reader}").stdout.startswith("1 lines\n")
    os.close(reader)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["missing.log"], 1, "missing.log: No such file", id="a file that is not there"),
        pytest.param(["noise.log"], 1, "no line can be read as combined: name its format", id="nothing to read in it"),
        pytest.param(["cut.gz"], 1, "cut.gz: ", id="a gzip that is cut"),
        pytest.param(["--format", "nginks", "noise.log"], 2, "there is no format 'nginks'", id="an unknown format"),
        pytest.param([], 2, "Missing argument", id="no file"),
    ],
)
def test_what_cannot_be_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("noise.log").write_text("noise\n")
    Path("cut.gz").write_bytes(gzip.compress(line(1).encode() * 1000)[:100])
    result = run(*arguments)
    assert result.exit_code == code
    assert said in result.stderr
