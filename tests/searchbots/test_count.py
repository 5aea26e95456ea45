"""Counting visits: by whom, of which domain, and never twice, also while it is being found out who came."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from crawlhealth.cli import main
from crawlhealth.searchbots.model import Bot, Identity
from crawlhealth.searchbotsettings import LogSettings, Target
from searchbots.logwriting import BROWSER, GOOGLE, NOON, Reading, line

KNOWN = {"192.0.2.1": Identity.VERIFIED, "192.0.2.2": Identity.FAKE}
MONEY = Target(name="money", url="https://money.example/")
VISITS = "searchbot_visits_total default shop.example Googlebot"


def identify(address: str, _bot: Bot) -> Identity | None:
    return KNOWN.get(address)


@pytest.fixture
def begin(tmp_path: Path) -> Callable[..., Reading]:
    def begin(text: str, **settings: object) -> Reading:
        log = tmp_path / "access.log"
        log.write_text(text)
        given = {"path": log, "domain": "shop.example", "name": "shop", **settings}
        reading = Reading(tmp_path, LogSettings(**given), identify=identify, targets=(MONEY,))  # type: ignore[arg-type]
        reading.service.read()
        return reading

    return begin


def test_visits_are_counted_by_who_they_are_and_only_a_verified_one_is_the_last(
    begin: Callable[..., Reading],
) -> None:
    reading = begin(line(5) + line(9, address="192.0.2.2", status=404) + line(7, agent=BROWSER))
    shown = reading.metrics()
    assert shown[f"{VISITS} verified 2xx"] == 1
    assert shown[f"{VISITS} fake 4xx"] == 1
    assert shown["searchbot_last_visit_timestamp_seconds default shop.example Googlebot"] == NOON + 5
    assert shown["log_lines_total shop"] == 3
    assert not any("192.0.2" in series for series in shown)


def test_who_is_being_found_out_waits_over_a_restart_and_counts_once(begin: Callable[..., Reading]) -> None:
    reading = begin(line(1, address="192.0.2.3") * 3)
    assert reading.total("searchbot_visits_total") == 0
    reading.again()
    KNOWN["192.0.2.3"] = Identity.VERIFIED
    try:
        reading.service.read()
    finally:
        del KNOWN["192.0.2.3"]
    assert reading.metrics()[f"{VISITS} verified 2xx"] == 3
    reading.service.read()
    assert reading.total("searchbot_visits_total") == 3


def test_who_is_not_found_out_in_a_minute_is_unverified(begin: Callable[..., Reading]) -> None:
    reading = begin(line(1, address="192.0.2.3"))
    reading.now += 59
    reading.service.read()
    assert reading.total("searchbot_visits_total") == 0
    reading.now += 2
    reading.service.read()
    assert reading.metrics()[f"{VISITS} unverified 2xx"] == 1


def test_a_domain_is_one_of_the_configuration_or_other(begin: Callable[..., Reading]) -> None:
    text = "SHOP.example:443 " + line(1) + "evil.example " + line(2)
    reading = begin(text, domain="", domains=("shop.example",), format="vhost")
    shown = reading.metrics()
    assert shown[f"{VISITS} verified 2xx"] == 1
    assert shown["searchbot_visits_total default other Googlebot verified 2xx"] == 1


def test_the_visitor_behind_a_trusted_proxy_is_who_is_asked_for(begin: Callable[..., Reading]) -> None:
    text = line(1, address="10.0.0.1").rstrip("\n") + ' "192.0.2.1"\n'
    assert begin(text, trusted_proxies=("10.0.0.0/8",)).metrics()[f"{VISITS} verified 2xx"] == 1


def test_a_targets_own_log_counts_arrivals_that_are_not_fake(begin: Callable[..., Reading]) -> None:
    shown = begin(line(1) + line(2, address="192.0.2.2"), target="money").metrics()
    assert shown["dispatch_arrivals_total default Googlebot money"] == 1
    assert not any(series.startswith("searchbot_visits") for series in shown)


def test_decisions_in_json_lines_are_counted_and_unknown_ones_are_not(begin: Callable[..., Reading]) -> None:
    entry = {"msec": NOON, "remote_addr": "192.0.2.1", "status": 200, "http_user_agent": GOOGLE, "target": "money"}
    lines = "".join(json.dumps({**entry, "decision": each}) + "\n" for each in ("sent", "sent", "stayed", "guess"))
    shown = begin(lines, format="nginx_json").metrics()
    series = "searchbot_dispatches_total default shop.example Googlebot money"
    assert (shown[f"{series} sent"], shown[f"{series} stayed"]) == (2, 1)
    assert f"{series} guess" not in shown


def test_a_time_far_ahead_does_not_hold_up_the_last_visit(begin: Callable[..., Reading]) -> None:
    shown = begin(line(1).replace("2026", "2036")).metrics()
    assert shown["searchbot_last_visit_timestamp_seconds default shop.example Googlebot"] == NOON


def test_a_log_that_leaves_the_configuration_leaves_metrics(begin: Callable[..., Reading]) -> None:
    reading = begin(line(1))
    reading._settings = type(reading._settings)()
    assert reading.metrics() == {}


def crawlhealth(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_old_logs_come_into_the_history_once_and_out_as_openmetrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("crawlhealth.yml").write_text("searchbots: {logs: [{path: access.log, name: shop, domain: shop.example}]}\n")
    old = Path("access.log.1")
    old.write_text(line(1) * 3 + line(2, status=404) + line(3).replace(":12:", ":14:") + line(4, agent=BROWSER))
    for _ in range(2):
        assert crawlhealth("logs", "import", str(old)) == "5 visits taken\n"
    text = crawlhealth("export", "--openmetrics")
    labels = 'job="crawlhealth",tenant="default",domain="shop.example",bot="Googlebot",identity="unverified"'
    noon = int(NOON)
    good = "crawlhealth_searchbot_visits_total{" + labels + ',status_class="2xx"}'
    assert [each for each in text.splitlines() if each.startswith(good)] == [
        f"{good} 0.0 {noon}",
        f"{good} 3.0 {noon + 3600}",
        f"{good} 3.0 {noon + 7200}",
        f"{good} 4.0 {noon + 10800}",
    ]
    assert text.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        pytest.param("path: nowhere/access.log", "there is no folder", id="no such folder"),
        pytest.param("path: a.log, format: combinde", "did you mean combined?", id="a format misspelt"),
        pytest.param("path: a.log, format: '$remote_addr $status'", "lacks $time_local", id="a format without a time"),
        pytest.param(
            "path: a.log, format: '$remote_addr$status [$time_local] $http_user_agent'",
            "nothing between $remote_addr and the next", id="variables that touch",
        ),
        pytest.param("path: a.log, trusted_proxies: [10.0.0]", "is no network", id="no network"),
        pytest.param("path: a.log, domain: 'shop example'", "is no domain", id="no domain"),
        pytest.param("path: a.log, domain: a.example, domains: [b.example]", "keep one of them", id="two of domain"),
        pytest.param("path: a.log}, {path: a.log", "already: give this one a name", id="twice the same log"),
        pytest.param("format: combined", "needs path", id="no path"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_says_what_to_write(tmp_path: Path, written: str, problem: str) -> None:
    config = tmp_path / "crawlhealth.yml"
    config.write_text("searchbots: {logs: [{" + written + "}]}\n")
    result = CliRunner().invoke(main, ["check", "--config", str(config)])
    assert result.exit_code == 1
    assert problem in result.stderr
    assert f"{config}:1:" in result.stderr
