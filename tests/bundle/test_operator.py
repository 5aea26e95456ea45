"""The bundle as objects of the Prometheus operator: of the right form, and saying what the plain files say."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from crawlhealth import bundle, configfile
from crawlhealth.bundle import Cluster, Options, operator
from crawlhealth.bundle.yamltext import dump
from crawlhealth.secret import Secret
from crawlhealth.shard import parse

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
LABEL_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
MOST_BYTES = 1_000_000
"""What etcd takes of one object, and an annotation of `kubectl apply` does not: 262,144."""
VERSIONS = {
    "PrometheusRule": "monitoring.coreos.com/v1",
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "ScrapeConfig": "monitoring.coreos.com/v1alpha1",
    "AlertmanagerConfig": "monitoring.coreos.com/v1alpha1",
    "ConfigMap": "v1",
    "Service": "v1",
    "StatefulSet": "apps/v1",
    "Kustomization": "kustomize.config.k8s.io/v1beta1",
}
DASHBOARD = {"grafana/dashboards/crawlhealth-site.json": '{"uid": "crawlhealth-site", "title": "{{site}} $site"}\n'}

Objects = Mapping[str, list[dict[str, Any]]]


def rendered(options: Options | None = None, cluster: Cluster | None = None) -> Objects:
    options = options or Options()
    files = operator.files({**bundle.render(options), **DASHBOARD}, options, cluster or Cluster(shards=3))
    return {name: list(yaml.safe_load_all(text)) for name, text in files.items()}


@pytest.fixture(scope="module")
def objects() -> Objects:
    return rendered()


def of_kind(objects: Objects, kind: str) -> list[dict[str, Any]]:
    return [one for found in objects.values() for one in found if one["kind"] == kind]


def texts(value: object) -> Iterator[str]:
    """Every text in a document, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, held in value.items():
            yield from texts(key)
            yield from texts(held)
    elif isinstance(value, list):
        for held in value:
            yield from texts(held)


def test_every_object_is_of_a_known_kind_in_one_namespace_with_a_name_of_its_own(objects: Objects) -> None:
    every = [one for found in objects.values() for one in found]
    assert {one["kind"] for one in every} == VERSIONS.keys() - {"ScrapeConfig"}
    seen = set()
    for one in every:
        assert one["apiVersion"] == VERSIONS[one["kind"]]
        if one["kind"] == "Kustomization":
            continue
        metadata = one["metadata"]
        assert metadata["namespace"] == "monitoring"
        assert NAME.fullmatch(metadata["name"])
        seen.add((one["kind"], metadata["name"]))
        for key, value in metadata["labels"].items():
            assert LABEL_KEY.fullmatch(key)
            assert LABEL_VALUE.fullmatch(value)
        assert len(dump(one)) < MOST_BYTES
    assert len(seen) == len(every) - 1


def test_what_the_operator_selects_bears_the_labels_it_selects_by() -> None:
    for one in rendered(cluster=Cluster(labels={"prometheus": "k8s", "role": "alert-rules"})).values():
        for found in one:
            if found["apiVersion"].startswith("monitoring.coreos.com"):
                assert found["metadata"]["labels"].items() >= {"prometheus": "k8s", "role": "alert-rules"}.items()
                assert "release" not in found["metadata"]["labels"]


def test_no_placeholder_is_left(objects: Objects) -> None:
    for name, found in objects.items():
        if name.startswith("dashboard-"):
            continue
        for text in (text for one in found for text in texts(one)):
            assert not re.search(r"\$(job|by|on|window|traffic|\{)|@match|@args", text), (name, text)
            if "{{" in text:
                assert re.search(r"\{\{.*(\$labels|\$value|query|\.).*\}\}", text), (name, text)


def plain_groups(options: Options) -> dict[str, list[dict[str, Any]]]:
    """The groups of each plain rule file, by its stem."""
    return {
        Path(name).stem: yaml.safe_load(text)["groups"]
        for name, text in bundle.render(options).items()
        if name.startswith("alerting/rules/")
    }


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(Options(), id="as they are"),
        pytest.param(Options(job="crawl", group_labels=("tenant", "cluster"), time_scale=10), id="with other options"),
    ],
)
def test_the_rules_are_the_plain_ones_and_every_alert_says_its_namespace(options: Options) -> None:
    objects = rendered(options, Cluster(namespace="crawling"))
    found = {rule["metadata"]["name"].removeprefix("crawlhealth-"): rule for rule in of_kind(objects, "PrometheusRule")}
    groups = {stem: rule["spec"]["groups"] for stem, rule in found.items()}
    for group in (group for held in groups.values() for group in held):
        for rule in group["rules"]:
            if "alert" in rule:
                assert rule["labels"].pop("namespace") == "crawling"
    assert groups == plain_groups(options)
    assert all(rule["spec"].keys() == {"groups"} for rule in found.values())


