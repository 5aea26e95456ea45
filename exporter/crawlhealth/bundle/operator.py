"""The bundle as objects of the Prometheus operator: rules, scraping, routing, dashboards, and the exporter itself.

They are made from the plain files, so that both say the same; of Alertmanager's tree, the one route below the root. An
AlertmanagerConfig only sees alerts whose label `namespace` is its own, and expressions by site have none: each alert of
a PrometheusRule gets it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

import yaml

from crawlhealth.bundle import kubernetes
from crawlhealth.bundle.kubernetes import NAME, PORT_NAME, SELECTOR, Cluster
from crawlhealth.bundle.model import Options
from crawlhealth.bundle.yamltext import Block, dump

WEBHOOKS: Final = f"{NAME}-webhooks"
"""The Secret with the address of each receiver under the receiver's name."""
RULES: Final = "alerting/rules/"
ALERTMANAGER: Final = "alerting/alertmanager.yml"
DASHBOARDS: Final = "grafana/dashboards/"
_MATCHER: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)(=~|!~|!=|=)"((?:[^"\\]|\\.)*)"')
_ROUTE: Final = (
    "receiver",
    "group_by",
    "group_wait",
    "group_interval",
    "repeat_interval",
    "continue",
    "mute_time_intervals",
    "active_time_intervals",
)


def files(plain: Mapping[str, str], options: Options, cluster: Cluster) -> Mapping[str, str]:
    """Every object, as file name to text, with a kustomization of all of them but the example.

    `plain` is the bundle rendered with the same options. Raises ValueError for what an AlertmanagerConfig cannot say.
    """
    found: dict[str, str] = {}
    for path, text in plain.items():
        stem = PurePosixPath(path).stem
        if path.startswith(RULES):
            found[f"prometheusrule-{stem}.yml"] = dump(_rule(stem, yaml.safe_load(text), cluster))
        elif path.startswith(DASHBOARDS) and path.endswith(".json"):
            found[f"dashboard-{stem}.yml"] = dump(_dashboard(stem, text, cluster))
    found["alertmanagerconfig.yml"] = dump(_alertmanager(yaml.safe_load(plain[ALERTMANAGER]), cluster))
    found["scrape.yml"] = dump(_scrape_config(options, cluster) if cluster.targets else _monitor(options, cluster))
    found.update(kubernetes.files(cluster))
    resources = sorted(name for name in found if not name.startswith("example-"))
    found["kustomization.yml"] = dump(
        {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources}
    )
    return found


