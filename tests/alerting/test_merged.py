"""Our parts of an Alertmanager configuration, put into one that is there."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from alerting.test_alertmanager import amtool, routed_to, written
from crawlhealth import bundle
from crawlhealth.bundle.alertmanager import DIGEST, NOTIFY, PAGE
from crawlhealth.bundle.model import Options

THEIRS = """
route:
  receiver: theirs
  group_by: [alertname]
  routes:
    - {matchers: ['severity="critical"'], receiver: their-pager}
    - {matchers: ['team="web"'], receiver: web}
inhibit_rules: [{source_matchers: ['severity="critical"'], target_matchers: ['severity="warning"'], equal: [instance]}]
receivers: [{name: theirs}, {name: their-pager}, {name: web}]
"""


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration that is there, with ours put into it as README says: the one route first, the lists appended."""
    folder = tmp_path_factory.mktemp("merged")
    bundle.write(folder)
    theirs, ours = yaml.safe_load(THEIRS), written(Options())
    theirs["route"]["routes"] = [*ours["route"]["routes"], *theirs["route"]["routes"]]
    for key in ("templates", "inhibit_rules", "time_intervals", "receivers"):
        theirs[key] = [*theirs.get(key, []), *ours[key]]
    path = folder / "alerting/merged.yml"
    path.write_text(yaml.safe_dump(theirs))
    return path


def test_amtool_accepts_our_parts_in_a_configuration_that_is_there(merged: Path) -> None:
    result = amtool("check-config", str(merged))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("receiver", "labels"),
    [
        pytest.param("their-pager", {"alertname": "NodeDown", "severity": "critical"}, id="their critical alert"),
        pytest.param("web", {"alertname": "Errors", "severity": "warning", "team": "web"}, id="a warning of a team"),
        pytest.param("theirs", {"alertname": "DiskFull", "severity": "warning"}, id="a warning of nobody's"),
        pytest.param("their-pager", {"alertname": "CrawlerDown", "severity": "critical"}, id="their Crawler alert"),
        pytest.param("theirs", {"alertname": "Chatter", "severity": "info", "site": "shop"}, id="a remark"),
        pytest.param(PAGE, {"alertname": "CrawlTargetResisting", "severity": "critical"}, id="our page"),
        pytest.param(NOTIFY, {"alertname": "CrawlParserFailing", "severity": "warning"}, id="our ticket"),
        pytest.param(DIGEST, {"alertname": "CrawlTargetDrifting", "severity": "info", "team": "web"}, id="our remark"),
    ],
)
def test_our_route_put_first_among_others_takes_our_alerts_alone(
    receiver: str, labels: dict[str, str], merged: Path
) -> None:
    routed_to(receiver, merged, **labels)
