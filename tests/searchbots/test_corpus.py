"""Real logs: what is counted equals an independent count, line by line. They are no part of the project."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from crawlhealth.scanning import logs

FOLDER = Path(os.environ.get("CRAWLHEALTH_CORPUS", Path(__file__).parents[3] / "shared" / "corpus")) / "logs"
TOKENS = (
    "Googlebot", "bingbot", "Baiduspider", "Sogou web spider", "360Spider", "Bytespider", "YandexBot", "YandexImages",
    "Applebot", "SeznamBot", "PetalBot", "Yahoo! Slurp",
)  # fmt: skip
LINE = re.compile(
    rb'(\S+) .*?\[(\d\d)/(\w{3})/(\d{4}):[^\]]*\] ".*?" (\d)\d\d \S+ ".*?" "((?:[^"\\]|\\.)*)"?\s*', re.DOTALL
)
MONTHS = {name: number for number, name in enumerate(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="no real logs here: set CRAWLHEALTH_CORPUS to the folder that has logs/"
)


def scanned(name: str) -> dict[str, object]:
    result = CliRunner().invoke(logs, ["scan", "--json", str(FOLDER / name)])
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("apache_combined_semicomplete_2015.log.gz", id="unordered, one line cut off"),
        pytest.param("advertools_nginx_access.log.gz", id="in no order of time"),
        pytest.param("advertools_combined_latin1_enc.log.gz", id="latin-1 and binary"),
        pytest.param("advertools_dreamhost_apache_access.log.gz", id="blanks at the ends of lines"),
    ],
)
def test_counts_equal_those_of_a_slow_and_simple_reader(name: str) -> None:
    data = gzip.decompress((FOLDER / name).read_bytes())
    expected: dict[str, dict[str, object]] = {}
    for token in TOKENS:
        matches = [
            match for line in data.split(b"\n") if (match := LINE.fullmatch(line)) and token.encode() in match[6]
        ]
        days = Counter(f"{match[4].decode()}-{MONTHS[match[3]]:02d}-{match[2].decode()}" for match in matches)
        if matches:
            expected[token] = {
                "visits": len(matches),
                "addresses": len({match[1] for match in matches}),
                "status": dict(Counter(f"{match[5].decode()}xx" for match in matches)),
                "days": dict(days),
            }
    found = scanned(name)
    bots = found["bots"]
    assert isinstance(bots, dict)
    assert expected
    assert {token: bots.get(token) for token in expected} == expected
    assert {token for token in bots if token in TOKENS} == set(expected)
    assert found["lines"] == data.count(b"\n") + (not data.endswith(b"\n"))
    unreadable = [line for line in data.split(b"\n") if line.strip() and not LINE.fullmatch(line)]
    assert found["unreadable"] == len(unreadable)


def test_a_json_log_is_read_but_for_what_is_no_access() -> None:
    name = "crowdsec_caddy_json.log.gz"
    lines = gzip.decompress((FOLDER / name).read_bytes()).splitlines()
    entries = [line for line in lines if b'"request"' in line]
    found = scanned(name)
    assert found["lines"] == len(lines)
    assert found["unreadable"] == len([line for line in lines if line.strip()]) - len(entries)
