"""The same alerts as Grafana-managed rules: for people without an Alertmanager. Nothing loads them by itself.

Grafana evaluates the same expressions over the same recorded series, so both forms agree. An expression gives a series
only while an alert holds, whatever its value: A is that value, B is 1, C says so. Grafana's templates cannot query, so
descriptions are without the parts that ask Prometheus for more. There are no inhibitions; one contact point for each
severity. `keepFiringFor` is read by Grafana 12.1.2 and later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from crawlhealth.bundle.alertmanager import DIGEST, NOTIFY, PAGE
from crawlhealth.bundle.dashboards.provisioning import DATASOURCE, GRAFANA_FOLDER
from crawlhealth.bundle.model import Alert, Group, Options, Severity
from crawlhealth.bundle.rules import rule_groups
from crawlhealth.bundle.yamltext import Block, dump, duration

PATH: Final = "grafana/provisioning/alerting/crawlhealth.yml"
_SHORTEST: Final = timedelta(seconds=10)
"""Grafana evaluates no rule more often."""
_ACTION: Final = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_RECEIVERS: Final = {Severity.CRITICAL: PAGE, Severity.WARNING: NOTIFY, Severity.INFO: DIGEST}


def alerting(groups: Iterable[Group], options: Options) -> Mapping[str, str]:
    """The provisioning file, as relative path to text."""
    kept = [group for group in groups if any(isinstance(rule, Alert) for rule in group.rules)]
    shown = [_group(group, rendered, options) for group, rendered in zip(kept, rule_groups(kept, options), strict=True)]
    urls = {PAGE: options.page_url, NOTIFY: options.notify_url, DIGEST: options.digest_url}
    contacts = [_contact(name, url) for name, url in urls.items()]
    return {PATH: dump({"apiVersion": 1, "groups": shown, "contactPoints": contacts})}


def _contact(name: str, url: str) -> dict[str, Any]:
    receiver = {
        "uid": name,
        "type": "webhook",
        "settings": {"url": url},
        "disableResolveMessage": name == DIGEST,
    }
    return {"orgId": 1, "name": name, "receivers": [receiver]}


def _group(group: Group, rendered: Mapping[str, Any], options: Options) -> dict[str, Any]:
    every = max(_SHORTEST, group.interval / options.time_scale)
    tens = timedelta(seconds=10 * max(1, round(every / _SHORTEST)))
    return {
        "orgId": 1,
        "name": group.name,
        "folder": GRAFANA_FOLDER,
        "interval": duration(tens),
        "rules": [_rule(rule) for rule in rendered["rules"] if "alert" in rule],
    }


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    severity = Severity(rule["labels"]["severity"])
    held = {"keepFiringFor": rule["keep_firing_for"]} if "keep_firing_for" in rule else {}
    texts = rule["annotations"]
    return {
        "uid": rule["alert"],
        "title": rule["alert"],
        "condition": "C",
        "data": [_query("A", rule["expr"]), _query("B", _holds(rule["expr"])), _condition()],
        "noDataState": "OK",
        "execErrState": "Error",
        "for": rule.get("for", "0s"),
        **held,
        "labels": {"severity": str(severity)},
        "annotations": {**texts, "description": described(texts["description"])},
        "notification_settings": {"receiver": _RECEIVERS[severity]},
    }


def _query(ref: str, expr: str) -> dict[str, Any]:
    model = {"refId": ref, "expr": Block(expr), "instant": True, "range": False, "editorMode": "code"}
    return {
        "refId": ref,
        "relativeTimeRange": {"from": 600, "to": 0},
        "datasourceUid": DATASOURCE,
        "model": model,
    }


def _holds(expr: str) -> str:
    """1 for each series of an expression, whatever its value."""
    inner = "\n".join(f"  {line}" for line in expr.rstrip("\n").split("\n"))
    return f"clamp(\n{inner}\n, 1, 1)\n"


def _condition() -> dict[str, Any]:
    """A threshold over B; it names B without the `$` that Grafana would take for its environment's."""
    model = {
        "refId": "C",
        "type": "threshold",
        "expression": "B",
        "conditions": [{"evaluator": {"type": "gt", "params": [0]}}],
        "datasource": {"type": "__expr__", "uid": "__expr__"},
    }
    return {"refId": "C", "datasourceUid": "__expr__", "model": model}


def described(text: str) -> str:
    """A description without the blocks that query, and with the value under Grafana's name for it."""
    kept: list[str] = []
    place, asking = 0, 0
    for found in _ACTION.finditer(text):
        if not asking:
            kept.append(text[place : found.start()])
        place = found.end()
        word = found[1].split()[0]
        if asking:
            asking += {"with": 1, "range": 1, "if": 1, "end": -1}.get(word, 0)
        elif word in ("with", "range", "if") and "query" in re.split(r"\W+", found[1]):
            asking = 1
        else:
            kept.append(found[0].replace("$value", "$values.A.Value"))
    return "".join([*kept, text[place:]])
