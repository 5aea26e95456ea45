"""The Prometheus rule file."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from string import Template
from typing import Any

from crawlhealth.bundle.alerts import Alert
from crawlhealth.bundle.yamltext import Block, dump, duration

INTERVAL = timedelta(seconds=30)
SHORTEST_INTERVAL = timedelta(seconds=1)
_UNLESS_PLANNED = 'unless on (site) max by (site) (last_over_time(crawlhealth_maintenance{job="$job"}[$window])) == 1'
SHORTEST_WINDOW = timedelta(seconds=10)
"""Compressed clocks stop here: under a few scrapes a range would be empty at times."""


def rules(alerts: Iterable[Alert], *, job: str, runbook_base: str, time_scale: float) -> str:
    """The alerts as one rule group, all durations divided by `time_scale`; `job` is the scrape job's name."""
    group = {
        "name": "crawlhealth",
        "interval": duration(max(SHORTEST_INTERVAL, INTERVAL / time_scale)),
        "rules": [_rule(alert, job=job, runbook_base=runbook_base, time_scale=time_scale) for alert in alerts],
    }
    return dump({"groups": [group]})


def _rule(alert: Alert, *, job: str, runbook_base: str, time_scale: float) -> dict[str, Any]:
    window = max(SHORTEST_WINDOW, alert.window / time_scale)
    rule: dict[str, Any] = {
        "alert": alert.name,
        "expr": Block(Template(_expression(alert)).substitute(job=_escaped(job), window=duration(window)) + "\n"),
    }
    if alert.for_:
        rule["for"] = duration(alert.for_ / time_scale)
    rule["labels"] = {"severity": str(alert.severity)}
    rule["annotations"] = {
        "summary": alert.summary,
        "description": alert.description,
        "runbook_url": f"{runbook_base.rstrip('/')}/{alert.name}.md",
    }
    return rule


def _expression(alert: Alert) -> str:
    """What an alert asks, and that its site is not under maintenance."""
    if not alert.of_site:
        return alert.expr
    return f"{alert.expr}\n{_UNLESS_PLANNED}"


def _escaped(text: str) -> str:
    """`text` as it stands inside a double-quoted PromQL string."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