def test_promtool_accepts_the_rules_inside(objects: Objects, tmp_path: Path) -> None:
    files = []
    for rule in of_kind(objects, "PrometheusRule"):
        files.append(tmp_path / f"{rule['metadata']['name']}.yml")
        files[-1].write_text(yaml.safe_dump(rule["spec"]))
    told = subprocess.run(
        ["promtool", "check", "rules", *files], check=False, capture_output=True, text=True, timeout=60
    )
    assert told.returncode == 0, told.stdout + told.stderr


RULE = {"alert", "record", "expr", "for", "keep_firing_for", "labels", "annotations"}


def test_a_rule_has_no_field_that_a_prometheusrule_does_not_know(objects: Objects) -> None:
    for rule in of_kind(objects, "PrometheusRule"):
        for group in rule["spec"]["groups"]:
            assert group.keys() <= {"name", "interval", "rules", "limit", "partial_response_strategy"}
            for one in group["rules"]:
                assert one.keys() <= RULE
                assert isinstance(one["expr"], str)


def test_the_exporter_is_scraped_where_it_listens_under_the_job_of_the_rules() -> None:
    objects = rendered(Options(job="crawl"))
    [monitor], [service], [stateful] = (of_kind(objects, kind) for kind in ("ServiceMonitor", "Service", "StatefulSet"))
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert service["metadata"]["labels"].items() >= wanted
    assert stateful["spec"]["template"]["metadata"]["labels"].items() >= service["spec"]["selector"].items()
    [endpoint], [port] = monitor["spec"]["endpoints"], service["spec"]["ports"]
    [container] = stateful["spec"]["template"]["spec"]["containers"]
    assert endpoint["port"] == port["name"]
    assert port["targetPort"] in {each["name"] for each in container["ports"]}
    job = next(rule for rule in endpoint["relabelings"] if rule["targetLabel"] == "job")
    assert (job["replacement"], job.get("sourceLabels")) == ("crawl", None)


@pytest.mark.parametrize("labels", [(), ("tenant", "cluster")])
def test_group_labels_are_those_of_the_service(labels: tuple[str, ...]) -> None:
    [monitor] = of_kind(rendered(Options(group_labels=labels)), "ServiceMonitor")
    assert monitor["spec"].get("targetLabels", []) == list(labels)


def test_every_pod_gets_its_shard(objects: Objects) -> None:
    [stateful] = of_kind(objects, "StatefulSet")
    spec = stateful["spec"]
    [container] = spec["template"]["spec"]["containers"]
    environ = {one["name"]: one for one in container["env"]}
    assert environ["POD_INDEX"]["valueFrom"]["fieldRef"]["fieldPath"] == (
        "metadata.labels['apps.kubernetes.io/pod-index']"
    )
    assert list(environ) == ["POD_INDEX", "CRAWLHEALTH_SHARD"]  # one is written with the other, which so comes first
    first = spec["ordinals"]["start"]
    written = [
        environ["CRAWLHEALTH_SHARD"]["value"].replace("$(POD_INDEX)", str(index))
        for index in range(first, first + spec["replicas"])
    ]
    assert [(shard.number, shard.count) for shard in map(parse, written)] == [(1, 3), (2, 3), (3, 3)]


def test_an_exporter_alone_is_no_shard() -> None:
    [stateful] = of_kind(rendered(cluster=Cluster()), "StatefulSet")
    assert stateful["spec"]["replicas"] == 1
    assert "env" not in stateful["spec"]["template"]["spec"]["containers"][0]


