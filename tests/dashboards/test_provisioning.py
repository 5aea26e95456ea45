"""What Grafana and compose read: one data source, the very files of the bundle, and the same alerts in another form."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from crawlhealth import bundle
from crawlhealth.bundle.grafanaalerts import PATH, described
from crawlhealth.bundle.model import Severity
from crawlhealth.configfile import load

ROOT = Path(__file__).parents[2]
FILES = bundle.render()


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILES[name])
    return found


def test_the_data_source_has_a_fixed_name_for_machines_and_cannot_be_edited() -> None:
    [source] = read("grafana/provisioning/datasources/crawlhealth.yml")["datasources"]
    assert (source["uid"], source["type"], source["editable"]) == ("crawlhealth-prometheus", "prometheus", False)
    assert source["jsonData"] == {"httpMethod": "POST", "timeInterval": "15s", "prometheusType": "Prometheus"}


def test_dashboards_are_read_from_where_compose_puts_them() -> None:
    [provider] = read("grafana/provisioning/dashboards/crawlhealth.yml")["providers"]
    mounts = read("grafana/compose.yml")["services"]["grafana"]["volumes"]
    assert f"./dashboards:{provider['options']['path']}:ro" in mounts
    assert (provider["folderUid"], provider["allowUiUpdates"]) == ("crawlhealth", False)


def test_everything_that_is_mounted_is_in_the_bundle_and_images_have_versions() -> None:
    services = read("grafana/compose.yml")["services"]
    for name, service in services.items():
        assert re.search(r":(v?\d+\.\d+\.\d+|local)$", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        for mount in service["volumes"]:
            source = mount.rpartition(":/")[0].replace("${CRAWLHEALTH_CONFIG:-./exporter}", "./exporter")
            if source.startswith("."):
                place = os.path.normpath(Path("grafana") / source)
                assert [file for file in FILES if file == place or file.startswith(f"{place}/")], mount
    assert (ROOT / services["exporter"]["build"]["dockerfile"]).is_file()


def test_the_exporter_of_compose_has_a_configuration_that_is_good(tmp_path: Path) -> None:
    bundle.write(tmp_path)
    config = load(tmp_path / "grafana" / "exporter" / "crawlhealth.yml", environ={"CRAWLHEALTH_TOKEN": "secret"})
    assert list(config.sites) == ["books"]
    assert config.listen.endswith(":9877")


def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    bundle.write(tmp_path)
    (tmp_path / "grafana" / "rules").symlink_to(tmp_path / "alerting" / "rules")
    path = tmp_path / "grafana" / "prometheus.yml"
    result = subprocess.run(["promtool", "check", "config", path], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "rules found" in result.stdout


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed")
def test_compose_accepts_its_file(tmp_path: Path) -> None:
    bundle.write(tmp_path)
    command = ["docker-compose", "-f", str(tmp_path / "grafana" / "compose.yml"), "config"]
    environ = {**os.environ, "GRAFANA_PASSWORD": "x", "CRAWLHEALTH_TOKEN": "y"}
    result = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
    assert result.returncode == 0, result.stderr
    assert sorted(yaml.safe_load(result.stdout)["services"]) == ["alertmanager", "exporter", "grafana", "prometheus"]
    for name in ("GRAFANA_PASSWORD", "CRAWLHEALTH_TOKEN"):
        without = {key: value for key, value in environ.items() if key != name}
        refused = subprocess.run(command, check=False, capture_output=True, text=True, env=without)
        assert f"set {name}" in refused.stderr


def test_the_alerts_of_grafana_are_the_same_as_those_of_prometheus() -> None:
    written = {
        rule["alert"]: rule
        for name in FILES
        if name.startswith("alerting/rules/")
        for group in read(name)["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    mine = {rule["uid"]: rule for group in read(PATH)["groups"] for rule in group["rules"]}
    assert mine.keys() == written.keys()
    receivers = {contact["name"] for contact in read(PATH)["contactPoints"]}
    for name, rule in mine.items():
        assert len(name) <= 40
        assert rule["for"] == written[name].get("for", "0s")
        assert rule["labels"]["severity"] in set(Severity)
        assert rule["notification_settings"]["receiver"] in receivers
        value, holds, condition = rule["data"]
        assert value["model"]["expr"] == written[name]["expr"]
        assert re.sub(r"\s+", "", holds["model"]["expr"]) == re.sub(r"\s+", "", f"clamp({written[name]['expr']},1,1)")
        assert (condition["refId"], condition["model"]["expression"]) == (rule["condition"], holds["refId"])
        assert {value["datasourceUid"], holds["datasourceUid"]} == {"crawlhealth-prometheus"}
        assert "| query" not in rule["annotations"]["description"]
        opened = re.findall(r"\{\{-? ?(with|range|if|end)\b", rule["annotations"]["description"])
        assert opened.count("end") * 2 == len(opened)
    for group in read(PATH)["groups"]:
        assert re.fullmatch(r"(\d+m)?([1-6]0s)?", group["interval"]), group["interval"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("{{ $labels.site }} is slow.", "{{ $labels.site }} is slow.", id="labels stay"),
        pytest.param("{{ $value | humanize }}", "{{ $values.A.Value | humanize }}", id="the value has another name"),
        pytest.param(
            'A{{ with printf "x{a=%q}" .b | query }} is {{ . | first | value }}{{ end }}. B', "A. B", id="no queries"
        ),
        pytest.param(
            'A{{ with query "x" }}{{ range . }}{{ if .Value }}x{{ end }}{{ end }}{{ end }}B',
            "AB",
            id="nor what is in them",
        ),
        pytest.param(
            "{{ with $labels.x }}{{ . }}{{ end }}B", "{{ with $labels.x }}{{ . }}{{ end }}B", id="other blocks"
        ),
    ],
)
def test_a_description_is_without_what_grafana_cannot_ask(text: str, said: str) -> None:
    assert described(text) == said
