"""The rendered rules, judged by promtool: every alert fires and keeps quiet as its cases say, and has its runbook."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from crawlhealth import bundle
from crawlhealth.bundle.model import Alert, Group, Options, Record, Scope, Scoring, Severity

ALERTING = Path(__file__).parents[2] / "alerting"
RULES = sorted((ALERTING / "rules").glob("*.yml"))
CASES = sorted((ALERTING / "tests").glob("*.yml"))
ALERTS = bundle.alerts()
HEADINGS = ["What it means", "Is it true?", "What already happens", "What you decide", "What not to do"]

every_alert = pytest.mark.parametrize("alert", [pytest.param(alert, id=alert.name) for alert in ALERTS])
every_case = pytest.mark.parametrize("case", [pytest.param(path, id=path.stem) for path in CASES])


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *map(str, arguments)], check=False, capture_output=True, text=True, timeout=120)


def cases_of(alert: Alert) -> list[Path]:
    """The files of an alert's cases: `NAME.yml`, and `NAME.part.yml` where some want another interval."""
    return [path for path in CASES if path.name.split(".")[0] == alert.name]


def rendered_rules(options: Options = Options()) -> dict[str, dict[str, Any]]:  # noqa: B008 - Options is frozen
    """Every rule as rendered, by name."""
    files = bundle.render(options)
    groups = [
        group
        for name, text in files.items()
        if "/rules/" in name
        for group in yaml.load(text, yaml.CSafeLoader)["groups"]
    ]
    return {rule.get("alert", rule.get("record")): rule for group in groups for rule in group["rules"]}


RENDERED = rendered_rules()


def test_the_committed_files_are_what_the_bundle_renders() -> None:
    assert bundle.check(ALERTING.parent) == []


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in RULES])
def test_promtool_accepts_the_rules(path: Path) -> None:
    result = promtool("check", "rules", path)
    assert result.returncode == 0, result.stdout + result.stderr


@every_case
def test_the_alert_fires_and_keeps_quiet_as_its_cases_say(case: Path) -> None:
    result = promtool("test", "rules", case)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", RENDERED)
def test_a_rule_reads_series_of_our_jobs_or_records_only(name: str) -> None:
    """Without its job selector a rule would judge series that are not ours."""
    asked = re.findall(r"(?<![\w:])(crawlhealth_\w+|up|scrape_\w+)\b(?:\{([^}]*)\})?", RENDERED[name]["expr"])
    for series, selector in asked:
        assert 'job="crawlhealth"' in selector, series


@every_alert
def test_an_alert_about_a_site_keeps_quiet_during_its_planned_stops(alert: Alert) -> None:
    assert ("crawlhealth_maintenance" in RENDERED[alert.name]["expr"]) == (alert.scope is Scope.SITE)


@every_alert
def test_the_alert_has_cases_of_both_kinds(alert: Alert) -> None:
    """So that one that never fires fails its cases, and so does one that always fires."""
    groups = [group for path in cases_of(alert) for group in yaml.load(path.read_text(), yaml.CSafeLoader)["tests"]]
    fired = {
        bool(case["exp_alerts"])
        for group in groups
        for case in group["alert_rule_test"]
        if case["alertname"] == alert.name
    }
    assert fired == {True, False}


@every_alert
def test_the_texts_of_an_alert_are_of_the_usual_form(alert: Alert) -> None:
    annotations = RENDERED[alert.name]["annotations"]
    assert list(annotations) == ["summary", "description", "dashboard_url", "runbook_url"]
    assert re.fullmatch(r"[A-Za-z][^{}]*\.", alert.summary), "one sentence without values"
    assert "You decide: " in alert.description
    if alert.scope is Scope.SITE:
        assert annotations["dashboard_url"].endswith("?var-site={{ $labels.site | urlquery }}")


@every_alert
def test_the_alert_has_a_runbook_of_the_usual_form(alert: Alert) -> None:
    page = (ALERTING / "runbooks" / f"{alert.name}.md").read_text()
    assert page.startswith(f"# {alert.name}\n")
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == HEADINGS
    looks = page.split("## Is it true?")[1].split("## ")[0]
    assert re.findall(r"^(\d)\. ", looks, re.MULTILINE) == ["1", "2", "3"]
    how = {Severity.CRITICAL: "*Pages.*", Severity.WARNING: "*Warns.*", Severity.INFO: "*Informs.*"}[alert.severity]
    assert page.split("\n")[2].startswith(how)


def test_nothing_lies_about_for_alerts_that_are_gone() -> None:
    names = {alert.name for alert in ALERTS}
    assert {path.name.split(".")[0] for path in CASES} == names
    assert {path.stem for path in (ALERTING / "runbooks").iterdir()} == names


