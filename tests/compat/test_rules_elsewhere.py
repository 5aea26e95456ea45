"""The rules and their cases on every engine that can be had: promtool of each version, and vmalert-tool."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compat.engines import ENGINES, ROOT, Engine
from crawlhealth import bundle
from crawlhealth.bundle import Options, Scoring

Recorded = Callable[[str, object], None]

pytestmark = pytest.mark.compat
CASES = sorted((ROOT / "alerting" / "tests").glob("*.yml"))
OTHERWISE_ON_VICTORIA = {
    "CrawlVolumeHalved.harmless.yml",  # looks within the minutes in which an alert ends, and rules come later there
    "CrawlVolumeHalved.unknown.yml",  # a text has one sentence more: the day is known there before it is elsewhere
}
"""Cases that vmalert-tool is known to see in another way; they are not tried on it."""
every_engine = pytest.mark.parametrize("engine", ENGINES, ids=str)
EVERY_BUNDLE = [
    pytest.param(Options(), id="as it is"),
    pytest.param(Options(scoring=Scoring.FLEET, crawler_jobs=("crawlers",)), id="fleet scoring"),
    pytest.param(Options(group_labels=("tenant", "cluster"), time_scale=60), id="group labels on a compressed clock"),
]


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], check=False, capture_output=True, text=True, timeout=900, cwd=folder
    )


@every_engine
@pytest.mark.parametrize("options", EVERY_BUNDLE)
def test_the_rules_are_accepted(engine: Engine, options: Options, tmp_path: Path, record_property: Recorded) -> None:
    said(record_property, engine, "rules read")
    rules = [name for name in bundle.write(tmp_path, options) if name.startswith("alerting/rules/")]
    if engine.kind == "Prometheus":
        result = run(engine.program("promtool"), "check", "rules", *rules, folder=tmp_path)
    else:
        result = run(engine.program("vmalert"), "-dryRun", "-rule=alerting/rules/*.yml", folder=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


@every_engine
@pytest.mark.timeout(3000)  # a quarter of an hour on two busy cores
def test_the_cases_hold(engine: Engine, tmp_path: Path, record_property: Recorded) -> None:
    said(record_property, engine, "cases of alerts")
    if engine.kind == "Prometheus":
        command = [engine.program("promtool"), "test", "rules"]
    else:
        command = [engine.program("vmalert-tool"), "unittest", "--disableAlertgroupLabel"]
    bundle.write(tmp_path)
    folder = tmp_path / "alerting" / "tests"
    folder.mkdir()
    left_out = OTHERWISE_ON_VICTORIA if engine.kind == "VictoriaMetrics" else set()
    assert left_out <= {case.name for case in CASES}
    cases = [written_for(engine, case, folder) for case in CASES if case.name not in left_out]
    at_once = 1 if engine.version == "1.112" else 2  # the tool of old takes one port
    with ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda case: run(*command, *as_argument(engine, case), folder=folder), cases))
    failed = {
        case.name: (result.stdout + result.stderr)[:4000]
        for case, result in zip(cases, results, strict=True)
        if result.returncode
    }
    assert not failed, f"{len(failed)} of {len(cases)} files: {', '.join(failed)}\n" + "\n".join(failed.values())


def written_for(engine: Engine, case: Path, folder: Path) -> Path:
    """A file of cases as the engine reads it.

    vmalert writes what a rule gives after the group's evaluation: rules that read other rules see it one later, which
    must come within the 15 minutes that they look back.
    """
    text = case.read_text()
    if engine.kind == "VictoriaMetrics":
        text = text.replace("promql_expr_test:", "metricsql_expr_test:")
        text = re.sub(r"^(evaluation_interval: )(\S+)", lambda found: found[1] + shorter(found[2]), text, flags=re.M)
    path = folder / case.name
    path.write_text(text)
    return path


def shorter(interval: str) -> str:
    """How often vmalert-tool evaluates the rules of a case that is written for `interval`."""
    found = re.fullmatch(r"(\d+)([mh])", interval)
    minutes = int(found[1]) * (60 if found[2] == "h" else 1) if found else 1
    return interval if minutes <= 1 else "1m" if minutes <= 5 else "5m" if minutes <= 15 else "10m"


def as_argument(engine: Engine, case: Path) -> Sequence[str]:
    return ["--files", case.name] if engine.kind == "VictoriaMetrics" else [case.name]


def said(record_property: Recorded, engine: Engine, tried: str) -> None:
    """What the table has of a test."""
    record_property("engine", str(engine))
    record_property("tried", tried)