def _object(kind: str, version: str, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"monitoring.coreos.com/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def _rule(stem: str, written: dict[str, Any], cluster: Cluster) -> dict[str, Any]:
    for group in written["groups"]:
        for rule in group["rules"]:
            rule["expr"] = Block(rule["expr"])
            if "alert" in rule:
                rule["labels"]["namespace"] = cluster.namespace
    return _object("PrometheusRule", "v1", cluster.metadata(f"{NAME}-{stem}"), written)


def _relabelled(options: Options) -> list[dict[str, Any]]:
    """The job that the rules expect, whatever the Service is called."""
    return [{"action": "replace", "targetLabel": "job", "replacement": options.job}]


def _monitor(options: Options, cluster: Cluster) -> dict[str, Any]:
    """Scrapes the pods; an exporter is called by its pod, so that its series go on over a restart.

    Group labels are those of its Service.
    """
    by_pod = {"sourceLabels": ["__meta_kubernetes_pod_name"], "targetLabel": "instance"}
    endpoint = {"port": PORT_NAME, "interval": "15s", "relabelings": [*_relabelled(options), by_pod]}
    spec = {"selector": SELECTOR, "endpoints": [endpoint]}
    if options.group_labels:
        spec["targetLabels"] = list(options.group_labels)
    return _object("ServiceMonitor", "v1", cluster.metadata(NAME), spec)


def _scrape_config(options: Options, cluster: Cluster) -> dict[str, Any]:
    """Scrapes exporters outside of the cluster."""
    spec = {
        "staticConfigs": [{"targets": list(cluster.targets)}],
        "scrapeInterval": "15s",
        "relabelings": _relabelled(options),
    }
    return _object("ScrapeConfig", "v1alpha1", cluster.metadata(NAME), spec)


def _dashboard(stem: str, text: str, cluster: Cluster) -> dict[str, Any]:
    """A ConfigMap as the sidecar of Grafana finds it."""
    metadata = cluster.metadata(f"{NAME}-dashboard-{stem.removeprefix(f'{NAME}-')}")
    metadata["labels"] = {**metadata["labels"], "grafana_dashboard": "1"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {f"{stem}.json": Block(text)}}


def _alertmanager(written: dict[str, Any], cluster: Cluster) -> dict[str, Any]:
    [ours] = written["route"]["routes"]  # the root is whoever's the Alertmanager is
    spec = {
        "route": _route(ours),
        "inhibitRules": [_inhibition(rule) for rule in written.get("inhibit_rules", ())],
        "receivers": [_receiver(receiver) for receiver in written["receivers"]],
    }
    intervals = written.get("time_intervals", ())
    if intervals:
        spec["muteTimeIntervals"] = [
            {"name": one["name"], "timeIntervals": [_interval(part) for part in one["time_intervals"]]}
            for one in intervals
        ]
    return _object("AlertmanagerConfig", "v1alpha1", cluster.metadata(NAME), spec)


def _route(route: Mapping[str, Any]) -> dict[str, Any]:
    _known(route, (*_ROUTE, "matchers", "routes"))
    found = {_camel(key): route[key] for key in _ROUTE if key in route}
    if "matchers" in route:
        found["matchers"] = [_matcher(text) for text in route["matchers"]]
    if "routes" in route:
        found["routes"] = [_route(child) for child in route["routes"]]
    return found


def _inhibition(rule: Mapping[str, Any]) -> dict[str, Any]:
    _known(rule, ("source_matchers", "target_matchers", "equal"))
    return {
        "sourceMatch": [_matcher(text) for text in rule["source_matchers"]],
        "targetMatch": [_matcher(text) for text in rule["target_matchers"]],
        **({"equal": rule["equal"]} if "equal" in rule else {}),
    }


def _receiver(receiver: Mapping[str, Any]) -> dict[str, Any]:
    """A receiver whose webhook's address stands in the Secret, under the receiver's name."""
    _known(receiver, ("name", "webhook_configs"))
    hooks = []
    for hook in receiver.get("webhook_configs", ()):
        _known(hook, ("url", "send_resolved", "max_alerts"))
        said = {_camel(key): value for key, value in hook.items() if key != "url"}
        hooks.append({"urlSecret": {"name": WEBHOOKS, "key": receiver["name"]}, **said})
    return {"name": receiver["name"], **({"webhookConfigs": hooks} if hooks else {})}


def _interval(interval: Mapping[str, Any]) -> dict[str, Any]:
    """Times are in UTC there: a location cannot be said."""
    _known(interval, ("times", "weekdays", "days_of_month", "months", "years", "location"))
    if interval.get("location", "UTC") != "UTC":
        raise ValueError(f"an AlertmanagerConfig knows no location, {interval['location']}: write the times in UTC")
    said = {_camel(key): value for key, value in interval.items() if key not in {"times", "location"}}
    if "times" in interval:
        said["times"] = [{_camel(key): value for key, value in span.items()} for span in interval["times"]]
    return said


def _matcher(text: str) -> dict[str, Any]:
    """`severity="critical"` in its parts."""
    found = _MATCHER.fullmatch(text)
    if found is None:
        raise ValueError(f"no matcher that an AlertmanagerConfig can say: {text}")
    value = re.sub(r"\\(.)", r"\1", found[3])
    return {"name": found[1], "matchType": found[2], "value": value}


def _known(written: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    """Raises ValueError for a key that would be lost."""
    for key in written:
        if key not in keys:
            raise ValueError(f"{key} cannot be said in an AlertmanagerConfig yet")


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)
