"""Files of the bundle: the same bytes each time, and differences that are told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crawlhealth import bundle
from crawlhealth.bundle import metrictable
from crawlhealth.bundle.model import Group, Record
from crawlhealth.bundle.rules import expression
from crawlhealth.bundle.yamltext import duration
from crawlhealth.cli import main
from crawlhealth.metrics import MetricSpec


def test_what_was_written_is_up_to_date_and_an_edit_is_told_as_a_diff(tmp_path: Path) -> None:
    bundle.write(tmp_path)
    assert bundle.check(tmp_path) == []
    edited = tmp_path / "alerting/rules/score.yml"
    edited.write_text(edited.read_text().replace("alert: CrawlTargetResisting", "alert: CrawlTargetResting"))
    [difference] = bundle.check(tmp_path)
    assert "-      - alert: CrawlTargetResting\n+      - alert: CrawlTargetResisting\n" in difference


def test_a_file_that_is_missing_is_a_difference(tmp_path: Path) -> None:
    assert len(bundle.check(tmp_path)) == len(bundle.render())


def test_a_rule_file_of_an_earlier_version_is_a_difference(tmp_path: Path) -> None:
    bundle.write(tmp_path)
    (tmp_path / "alerting/rules/crawlhealth.yml").write_text("groups: []\n")
    assert bundle.check(tmp_path) == ["alerting/rules/crawlhealth.yml: is not rendered any more: remove it\n"]


def test_a_rule_file_of_other_options_is_told_when_others_are_written(tmp_path: Path) -> None:
    """It would be read beside them. What else lies there is nobody's business."""
    (tmp_path / "alerting/rules").mkdir(parents=True)
    (tmp_path / "alerting/rules/fleet.yml").write_text("groups: []\n")
    (tmp_path / "alerting/mine.yml").write_text("")
    result = run("--out", str(tmp_path), *ADDRESSES)
    assert (result.exit_code, result.stderr) == (0, "alerting/rules/fleet.yml: is not rendered any more: remove it\n")
    assert (tmp_path / "alerting/rules/fleet.yml").exists()


ADDRESSES = (
    "--runbook-base", "https://wiki.example/crawl/", "--dashboard-base", "https://grafana.example/",
    "--exporter-url", "https://health.example/",
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param((), "--runbook-base, --dashboard-base, --exporter-url", id="none was given"),
        pytest.param(ADDRESSES[:2], "--dashboard-base, --exporter-url", id="one was given"),
        pytest.param(ADDRESSES, None, id="all were given"),
    ],
)
def test_links_that_lead_nowhere_are_told_once(given: tuple[str, ...], told: str | None, tmp_path: Path) -> None:
    result = run("--out", str(tmp_path), *given)
    assert result.exit_code == 0
    assert result.stderr == (f"Links lead nowhere (.invalid) without {told}\n" if told else "")
    assert run("--out", str(tmp_path), *given, "--check").output == ""


def test_other_options_are_another_bundle(tmp_path: Path) -> None:
    options = bundle.Options(job="crawl")
    bundle.write(tmp_path, options)
    assert bundle.check(tmp_path, options) == []
    assert bundle.check(tmp_path)


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf")])
def test_a_clock_cannot_be_compressed_by_nothing(scale: float) -> None:
    with pytest.raises(ValueError, match="time_scale must be over 0"):
        bundle.Options(time_scale=scale)


def test_a_group_takes_no_more_rules_than_one_evaluation_should() -> None:
    rule = Record(name="site:x", expr="up")
    with pytest.raises(ValueError, match="21 rules, at most 20 in one group"):
        Group(file="x", name="crawlhealth-x", rules=(rule,) * 21)
    with pytest.raises(ValueError, match="interval 0:06:00, at most 0:05:00"):
        Group(file="x", name="crawlhealth-x", rules=(rule,), interval=timedelta(minutes=6))


@pytest.mark.parametrize(
    ("expr", "rendered"),
    [
        pytest.param("x[1h] offset 1d", "x[1m] offset 24m", id="ranges and offsets are divided"),
        pytest.param("x[14d:5m]", "x[5h36m:5s]", id="so are both lengths of a subquery"),
        pytest.param("x[5m]", "x[10s]", id="a range stays long enough for a few scrapes"),
        pytest.param("time() - x > ${10m}", "time() - x > 10", id="a length in seconds"),
        pytest.param("x[$window]", "x[20s]", id="the rule's own window"),
        pytest.param('x{y=~"[0-9]+ offset 1d"} > 300', 'x{y=~"[0-9]+ offset 1d"} > 300', id="no text in quotes"),
        pytest.param('x{job="$job"}', 'x{job="a \\"b\\""}', id="the job, escaped"),
        pytest.param("x{$traffic}", 'x{job=~"a\\\\ \\"b\\"|c\\\\.d"}', id="the jobs that count traffic"),
        pytest.param("by ($by) on ($on, route)", "by (t, site) on (t, site, route)", id="what parts sites"),
        pytest.param("by (${group}t, domain)", "by (t, domain)", id="a label of the metric's own stands once"),
    ],
)
def test_an_expression_is_filled_in_for_a_clock_sixty_times_as_fast(expr: str, rendered: str) -> None:
    options = bundle.Options(job='a "b"', crawler_jobs=("c.d",), group_labels=("t",), time_scale=60)
    rule = Record(name="site:x", expr=expr, window=timedelta(minutes=20))
    assert expression(rule, options) == rendered