def test_few_alerts_page() -> None:
    """Each of them is a symptom that a person must look at now."""
    assert sum(alert.severity is Severity.CRITICAL for alert in ALERTS) <= 12


@pytest.mark.parametrize("group", [pytest.param(group, id=group.name) for group in bundle.groups()])
def test_records_are_named_by_level_metric_and_operations(group: Group) -> None:
    for record in (rule for rule in group.rules if isinstance(rule, Record)):
        assert re.fullmatch(r"[a-z_]+:[a-z_]+(:[a-z0-9_]+)?", record.name), record.name
        assert "_total" not in record.name
    assert group.name.startswith("crawlhealth-"), "CrawlRulesFailing knows the groups by it"


@every_alert
def test_a_compressed_clock_shortens_durations_and_nothing_else(alert: Alert) -> None:
    plain, fast = (dict(rules[alert.name]) for rules in (RENDERED, rendered_rules(Options(time_scale=60))))
    for rule in (plain, fast):
        rule.pop("for", None)
        rule.pop("keep_firing_for", None)
        rule["expr"] = re.sub(r"\[[\w:]+\]|offset \w+|\b\d[\d.]*\b", "…", str(rule["expr"]))
    assert fast == plain


def test_a_compressed_clock_gives_valid_rules(tmp_path: Path) -> None:
    options = Options(time_scale=90, job='crawl "eu"', group_labels=("tenant", "cluster"), crawler_jobs=("c.1", "c+2"))
    names = bundle.write(tmp_path, options)
    result = promtool("check", "rules", *(tmp_path / name for name in names if "/rules/" in name))
    assert result.returncode == 0, result.stdout + result.stderr
    rules = rendered_rules(options)
    assert rules["CrawlExporterDown"]["for"] == "3s333ms"
    assert "> 3.333333333" in rules["CrawlExporterStale"]["expr"]
    assert "offset 32m" in rules["CrawlScoreUnknown"]["expr"]


def test_group_labels_part_sites_and_are_named_once() -> None:
    rules = rendered_rules(Options(group_labels=("tenant", "cluster")))
    resisting = rules["CrawlTargetResisting"]
    assert resisting["expr"].startswith("max by (tenant, cluster, site) (")
    assert "unless on (tenant, cluster, site) max by (tenant, cluster, site) (" in resisting["expr"]
    assert (
        'site:crawlhealth_score{tenant=%q,cluster=%q,site=%q})" $labels.tenant $labels.cluster $labels.site'
        in (resisting["annotations"]["description"])
    )
    assert "by (tenant, cluster, domain, bot)" in rules["CrawlBotSilent"]["expr"]


def test_counters_of_crawlers_are_read_where_crawlers_are_scraped() -> None:
    rules = rendered_rules(Options(crawler_jobs=("spiders.eu",)))
    counted = rules["site_route_outcome:crawl_requests:increase1h"]["expr"]
    assert 'crawlhealth_requests_total{job=~"crawlhealth|spiders\\\\.eu"}' in counted
    assert 'crawlhealth_band{job="crawlhealth",band="resisting"}' in rules["CrawlTargetResisting"]["expr"]


def test_another_severity_is_taken_and_an_unknown_alert_told_with_what_was_meant() -> None:
    rules = rendered_rules(Options(severities={"CrawlCertificateExpired": Severity.CRITICAL}))
    assert rules["CrawlCertificateExpired"]["labels"] == {"severity": "critical"}
    with pytest.raises(ValueError, match="no alert CrawlCertificateExpird: did you mean CrawlCertificateExpired"):
        bundle.render(Options(severities={"CrawlCertificateExpird": Severity.CRITICAL}))


def test_a_job_name_cannot_break_out_of_its_quotes(tmp_path: Path) -> None:
    options = Options(job='a"} or vector(1) or up{job="\\', crawler_jobs=('b"} or vector(1) #',))
    names = bundle.write(tmp_path, options)
    assert promtool("check", "rules", *(tmp_path / name for name in names if "/rules/" in name)).returncode == 0
    down = rendered_rules(options)["CrawlExporterDown"]
    assert down["expr"].startswith('up{job="a\\"} or vector(1) or up{job=\\"\\\\"} == 0')


def test_fleet_scoring_pages_for_no_exporter_where_none_is_scraped() -> None:
    ours, fleet = (rendered_rules(Options(scoring=scoring))["CrawlExporterDown"]["expr"] for scoring in Scoring)
    assert "absent(up" in ours
    assert fleet.strip() == 'up{job="crawlhealth"} == 0'