def test_the_pods_have_no_privilege_and_write_to_their_volumes_only(objects: Objects) -> None:
    [stateful] = of_kind(objects, "StatefulSet")
    pod = stateful["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    claims = {claim["metadata"]["name"] for claim in stateful["spec"]["volumeClaimTemplates"]}
    volumes = {volume["name"] for volume in pod["volumes"]} | claims
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


def test_the_user_and_the_folders_of_the_pods_are_those_of_the_image(objects: Objects) -> None:
    image = (Path(__file__).parents[2] / "exporter" / "install" / "Containerfile").read_text()
    [stateful] = of_kind(objects, "StatefulSet")
    pod = stateful["spec"]["template"]["spec"]
    [container] = pod["containers"]
    context = pod["securityContext"]
    assert f"USER {context['runAsUser']}:{context['runAsGroup']}\n" in image
    assert f"EXPOSE {container['ports'][0]['containerPort']}\n" in image
    assert f"VOLUME {next(m['mountPath'] for m in container['volumeMounts'] if m['name'] == 'data')}\n" in image
    assert f"CMD {container['args']}\n".replace("'", '"') in image


def test_the_example_of_a_configuration_is_one(objects: Objects, tmp_path: Path) -> None:
    [example] = objects["example-config.yml"]
    [stateful] = of_kind(objects, "StatefulSet")
    pod = stateful["spec"]["template"]["spec"]
    assert example["metadata"]["name"] == pod["volumes"][0]["configMap"]["name"]
    for name, text in example["data"].items():
        (tmp_path / name).write_text(text)
    config = configfile.load(tmp_path / "crawlhealth.yml", environ={"CRAWLHEALTH_TOKEN": "secret"})
    assert list(config.push.tokens) == [Secret("secret")], "it listens to everybody, and takes of few"
    assert (len(config.sites), len(config.canaries)) == (1, 1)
    assert config.listen == f"0.0.0.0:{pod['containers'][0]['ports'][0]['containerPort']}"
    assert str(config.data_dir) in {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}


def test_exporters_elsewhere_are_scraped_and_none_is_run() -> None:
    objects = rendered(Options(job="crawl"), Cluster(targets=("a.example:9877", "b.example:9877")))
    assert not of_kind(objects, "StatefulSet") + of_kind(objects, "ServiceMonitor")
    [scrape] = of_kind(objects, "ScrapeConfig")
    assert scrape["spec"]["staticConfigs"] == [{"targets": ["a.example:9877", "b.example:9877"]}]
    assert scrape["spec"]["relabelings"] == [{"action": "replace", "targetLabel": "job", "replacement": "crawl"}]


def as_alertmanager(spec: Mapping[str, Any]) -> dict[str, Any]:
    """An AlertmanagerConfig as Alertmanager gets it of the operator, without the namespace it adds."""

    def snake(key: str) -> str:
        return re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), key)

    def matchers(written: list[dict[str, str]]) -> list[str]:
        return [f'{one["name"]}{one["matchType"]}"{one["value"]}"' for one in written]

    def route(written: Mapping[str, Any]) -> dict[str, Any]:
        found = {snake(key): value for key, value in written.items() if key not in {"matchers", "routes"}}
        if "matchers" in written:
            found["matchers"] = matchers(written["matchers"])
        if "routes" in written:
            found["routes"] = [route(child) for child in written["routes"]]
        return found

    return {
        "route": route(spec["route"]),
        "inhibit_rules": [
            {
                "source_matchers": matchers(rule["sourceMatch"]),
                "target_matchers": matchers(rule["targetMatch"]),
                **({"equal": rule["equal"]} if "equal" in rule else {}),
            }
            for rule in spec["inhibitRules"]
        ],
        "names": [receiver["name"] for receiver in spec["receivers"]],
    }


def test_alerts_are_routed_and_muted_as_by_the_plain_configuration(objects: Objects) -> None:
    [routing] = of_kind(objects, "AlertmanagerConfig")
    plain = yaml.safe_load(bundle.render()["alerting/alertmanager.yml"])
    said = as_alertmanager(routing["spec"])
    [ours] = plain["route"]["routes"]
    assert ours["matchers"] == ['alertname=~"Crawl[A-Z].+"'], "else those of all that runs in the namespace"
    assert said == {
        "route": ours,
        "inhibit_rules": plain["inhibit_rules"],
        "names": [receiver["name"] for receiver in plain["receivers"]],
    }
    keys = [hook["urlSecret"] for receiver in routing["spec"]["receivers"] for hook in receiver["webhookConfigs"]]
    assert {key["key"] for key in keys} == set(said["names"])


WRITTEN = r"""
route:
  receiver: a
  routes:
    - matchers: ['alertname="A"']
      routes: [{matchers: ['severity=~"a|b\\.c"'], receiver: a, mute_time_intervals: [night], continue: true}]
receivers: [{name: a}]
time_intervals:
  - name: night
    time_intervals:
      - {weekdays: ["monday:friday"], days_of_month: ["1:5"], times: [{start_time: "00:00", end_time: "06:00"}]}
"""


def made_of(written: str) -> dict[str, Any]:
    plain = {**bundle.render(), "alerting/alertmanager.yml": written}
    [made] = yaml.safe_load_all(operator.files(plain, Options(), Cluster())["alertmanagerconfig.yml"])
    spec: dict[str, Any] = made["spec"]
    return spec


