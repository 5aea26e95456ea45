"""What may be written under `searchbots` for verification, targets, domains and dependencies."""

# ruff: noqa: E501 - a problem is written, and looked for, on one line

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from configured import CONFIG, Folder
from crawlhealth.searchbots.bots import BOTS
from crawlhealth.searchbotsettings import RANGE_FILES, Quota
from crawlhealth.secret import Secret

GOOD = """
searchbots:
  tenants:
    acme: {domains: [shop.example, www.shop.example], tokens: [{env: ACME}]}
    zeta: {}
  ranges: ./ranges
  refresh:
    bingbot.json: {url: 'https://operator.example/bingbot.json', every: 12h}
    user-triggered-fetchers-google.json: {url: 'https://operator.example/google.json'}
  resolver: {servers: ['127.0.0.1:5353', '::1', '[::1]:54'], timeout: 3s, concurrency: 10}
  targets:
    money: {url: 'https://money.example/', tenant: acme, weight: 3, quota: {ramp: [500, 800], begins: 2026-12-01}}
  domains: {names: [shop.example, 'http://shop.example:8080'], rdap: 'https://rdap.example/'}
  dependencies:
    redis: {url: 'rediss://redis.example:6380', username: probe, password: {env: REDIS}, timeout: 2s}
"""


