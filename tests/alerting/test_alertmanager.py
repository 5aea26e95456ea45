"""The Alertmanager configuration, judged by amtool and by a real Alertmanager with a real webhook."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml

from alerting.alertmanagers import Sink, alertmanager, muted, options_for, post
from alerting.test_expressions import known_with_records, labels_of
from crawlhealth import bundle
from crawlhealth.bundle.alertmanager import DIGEST, INHIBITIONS, NOTIFY, OUTAGE, PAGE, WORKING_HOURS
from crawlhealth.bundle.model import Alert, Options, Scope, Scoring, Severity
from crawlhealth.bundle.rules import expression
from crawlhealth.scoresettings import ScoreSettings
from waiting import until

FOLDER = Path(__file__).parents[2] / "alerting"
CONFIG = FOLDER / "alertmanager.yml"
ALERTS = {alert.name: alert for alert in bundle.alerts()}
RECEIVERS = {Severity.CRITICAL: PAGE, Severity.WARNING: NOTIFY, Severity.INFO: DIGEST}
GROUPED = Options(group_labels=("tenant", "cluster"))


def amtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["amtool", *arguments], check=False, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("options", [Options(), GROUPED], ids=["as it is", "group labels"])
def test_amtool_accepts_the_configuration_and_its_template(options: Options, tmp_path: Path) -> None:
    bundle.write(tmp_path, options)
    result = amtool("check-config", str(tmp_path / "alerting/alertmanager.yml"))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 templates" in result.stdout


@pytest.mark.parametrize("alert", [pytest.param(alert, id=name) for name, alert in ALERTS.items()])
def test_the_alert_reaches_the_receiver_of_its_severity(alert: Alert) -> None:
    routed_to(RECEIVERS[alert.severity], alertname=alert.name, severity=str(alert.severity), site="shop")


def test_what_has_another_severity_is_told_all_the_same() -> None:
    routed_to(NOTIFY, alertname="CrawlSomethingElse", severity="page")
    routed_to(NOTIFY, alertname="SomethingElse", severity="critical")


def routed_to(receiver: str, config: Path = CONFIG, **labels: str) -> None:
    pairs = [f"{name}={value}" for name, value in labels.items()]
    result = amtool("config", "routes", "test", f"--config.file={config}", f"--verify.receivers={receiver}", *pairs)
    assert result.returncode == 0, result.stdout + result.stderr


def written(options: Options) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(bundle.render(options)["alerting/alertmanager.yml"])
    return config


def our_route(options: Options) -> dict[str, Any]:
    """The one route below the root, which is all of our routing."""
    root = written(options)["route"]
    assert root.keys() == {"receiver", "routes"}
    [route] = root["routes"]
    return dict(route)


def named(matchers: Sequence[str]) -> list[str]:
    """The names of alerts that matchers ask for."""
    return [name for one in matchers if (found := re.match(r'alertname=~?"(.+)"', one)) for name in found[1].split("|")]


@pytest.mark.parametrize("scoring", Scoring)
def test_every_name_in_an_inhibition_is_that_of_an_alert(scoring: Scoring) -> None:
    options = Options(scoring=scoring)
    names = {alert.name for alert in bundle.alerts(options)}
    for rule in written(options)["inhibit_rules"]:
        sources, targets = named(rule["source_matchers"]), named(rule["target_matchers"])
        assert sources
        assert set(sources) <= names, sources
        for target in targets:
            assert target in names or (target == "Crawl[A-Z].+" and all(re.fullmatch(target, name) for name in names))
        assert not set(sources) & set(targets)


def test_every_severity_has_its_route_and_no_route_is_for_another() -> None:
    matchers = [route["matchers"] for route in our_route(Options())["routes"]]
    assert matchers == [[f'severity="{severity}"'] for severity in Severity]


@pytest.mark.parametrize(
    "options", [Options(), GROUPED, Options(scoring=Scoring.FLEET)], ids=["as it is", "group labels", "fleet scoring"]
)
def test_both_sides_of_an_inhibition_bear_the_labels_that_must_be_equal(options: Options) -> None:
    """Else it would never mute anything, or everything: a label that both lack is equal."""
    known = known_with_records(options)
    rules = {alert.name: alert for alert in bundle.alerts(options)}
    for rule in written(options)["inhibit_rules"]:
        for name in (*named(rule["source_matchers"]), *named(rule["target_matchers"])):
            if name in rules:
                borne = labels_of(promql.parse(expression(rules[name], options)), known)
                assert set(rule.get("equal", ())) <= borne, name


def test_labels_that_part_sites_part_messages_and_inhibitions_too() -> None:
    assert our_route(GROUPED)["group_by"] == ["tenant", "cluster", "site", "alertname"]
    for rule in written(GROUPED)["inhibit_rules"]:
        assert rule["equal"][:2] == ["tenant", "cluster"]
        assert len(set(rule["equal"])) == len(rule["equal"])


def test_only_the_digest_waits_for_working_hours() -> None:
    routes = {route["receiver"]: route for route in our_route(Options())["routes"]}
    assert routes[DIGEST]["active_time_intervals"] == [WORKING_HOURS]
    assert not any(key.endswith("_time_intervals") for name in (PAGE, NOTIFY) for key in routes[name])
    compressed = our_route(Options(time_scale=100))["routes"]
    assert not any("active_time_intervals" in route for route in compressed), "a demo is shown at any hour"


def test_the_uplink_is_told_before_anything_that_it_mutes() -> None:
    """A scrape, an evaluation and the wait of its group later at the latest, while a site needs its minutes."""
    latest = ALERTS["CrawlUplinkDown"].for_.total_seconds() + 15 + 30 + 10
    assert latest < ScoreSettings().enter_after.resisting.total_seconds()
    bands = {"CrawlTargetResisting", "CrawlTargetDegrading", "CrawlTargetDrifting"}  # have their times in the exporter
    for alert in ALERTS.values():
        if alert.scope is Scope.SITE and alert.name not in bands:
            assert alert.for_.total_seconds() > latest, alert.name


@contextmanager
def running(folder: Path, *, group_labels: tuple[str, ...] = ()) -> Iterator[tuple[Sink, str]]:
    """An Alertmanager with its waits cut to half a second, and what it tells."""
    with ExitStack() as stack:
        sink = stack.enter_context(Sink())
        bundle.write(folder, options_for(sink, time_scale=600, group_labels=group_labels))
        yield sink, stack.enter_context(alertmanager(folder))


def firing(name: str, **labels: str) -> dict[str, str]:
    """An alert of the bundle; of a site, unless it says something else."""
    return {"alertname": name, "severity": str(ALERTS[name].severity), **(labels or {"site": "shop"})}


SENTINEL = {"alertname": "CrawlUnknownToUs", "severity": "warning", "instance": "a"}
LABELS = {"site": "shop", "canary": "a", "route": "direct", "value": "price", "tenant": "", "domain": "shop.example",
          "bot": "b", "job": "crawlhealth", "instance": "a"}  # fmt: skip


def test_each_inhibition_mutes_what_it_names_where_its_labels_are_equal(tmp_path: Path) -> None:
    """Every pair at once, each with labels of its own; beside each target one that is about something else."""
    with running(tmp_path) as (sink, url):
        pairs = [(quiet, target) for quiet in INHIBITIONS for target in quiet.targets]
        sources, targets, others = [], [], []
        for number, (quiet, target) in enumerate(pairs):
            labels = {label: f"{value}-{number}" for label, value in LABELS.items()}
            sources.append(firing(quiet.because, **labels))
            targets.append(firing(target, **labels))
            others.append(firing(target, **{label: value + "-other" for label, value in labels.items()}))
        post(url, *sources)
        post(url, *targets, *others)
        wanted = sorted((target["alertname"], target["site"]) for target in targets)
        until(lambda: muted(url) == wanted, 30, f"{wanted} are muted", lambda: str(muted(url)))
        untold = {(name, site) for name, site in wanted}
        for other in others:
            path = {"critical": "/page", "warning": "/notify", "info": "/digest"}[other["severity"]]
            if path != "/digest":
                sink.wait_for(path, (other["alertname"], other["site"], "firing"))
        told = {(name, site) for path in ("/page", "/notify") for name, site, _ in sink.told(path)}
        assert not told & untold


def test_a_site_that_gets_worse_is_told_once_and_its_way_back_too(tmp_path: Path) -> None:
    """Each step ends with a notice, so that Alertmanager knows of the worse alert when the lesser one comes."""
    with running(tmp_path) as (sink, url):
        post(url, firing("CrawlTargetResisting"))
        sink.wait_for("/page", ("CrawlTargetResisting", "shop", "firing"))
        post(url, firing("CrawlTargetDegrading"), firing("CrawlTargetDegrading", site="books"))
        sink.wait_for("/notify", ("CrawlTargetDegrading", "books", "firing"))
        post(url, firing("CrawlParserFailing"), firing("CrawlParserFailing", site="quotes"))
        sink.wait_for("/notify", ("CrawlParserFailing", "quotes", "firing"))
        assert [name for name, site, _ in sink.told("/notify") if site == "shop"] == []

        post(url, firing("CrawlTargetResisting"), ended=True)
        sink.wait_for("/page", ("CrawlTargetResisting", "shop", "resolved"))
        sink.wait_for("/notify", ("CrawlTargetDegrading", "shop", "firing"))
        assert ("CrawlParserFailing", "shop", "firing") not in sink.told("/notify"), "hostility is read first"
        assert [status for _, _, status in sink.told("/page")] == ["firing", "resolved"]


def test_without_uplink_one_alert_is_told_and_none_about_a_site(tmp_path: Path) -> None:
    with running(tmp_path) as (sink, url):
        post(url, firing("CrawlUplinkDown", instance="a"))
        sink.wait_for("/page", ("CrawlUplinkDown", "", "firing"))
        sites = [firing(alert.name) for alert in ALERTS.values() if alert.scope is Scope.SITE]
        post(url, *sites)
        until(lambda: len(muted(url)) == len(sites), 30, "all are muted", lambda: str(muted(url)))
        post(url, SENTINEL)
        sink.wait_for("/notify", ("CrawlUnknownToUs", "", "firing"))
        assert sink.told("/page") == [("CrawlUplinkDown", "", "firing")]
        assert sink.told("/notify") == [("CrawlUnknownToUs", "", "firing")]


def test_without_group_labels_an_uplink_mutes_the_sites_of_every_exporter(tmp_path: Path) -> None:
    """Nothing tells their regions apart; and only what is about a site keeps quiet."""
    with running(tmp_path) as (sink, url):
        post(url, firing("CrawlUplinkDown", instance="a", job="crawlhealth"))
        sink.wait_for("/page", ("CrawlUplinkDown", "", "firing"))
        sites = [f"site-{number:02d}" for number in range(20)]
        where = {"job": "crawlhealth", "cluster": "north"}
        post(
            url,
            *(firing("CrawlTargetResisting", site=site) for site in sites),
            *(firing("CrawlCanaryFailing", site=site, instance="b", canary="front", **where) for site in sites),
            firing("CrawlExporterDown", instance="b", job="crawlhealth"),
        )
        sink.wait_for("/page", ("CrawlExporterDown", "", "firing"))
        assert muted(url) == sorted(
            (name, site) for name in ("CrawlTargetResisting", "CrawlCanaryFailing") for site in sites
        )
        assert [name for name, _, _ in sink.told("/page")] == ["CrawlUplinkDown", "CrawlExporterDown"]
        assert sink.told("/notify") == []


def test_what_an_outage_leaves_behind_is_not_told_and_refusals_are(tmp_path: Path) -> None:
    with running(tmp_path) as (sink, url):
        post(url, firing("CrawlUplinkOutage", instance="a"))
        sink.wait_for("/digest", ("CrawlUplinkOutage", "", "firing"))
        post(url, *(firing(name) for name in OUTAGE.targets), firing("CrawlRouteFailing"))
        sink.wait_for("/notify", ("CrawlRouteFailing", "shop", "firing"))
        assert muted(url) == sorted((name, "shop") for name in OUTAGE.targets)
        assert [name for name, _, _ in sink.told("/notify")] == ["CrawlRouteFailing"]


def test_the_uplink_of_one_region_mutes_no_site_of_another(tmp_path: Path) -> None:
    with running(tmp_path, group_labels=("region",)) as (sink, url):
        post(url, firing("CrawlUplinkDown", instance="a", region="north"))
        sink.wait_for("/page", ("CrawlUplinkDown", "", "firing"))
        post(
            url,
            firing("CrawlTargetResisting", site="shop", region="north"),
            firing("CrawlTargetResisting", site="books", region="south"),
        )
        sink.wait_for("/page", ("CrawlTargetResisting", "books", "firing"))
        assert muted(url) == [("CrawlTargetResisting", "shop")]
        assert [site for _, site, _ in sink.told("/page")] == ["", "books"]


def test_remarks_come_together(tmp_path: Path) -> None:
    with running(tmp_path) as (sink, url):
        infos = [firing("CrawlTargetDrifting", site=f"site-{number}") for number in range(5)]
        post(url, *infos, firing("CrawlBaselineFrozen"))
        sink.wait_for("/digest", ("CrawlBaselineFrozen", "shop", "firing"))
        [(_, message)] = sink.received
        assert len(message["alerts"]) == 6


ALERT = {
    "status": "firing",
    "labels": {"alertname": "CrawlTargetResisting", "severity": "critical", "site": "our shop/a"},
    "annotations": {
        "summary": "A site refuses most of what its own normal allows.",
        "description": "our shop/a is resisting. The health score is 31 of 100. hard_block costs 35 points.",
        "dashboard_url": "https://grafana.example/d/crawlhealth-site?var-site=our+shop%2Fa",
        "runbook_url": "https://wiki.example/CrawlTargetResisting.md",
    },
    "endsAt": "2026-11-30T12:34:00Z",
}


def message(folder: Path, template: str, alerts: Sequence[dict[str, Any]], status: str = "firing") -> str:
    """What a template makes of alerts, by amtool."""
    bundle.write(folder, Options(exporter_url="https://health.example/"))
    data = {
        "status": status,
        "alerts": alerts,
        "commonLabels": alerts[0]["labels"],
        "commonAnnotations": {"summary": alerts[0]["annotations"]["summary"]},
        "externalURL": "https://alerts.example",
    }
    (folder / "data.json").write_text(json.dumps(data))
    result = amtool(
        "template", "render", f"--template.glob={folder}/alerting/templates/*.tmpl",
        f"--template.data={folder / 'data.json'}", f'--template.text={{{{ template "{template}" . }}}}',
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout.rstrip("\n")


def test_a_message_says_what_is_wrong_why_and_where_to_look(tmp_path: Path) -> None:
    title = message(tmp_path, "crawlhealth.title", [ALERT])
    assert title == "CRITICAL: our shop/a: A site refuses most of what its own normal allows."
    assert message(tmp_path, "crawlhealth.text", [ALERT]) == (
        "our shop/a is resisting. The health score is 31 of 100. hard_block costs 35 points.\n"
        "Site: https://health.example/sites/our%20shop%2Fa\n"
        "Dashboard: https://grafana.example/d/crawlhealth-site?var-site=our+shop%2Fa\n"
        "What to do: https://wiki.example/CrawlTargetResisting.md"
    )


def test_a_message_about_an_end_says_when(tmp_path: Path) -> None:
    over = {**ALERT, "status": "resolved"}
    assert message(tmp_path, "crawlhealth.title", [over], "resolved").startswith("RESOLVED: our shop/a: ")
    text = message(tmp_path, "crawlhealth.text", [over], "resolved")
    assert text.startswith("Over since 2026-11-30 12:34 UTC: A site refuses")


def test_a_long_message_ends_with_where_the_rest_is(tmp_path: Path) -> None:
    text = message(tmp_path, "crawlhealth.text", [ALERT] * 50)
    assert text.count("is resisting") == 20
    assert text.endswith("These are the first 20 of 50: https://alerts.example")


def test_an_alert_without_a_site_links_to_none(tmp_path: Path) -> None:
    labels = {"alertname": "CrawlExporterDown", "severity": "critical"}
    assert "Site:" not in message(tmp_path, "crawlhealth.text", [{**ALERT, "labels": labels}])
