"""The rendered rules, judged by promtool; and that its cases would notice a rule that is wrong."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from crawlhealth import bundle, metrics
from crawlhealth.bundle.alerts import ALERTS, Alert
from crawlhealth.bundle.rules import rules

ALERTING = Path(__file__).parents[2] / "alerting"
RULES = ALERTING / "rules" / "crawlhealth.yml"
HEADINGS = ["What it means", "Is it true?", "What already happens", "What you decide", "What not to do"]

every_alert = pytest.mark.parametrize("alert", [pytest.param(alert, id=alert.name) for alert in ALERTS])


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *map(str, arguments)], check=False, capture_output=True, text=True, timeout=60)


def judge_with(alert: Alert, expr: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the alert's promtool cases on rules in which its expression is another one."""
    whole = yaml.safe_load(RULES.read_text())
    for rule in whole["groups"][0]["rules"]:
        if rule["alert"] == alert.name:
            rule["expr"] = expr
    (folder / "rules").mkdir()
    (folder / "tests").mkdir()
    (folder / "rules" / RULES.name).write_text(yaml.safe_dump(whole))
    case = shutil.copy(ALERTING / "tests" / f"{alert.name}.yml", folder / "tests")
    return promtool("test", "rules", case)


def test_the_committed_files_are_what_the_bundle_renders() -> None:
    assert bundle.check(ALERTING.parent) == []


def test_promtool_accepts_the_rules() -> None:
    result = promtool("check", "rules", RULES)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(ALERTS)} rules found" in result.stdout


@every_alert
def test_the_alert_fires_and_keeps_quiet_as_its_cases_say(alert: Alert) -> None:
    result = promtool("test", "rules", ALERTING / "tests" / f"{alert.name}.yml")
    assert result.returncode == 0, result.stdout + result.stderr


@every_alert
@pytest.mark.parametrize(
    "expr",
    [
        pytest.param("vector(1) > 1", id="an alert that never fires"),
        pytest.param("vector(1)", id="one that always does"),
    ],
)
def test_the_cases_of_an_alert_reject(alert: Alert, expr: str, tmp_path: Path) -> None:
    result = judge_with(alert, expr, tmp_path)
    assert result.returncode != 0
    assert alert.name in result.stderr + result.stdout


@every_alert
def test_the_cases_of_an_alert_reject_another_jobs_series(alert: Alert, tmp_path: Path) -> None:
    """Without its job selector a rule would judge series that are not ours."""
    expr = next(rule["expr"] for rule in rendered_rules() if rule["alert"] == alert.name)
    assert judge_with(alert, expr.replace('job="crawlhealth"', 'job=~".+"'), tmp_path).returncode != 0


@every_alert
def test_an_alert_about_a_site_keeps_quiet_during_its_planned_stops(alert: Alert) -> None:
    expr = next(rule["expr"] for rule in rendered_rules() if rule["alert"] == alert.name)
    assert alert.of_site == ("by (site" in alert.expr)
    assert ("crawlhealth_maintenance" in expr) == alert.of_site


@every_alert
def test_the_alert_has_cases_of_both_kinds(alert: Alert) -> None:
    cases = yaml.safe_load((ALERTING / "tests" / f"{alert.name}.yml").read_text())["tests"]
    expectations = [bool(case["exp_alerts"]) for group in cases for case in group["alert_rule_test"]]
    assert set(expectations) == {True, False}
    assert {case["alertname"] for group in cases for case in group["alert_rule_test"]} == {alert.name}


@every_alert
def test_the_alert_has_a_runbook_of_the_usual_form(alert: Alert) -> None:
    page = (ALERTING / "runbooks" / f"{alert.name}.md").read_text()
    assert page.startswith(f"# {alert.name}\n")
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == HEADINGS
    looks = page.split("## Is it true?")[1].split("## ")[0]
    assert re.findall(r"^(\d)\. ", looks, re.MULTILINE) == ["1", "2", "3"]


def test_nothing_lies_about_for_alerts_that_are_gone() -> None:
    names = {alert.name for alert in ALERTS}
    assert {path.stem for path in (ALERTING / "tests").iterdir()} == names
    assert {path.stem for path in (ALERTING / "runbooks").iterdir()} == names


def queries() -> list[tuple[str, str]]:
    """Where a query stands, and its text: rules with their templates, cases, runbooks."""
    files = [RULES, *sorted((ALERTING / "tests").iterdir()), *sorted((ALERTING / "runbooks").iterdir())]
    return [(path.name, path.read_text()) for path in files]


def exposed() -> dict[str, set[str]]:
    """The names of the exporter's series with the labels each may bear."""
    target = {"job", "instance"}
    return {spec.name: {*spec.labels, *target} for spec in metrics.ALL} | {"up": target}


@pytest.mark.parametrize(("place", "text"), [pytest.param(*query, id=query[0]) for query in queries()])
def test_every_series_that_is_asked_for_is_one_that_the_exporter_has(place: str, text: str) -> None:
    known = exposed()
    for name, selector in re.findall(r"\b(crawlhealth_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?", text):
        if name == "up" and not selector:
            continue
        assert name in known, f"{place}: {name}"
        labels = set(re.findall(r"(\w+)\s*=~?", selector))
        assert labels <= known[name], f"{place}: {name} has no label {labels - known[name]}"


def rendered_rules(**options: Any) -> list[dict[str, Any]]:
    text = bundle.render(**options)["alerting/rules/crawlhealth.yml"]
    return list(yaml.safe_load(text)["groups"][0]["rules"])


@every_alert
def test_a_compressed_clock_shortens_durations_and_nothing_else(alert: Alert) -> None:
    plain = next(rule for rule in rendered_rules() if rule["alert"] == alert.name)
    fast = next(rule for rule in rendered_rules(time_scale=60) if rule["alert"] == alert.name)
    for rule in (plain, fast):
        rule.pop("for", None)
        rule["expr"] = re.sub(r"\[\w+\]", "[…]", str(rule["expr"]))
    assert fast == plain


def test_a_compressed_clock_gives_valid_rules(tmp_path: Path) -> None:
    bundle.write(tmp_path, time_scale=90, job='crawl "eu"')
    result = promtool("check", "rules", tmp_path / "alerting/rules/crawlhealth.yml")
    assert result.returncode == 0, result.stdout + result.stderr
    down = next(rule for rule in rendered_rules(time_scale=90) if rule["alert"] == "CrawlExporterDown")
    assert down["for"] == "3s333ms"


def test_a_job_name_cannot_break_out_of_its_quotes(tmp_path: Path) -> None:
    text = rules(ALERTS, job='a"} or vector(1) or up{job="\\', runbook_base="https://r.invalid", time_scale=1)
    path = tmp_path / "rules.yml"
    path.write_text(text)
    assert promtool("check", "rules", path).returncode == 0
    down = next(rule for rule in yaml.safe_load(text)["groups"][0]["rules"] if rule["alert"] == "CrawlExporterDown")
    assert down["expr"].startswith('up{job="a\\"} or vector(1) or up{job=\\"\\\\"} == 0')
