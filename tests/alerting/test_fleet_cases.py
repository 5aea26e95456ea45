"""The cases of alerts that ask otherwise with fleet scoring, asked of those: the same, told by what rules record."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from crawlhealth import bundle
from crawlhealth.bundle.fleet.normal import BAND
from crawlhealth.bundle.model import Options, Scope, Scoring

CASES: Final = Path(__file__).parents[2] / "alerting" / "tests"
FLEET: Final = Options(scoring=Scoring.FLEET)
PLACES: Final = {"normal": 0, "degrading": 1, "resisting": 2}
RECORDED: Final = {
    "crawlhealth_score": "site:crawlhealth_score",
    "crawlhealth_penalty_points": "site_signal:crawlhealth_penalty_points",
}
OF_ONE_EXPORTER: Final = "of two exporters that disagree the worse is believed, and the page comes once"
"""Rules add up the counters of all exporters: there is one score of a site."""

Values = list[str]
"""A sample each: a number, `_` for none, or `stale`."""


def otherwise() -> list[str]:
    """The alerts that ask something else of sites with fleet scoring."""
    own = {alert.name: alert for alert in bundle.alerts()}
    changed = (alert for alert in bundle.alerts(FLEET) if alert != own.get(alert.name))
    return sorted(alert.name for alert in changed if alert.scope is Scope.SITE)


def expanded(written: str) -> Values:
    """Samples one by one, of values as these cases write them."""
    values: Values = []
    for part in written.split():
        found = re.fullmatch(r"(_|stale|[\d.]+)(?:x(\d+))?", part)
        assert found, part
        times = 1 if found[2] is None else int(found[2]) + (found[1] != "_")
        values += [found[1]] * times
    return values


def told(case: dict[str, Any]) -> dict[str, str]:
    """The series of a case as rules record them; nothing of another job's sites."""
    found: dict[str, str] = {}
    bands: dict[str, dict[str, Values]] = {}
    for one in case["input_series"]:
        name, labels = one["series"].split("{", 1)
        borne = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if borne.pop("job") != "crawlhealth":
            continue
        if name == "crawlhealth_band":
            bands.setdefault(borne["site"], {})[borne["band"]] = expanded(one["values"])
        elif name in RECORDED:
            pairs = ",".join(f'{label}="{value}"' for label, value in borne.items() if label != "instance")
            found[f"{RECORDED[name]}{{{pairs}}}"] = one["values"]
        else:
            found[one["series"]] = one["values"]
    for site, shown in bands.items():
        found[f'{BAND}{{site="{site}"}}'] = " ".join(levels(shown))
    return found


def levels(shown: dict[str, Values]) -> Iterator[str]:
    """The level of the band that is shown at each moment; none while it is unknown."""
    for place in range(max(map(len, shown.values()))):
        said = {band: values[place] for band, values in shown.items() if place < len(values)}
        if "stale" in said.values() or set(said.values()) == {"_"}:
            yield "stale" if "stale" in said.values() else "_"
        elif said.get("unknown") == "1":
            yield "_"
        else:
            yield str(max((PLACES[band] for band, value in said.items() if value == "1"), default=0))


def rules(alert: str) -> dict[str, Any]:
    """The rendered rules that an alert is asked by, alone: what they record is given."""
    (rule,) = [
        rule
        for name, text in bundle.render(FLEET).items()
        if name.startswith("alerting/rules/")
        for group in yaml.load(text, yaml.CSafeLoader)["groups"]
        for rule in group["rules"]
        if rule.get("alert") == alert
    ]
    return {"groups": [{"name": "crawlhealth-alone", "rules": [rule]}]}


def test_the_alerts_on_bands_are_those_that_ask_otherwise() -> None:
    assert otherwise() == ["CrawlTargetDegrading", "CrawlTargetResisting"]


@pytest.mark.parametrize("alert", otherwise())
def test_an_alert_fires_and_keeps_quiet_with_fleet_scoring_as_its_cases_say(alert: str, tmp_path: Path) -> None:
    written = yaml.load(
        (CASES / f"{alert}.yml").read_text(), yaml.CBaseLoader
    )  # all is text: `0x10` are eleven samples, no number
    asked = [case for case in written["tests"] if case["name"] != OF_ONE_EXPORTER]
    assert len(asked) >= 4
    for case in asked:
        case["input_series"] = [{"series": name, "values": values} for name, values in told(case).items()]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules(alert)))
    case_file = tmp_path / "cases.yml"
    case_file.write_text(yaml.safe_dump({**written, "rule_files": ["rules.yml"], "tests": asked}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(case_file)], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