def test_a_placeholder_that_does_not_exist_is_told_with_its_rule() -> None:
    with pytest.raises(ValueError, match=r"site:x: no placeholder .*jobb"):
        expression(Record(name="site:x", expr='x{job="$jobb"}'), bundle.Options())


def test_an_alternative_is_one_operand_of_the_planned_stop() -> None:
    alert = replace(bundle.alerts()[0], expr="a == 1\nor b == 1")
    assert expression(alert, bundle.Options()).startswith(
        "(\n  a == 1\n  or b == 1\n)\nunless on (site) max by (site) ("
    )


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bundle", *arguments])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(
            ("--severity", "CrawlTargetResistin=info"), "did you mean CrawlTargetResisting?", id="an alert's name"
        ),
        pytest.param(("--severity", "CrawlTargetResisting=page"), "critical, warning, info", id="a level"),
        pytest.param(("--severity", "CrawlTargetResisting"), "write NAME=LEVEL", id="a level that is missing"),
        pytest.param(("--group-labels", "tenant,data-center"), "'data-center' is no label name", id="a label's name"),
        pytest.param(("--group-labels", "site"), "has its meaning already", id="a label that is taken"),
        pytest.param(("--group-labels", "a,a"), "stands there twice", id="a label that is repeated"),
        pytest.param(("--runbook-base", "wiki/crawl"), "write it whole, as https://", id="half an address"),
        pytest.param(("--dashboard-base", "grafana"), "write it whole, as https://", id="a host's name"),
        pytest.param(("--scoring", "flet"), "is not one of 'exporter', 'fleet'", id="where scores come from"),
        pytest.param(("--job", ""), "a job has a name", id="no job"),
        pytest.param(("--time-scale", "0"), "is not in the range", id="no time"),
    ],
)
def test_a_wrong_option_is_told_with_what_to_write_instead(
    arguments: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    result = run("--out", str(tmp_path), *arguments)
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_and_checks_with_the_same_options(tmp_path: Path) -> None:
    options = (
        "--out", str(tmp_path), "--group-labels", "tenant, cluster", "--severity", "CrawlBotSilent=info",
        "--runbook-base", "https://wiki.example/crawl/", "--dashboard-base", "https://grafana.example/",
    )  # fmt: skip
    assert run(*options).exit_code == 0
    assert run(*options, "--check").exit_code == 0
    assert run("--out", str(tmp_path), "--check").exit_code == 1
    score = (tmp_path / "alerting/rules/score.yml").read_text()
    assert "runbook_url: https://wiki.example/crawl/CrawlTargetResisting.md\n" in score
    assert (
        "dashboard_url: https://grafana.example/d/crawlhealth-site?var-tenant={{ $labels.tenant | urlquery }}" in score
    )


@pytest.mark.parametrize(
    ("length", "written"),
    [
        pytest.param(timedelta(minutes=5), "5m", id="whole minutes"),
        pytest.param(timedelta(hours=1, minutes=30), "1h30m", id="hours and minutes"),
        pytest.param(timedelta(days=14), "14d", id="days"),
        pytest.param(timedelta(seconds=1.25), "1s250ms", id="milliseconds"),
        pytest.param(timedelta(microseconds=1), "0s", id="less than can be written"),
    ],
)
def test_a_duration_is_written_as_prometheus_reads_it(length: timedelta, written: str) -> None:
    assert duration(length) == written


SPECS = [MetricSpec("crawlhealth_x_total", "counter", "This | that.", ("site", "from"))]
TABLE = (
    "| metric | kind | labels | meaning |\n|---|---|---|---|\n"
    "| `crawlhealth_x_total` | counter | `site`, `from` | This \\| that. |\n"
)


def test_the_metric_table_takes_the_place_of_the_one_before() -> None:
    page = f"# Title\n{metrictable.BEGIN}\nold\n{metrictable.END}\nrest\n"
    renewed = metrictable.embed(page, SPECS)
    assert renewed == f"# Title\n{metrictable.BEGIN}\n{TABLE}{metrictable.END}\nrest\n"
    assert metrictable.embed(renewed, SPECS) == renewed


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("no markers\n", id="a page without markers"),
        pytest.param(f"{metrictable.END}\n{metrictable.BEGIN}\n", id="markers in the wrong order"),
        pytest.param(f"{metrictable.BEGIN}\n{metrictable.END}\n" * 2, id="two tables"),
    ],
)
def test_a_page_that_cannot_take_the_table_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="needs one line"):
        metrictable.embed(page, SPECS)