def test_what_routing_may_say_further_is_said(tmp_path: Path) -> None:
    spec = made_of(WRITTEN)
    assert spec["route"]["routes"] == [
        {"receiver": "a", "continue": True, "muteTimeIntervals": ["night"],
         "matchers": [{"name": "severity", "matchType": "=~", "value": r"a|b\.c"}]},
    ]  # fmt: skip
    assert spec["muteTimeIntervals"] == [
        {"name": "night", "timeIntervals": [
            {"weekdays": ["monday:friday"], "daysOfMonth": ["1:5"],
             "times": [{"startTime": "00:00", "endTime": "06:00"}]}]},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param("continue: true", "match: {a: b}", "match cannot be said", id="a key of old"),
        pytest.param("{name: a}", "{name: a, smtp_configs: []}", "smtp_configs cannot be said", id="another receiver"),
        pytest.param("weekdays:", "location: Europe/Berlin, weekdays:", "no location, Europe/Berlin", id="a time zone"),
        pytest.param("severity=~", "severity~", "no matcher", id="a matcher that is none"),
    ],
)
def test_what_cannot_be_said_is_told_and_not_lost(old: str, new: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        made_of(WRITTEN.replace(old, new))


def test_dashboards_come_as_they_are_where_grafana_looks_for_them(objects: Objects) -> None:
    [dashboard] = objects["dashboard-crawlhealth-site.yml"]
    assert dashboard["metadata"]["name"] == "crawlhealth-dashboard-site"
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert list(dashboard["data"].values()) == list(DASHBOARD.values())


def test_everything_but_the_example_is_applied_at_once(objects: Objects, tmp_path: Path) -> None:
    """The example would take the place of the configuration that is there."""
    [kustomization] = objects["kustomization.yml"]
    assert set(kustomization["resources"]) == objects.keys() - {"kustomization.yml", "example-config.yml"}
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not here")
    told = command(tmp_path, "--shards", "2")
    assert told.returncode == 0, told.stderr
    built = subprocess.run(
        ["kubectl", "kustomize", str(tmp_path)], check=False, capture_output=True, text=True, timeout=60
    )
    assert built.returncode == 0, built.stderr
    kinds = re.findall(r"^kind: (.*)$", built.stdout, re.MULTILINE)
    assert set(kinds) == VERSIONS.keys() - {"Kustomization", "ScrapeConfig"}


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "crawlhealth.cli", "bundle", "--format", "operator", "--out", str(folder), *arguments],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_the_command_writes_them_and_tells_what_differs(tmp_path: Path) -> None:
    written = command(tmp_path, "--namespace", "crawling", "--label", "role=alerts", "--image", "registry.example/c:1")
    assert written.returncode == 0, written.stderr
    assert {str(path) for path in tmp_path.iterdir()} == set(written.stdout.split())
    assert "image: registry.example/c:1\n" in (tmp_path / "exporter.yml").read_text()
    assert "role: alerts" in (tmp_path / "scrape.yml").read_text()
    same = command(
        tmp_path, "--namespace", "crawling", "--label", "role=alerts", "--image", "registry.example/c:1", "--check"
    )
    assert same.returncode == 0
    other = command(tmp_path, "--check")
    assert other.returncode == 1
    assert "+  namespace: monitoring" in other.stderr


def test_an_object_of_other_options_is_told_and_what_is_yours_is_not(tmp_path: Path) -> None:
    (tmp_path / "ingress.yml").write_text("kind: Ingress\n")
    assert "is not rendered any more" not in command(tmp_path).stderr
    elsewhere = command(tmp_path, "--target", "a.example:9877")
    assert elsewhere.stderr.splitlines()[:2] == [
        "example-config.yml: is not rendered any more: remove it",
        "exporter.yml: is not rendered any more: remove it",
    ]
    checked = command(tmp_path, "--target", "a.example:9877", "--check")
    assert (checked.returncode, checked.stderr.split()[0]) == (1, "example-config.yml:")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["--namespace", "My_Space"], "'My_Space' is no namespace", id="a namespace"),
        pytest.param(["--label", "release"], "'release' is no label: write KEY=VALUE", id="a label"),
        pytest.param(["--shards", "0"], "--shards", id="no shards"),
    ],
)
def test_what_kubernetes_would_refuse_is_told(arguments: list[str], told: str, tmp_path: Path) -> None:
    said = command(tmp_path, *arguments)
    assert (said.returncode, list(tmp_path.iterdir())) == (2, [])
    assert told in said.stderr