def test_everything_is_read(tmp_path: Path) -> None:
    settings = Folder(tmp_path, {"REDIS": "sesame", "ACME": "token"}).load(CONFIG + GOOD).searchbots
    assert settings.ranges == tmp_path / "ranges"
    assert settings.refresh["bingbot.json"].every == timedelta(hours=12)
    assert settings.resolver.endpoints == (("127.0.0.1", 5353), ("::1", 53), ("::1", 54))
    assert settings.targets["money"].url == "https://money.example/"
    assert settings.targets["money"].quota == Quota(ramp=(500, 800), begins="2026-12-01")
    assert settings.tenants["acme"].tokens == (Secret("token"),)
    assert settings.domains.names == ("shop.example", "http://shop.example:8080")
    assert settings.watched_domains == ("shop.example", "http://shop.example:8080", "www.shop.example")
    assert settings.dependencies["redis"].password == Secret("sesame")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param("resolver: {servers: [dns.example]}", "is no name server: write its address", id="a name of a server"),
        pytest.param("resolver: {servers: ['127.0.0.1:99999']}", "is no name server", id="a port that is none"),
        pytest.param("resolver: {timeout: 1h}", "must be from 100ms to 30s: write for instance 2s", id="a long timeout"),
        pytest.param("resolver: {concurrency: 0}", "must be from 1 to 1000: write for instance 64", id="none at once"),
        pytest.param("refresh: {a.json: {url: 'https://a.example/'}}", "add ranges: ./ranges", id="no folder"),
        pytest.param("ranges: r\n  refresh: {../a: {url: 'https://a.example/'}}", "write it as in bingbot.json", id="a path"),
        pytest.param("ranges: r\n  refresh: {typobot.json: {url: 'https://a.example/'}}", "is no bot's file, and would never be read: write one of applebot.json", id="no bot's file"),
        pytest.param("ranges: ./nope/nope", "is not there: make the folder", id="no such folder"),
        pytest.param("ranges: ./c.yml", "is no folder: name the folder", id="a file for a folder"),
        pytest.param("ranges: r\n  refresh: {a.json: {url: 'https://a.example/', every: 1m}}", "asks too often", id="often"),
        pytest.param("targets: {a: {url: 'ftp://a.example/'}}", "write for instance https://shop.example/", id="no web"),
        pytest.param("targets: {a: {}}", "needs url: add it", id="no URL"),
        pytest.param("targets: {other: {url: 'http://a/'}}", "give it another name", id="a name that is taken"),
        pytest.param("targets: {a: {url: 'http://a/', weight: -1}}", "must be 0 or more", id="less than no weight"),
        pytest.param("targets: {a: {url: 'http://a/', quota: {}}}", "needs one of day and ramp", id="no quota at all"),
        pytest.param("targets: {a: {url: 'http://a/', quota: {day: 5, ramp: [5]}}}", "needs one of day", id="two quotas"),
        pytest.param("targets: {a: {url: 'http://a/', quota: {day: -5}}}", "is no number of visits", id="less than none"),
        pytest.param("targets: {a: {url: 'http://a/', quota: {ramp: [5], begins: soon}}}", "write it as in 2026-12-01", id="no date"),
        pytest.param("targets: {a: {url: 'http://a/', quota: {day: 5, begins: 2026-12-01}}}", "add ramp:", id="no ramp"),
        pytest.param("tenants: {a: {tokens: [b]}}", "a secret and must not stand here", id="a token in the file"),
        pytest.param("tenants: {a: {tokens: [{env: T}]}, b: {tokens: [{env: T}]}}", "is a token of the tenant 'a' too", id="shared"),
        pytest.param("tenants: {a: {domains: [s.example]}, b: {domains: [S.example]}}", "to the tenant 'a' already", id="two owners"),
        pytest.param("tenants: {a: {domains: ['http://s/']}}", "is no domain: write it as in shop.example", id="a URL"),
        pytest.param("tenants: {acme: {}}\n  targets: {t: {url: 'http://a/', tenant: acmee}}", "did you mean acme?", id="misspelt"),
        pytest.param("tenants: {acme: {}}\n  targets: {t: {url: 'http://a/'}}", "no tenant 'default': write one of acme", id="nobody's target"),
        pytest.param("logs: [{path: a.log, target: t}]", "there is no target 't'", id="no such target"),
        pytest.param("tenants: {a: {}, b: {}}\n  targets: {t: {url: 'http://a/', tenant: a}}\n  logs: [{path: a.log, tenant: b, target: t}]", "belongs to the tenant 'a'", id="another's target"),
        pytest.param("tenants: {a: {domains: [s.example]}}\n  logs: [{path: a.log, tenant: a, domain: t.example}]", "none of its tenant's domains", id="another's log"),
        pytest.param("domains: {names: ['shop.example/x']}", "is no domain: write it as in shop.example", id="a path of it"),
        pytest.param("tenants: {a: {}, b: {domains: [X.example]}}\n  logs: [{path: a.log, tenant: a, domain: x.example}]", "logs[0].domain: 'x.example' belongs to the tenant 'b', the log to 'a': leave it to one", id="another's domain"),
        pytest.param("tenants: {a: {}, b: {domains: [x.example]}}\n  logs: [{path: a.log, tenant: a, domains: [y.example, x.example]}]", "logs[0].domains[1]: 'x.example' belongs to the tenant 'b'", id="another's among several"),
        pytest.param("tenants: {a: {tokens: [{env: P}]}}", "tenants.a.tokens[0]: is one of push.tokens too: give", id="a token that pushes"),
        pytest.param("tenants: {a: {domains: [a..b]}}", "tenants.a.domains[0]: 'a..b' is no domain", id="an empty label"),
        pytest.param("domains: {names: ['http://x.example/path?q']}", "domains.names[0]: has more than host and port: write for", id="more than an origin"),
        pytest.param("domains: {names: ['http://x.example?q']}", "domains.names[0]: has more than host and port", id="a query"),
        pytest.param("logs: [{path: a.log, trusted_proxies: [10.0.0.0/8, 0.0.0.0/0]}]", "trusted_proxies[1]: '0.0.0.0/0' is everybody", id="everybody a proxy"),
        pytest.param("logs: [{path: a.log, trusted_proxies: ['::/0']}]", "name your own proxies", id="everybody of IPv6"),
        pytest.param("targets: {a: {url: 'http://a/', quota: {ramp: [5], begins: 20261201}}}", "write it as in 2026-12-01", id="no hyphens"),
        pytest.param("targets: {a: {url: 'http://a/', quota: {ramp: [5], begins: 2026-W49-1}}}", "write it as in 2026-12-01", id="a week"),
        pytest.param("targets: {a: {url: 'http://a/', quota: {ramp: [5, -1, 7]}}}", "quota.ramp[1]: is no number of visits", id="a wrong week"),
        pytest.param("dependencies: {r: {url: 'rediss://a', ca_file: /nope.pem}}", "r.ca_file: there is no file '/nope.pem': name one", id="no certificates"),
        pytest.param("domains: {rdap: nowhere}", "write for instance https://rdap.org/", id="no service"),
        pytest.param("dependencies: {r: {url: 'http://a.example'}}", "write for instance redis://127.0.0.1:6379", id="no Redis"),
        pytest.param("dependencies: {r: {url: 'redis://a', username: b}}", "needs a password: add", id="half of it"),
    ],
)  # fmt: skip
def test_problems(tmp_path: Path, written: str, said: str) -> None:
    folder = Folder(tmp_path, {"T": "sesame", "P": "mellon"})
    problems = folder.problems(CONFIG + f"push: {{tokens: [{{env: P}}]}}\nsearchbots:\n  {written}\n")
    assert any(said in problem for problem in problems), problems


def test_a_ramp_that_cannot_be_read_is_said_once(tmp_path: Path) -> None:
    written = "searchbots: {targets: {a: {url: 'http://a/', quota: {ramp: [1, 2.5, x], begins: 2026-12-01}}}}\n"
    problems = Folder(tmp_path).problems(CONFIG + written)
    assert [problem.split(": ")[1] for problem in problems] == [
        f"searchbots.targets.a.quota.ramp[{week}]" for week in (1, 2)
    ]


def test_the_files_of_ranges_that_may_be_named_are_those_of_the_bots() -> None:
    assert sorted(RANGE_FILES) == sorted({pattern for bot in BOTS for pattern in bot.ranges})


def test_a_password_in_a_url_is_refused_and_not_shown(tmp_path: Path) -> None:
    written = "searchbots: {dependencies: {r: {url: 'redis://u:sesame@a.example'}}}\n"
    problems = Folder(tmp_path, {"T": "sesame"}).problems(CONFIG + written)
    assert "must hold no user and password" in "".join(problems)
    assert "sesame" not in "".join(problems)
