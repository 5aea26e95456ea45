"""Groups of rules as Prometheus reads them: placeholders filled in, durations scaled, links and planned stops added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from string import Template
from typing import Any, Final

from crawlhealth.bundle.model import Alert, Group, Options, Record, Rule, Scope
from crawlhealth.bundle.yamltext import Block, dump, duration

FOLDER: Final = "alerting/rules"
SHORTEST_INTERVAL: Final = timedelta(seconds=1)
SHORTEST_WINDOW: Final = timedelta(seconds=10)
"""Compressed clocks stop here: under a few scrapes a range would be empty at times."""
_UNLESS_PLANNED: Final = (
    'unless on ($on) max by ($by) (last_over_time(crawlhealth_maintenance{job="$job"}[$window])) == 1'
)
_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_LENGTH: Final = r"(?:\d+(?:ms|[smhdw]))+"
_IN_TEXT: Final = re.compile(
    rf'"(?:[^"\\]|\\.)*"|\[(?P<range>{_LENGTH})(?P<step>:{_LENGTH})?(?P<colon>:)?\]|\boffset (?P<offset>{_LENGTH})'
)
_LABELS: Final = re.compile(r"\b(by|on) \(([a-z_]+(?:, [a-z_]+)+)\)", re.IGNORECASE)


class _Expression(Template):
    """PromQL with placeholders; those in braces may be lengths of time."""

    idpattern = r"[a-z]+"
    braceidpattern = rf"[a-z]+|{_LENGTH}"


class _Text(Template):
    """An annotation: `$` belongs to Prometheus there."""

    delimiter = "@"
    idpattern = r"match|args"


def rule_files(groups: Iterable[Group], options: Options) -> Mapping[str, str]:
    """The rule files, as relative path to text, in the order in which the groups first name them."""
    files: dict[str, list[Group]] = {}
    for group in groups:
        files.setdefault(f"{FOLDER}/{group.file}.yml", []).append(group)
    return {name: dump({"groups": rule_groups(held, options)}) for name, held in files.items()}


def rule_groups(groups: Iterable[Group], options: Options) -> list[dict[str, Any]]:
    """The groups as they stand in a rule file or in a PrometheusRule. Raises ValueError for an unknown placeholder."""
    return [
        {
            "name": group.name,
            "interval": duration(max(SHORTEST_INTERVAL, group.interval / options.time_scale)),
            "rules": [_rule(rule, options) for rule in group.rules],
        }
        for group in groups
    ]


def expression(rule: Rule, options: Options) -> str:
    """The PromQL of a rule. Raises ValueError for an unknown placeholder."""
    text = rule.expr.strip("\n")
    if isinstance(rule, Alert) and rule.scope is Scope.SITE:
        text = f"{_as_operand(text)}\n{_UNLESS_PLANNED}"
    sites = ", ".join((*options.group_labels, "site"))
    values = {
        "job": escaped(options.job),
        "traffic": traffic(options),
        "by": sites,
        "on": sites,
        "group": "".join(f"{label}, " for label in options.group_labels),
        "window": duration(max(SHORTEST_WINDOW, rule.window / options.time_scale)),
    }
    template = _Expression(scaled(text, options.time_scale))
    try:
        lengths = {name: _seconds(name, options.time_scale) for name in _names(template) if name[0].isdigit()}
        return without_repeats(template.substitute(values | lengths))
    except (KeyError, ValueError) as error:
        raise ValueError(f"{rule.name}: no placeholder {error}") from error


def _rule(rule: Rule, options: Options) -> dict[str, Any]:
    expr = Block(expression(rule, options) + "\n")
    if isinstance(rule, Record):
        labels = {"labels": dict(rule.labels)} if rule.labels else {}
        return {"record": rule.name, "expr": expr, **labels}
    shown: dict[str, Any] = {"alert": rule.name, "expr": expr}
    for key, length in (("for", rule.for_), ("keep_firing_for", rule.keep_firing_for)):
        if length:
            shown[key] = duration(length / options.time_scale)
    shown["labels"] = {"severity": str(options.severities.get(rule.name, rule.severity))}
    shown["annotations"] = {
        "summary": rule.summary,
        "description": _described(rule.description, options.group_labels),
        "dashboard_url": _dashboard(rule.scope, options),
        "runbook_url": f"{options.runbook_base.rstrip('/')}/{rule.name}.md",
    }
    return shown


def _described(description: str, group_labels: Sequence[str]) -> str:
    labels = (*group_labels, "site")
    match = ",".join(f"{label}=%q" for label in labels)
    return _Text(description).substitute(match=match, args=" ".join(f"$labels.{label}" for label in labels))


def _dashboard(scope: Scope, options: Options) -> str:
    """The link to the dashboard of what the alert is about, with what is known of it chosen."""
    labels = {
        Scope.SITE: (*options.group_labels, "site"),
        Scope.EXPORTER: options.group_labels,
        Scope.SEARCHBOTS: options.group_labels,
    }[scope]
    chosen = "&".join(f"var-{label}={{{{ $labels.{label} | urlquery }}}}" for label in labels)
    return f"{options.dashboard_base.rstrip('/')}/d/{scope}{'?' if chosen else ''}{chosen}"


def _as_operand(text: str) -> str:
    """An expression as the left side of a set operator: `or` binds less than those."""
    if "\n" not in text and " or " not in text:
        return text
    inner = "\n".join(f"  {line}" for line in text.split("\n"))
    return f"(\n{inner}\n)"


def without_repeats(text: str) -> str:
    """An expression whose lists of labels name each once: a group label may be one of the metric's own."""
    return _LABELS.sub(_once, text)


def _once(found: re.Match[str]) -> str:
    return f"{found[1]} ({', '.join(dict.fromkeys(found[2].split(', ')))})"


def _names(template: Template) -> list[str]:
    """The placeholders of a template; `Template.get_identifiers` exists from Python 3.12."""
    found = (match["named"] or match["braced"] for match in template.pattern.finditer(template.template))
    return [name for name in found if name]  # `$$` stands for one `$`


def scaled(text: str, time_scale: float) -> str:
    """`text` with the lengths of time that stand in it divided; as it stands when there is nothing to divide."""
    if time_scale == 1.0:
        return text

    def one(found: re.Match[str]) -> str:
        if found["offset"]:
            return f"offset {duration(_length(found['offset']) / time_scale)}"
        if not found["range"]:
            return found[0]
        width = duration(max(SHORTEST_WINDOW, _length(found["range"]) / time_scale))
        step = found["step"]
        if step:
            step = f":{duration(max(SHORTEST_INTERVAL, _length(step[1:]) / time_scale))}"
        return f"[{width}{step or ''}{found['colon'] or ''}]"

    return _IN_TEXT.sub(one, text)


def _length(text: str) -> timedelta:
    parts = re.findall(r"(\d+)(ms|[smhdw])", text)
    return sum((int(count) * _UNITS[unit] for count, unit in parts), timedelta(0))


def _seconds(text: str, time_scale: float) -> str:
    return f"{_length(text).total_seconds() / time_scale:.10g}"


def traffic(options: Options) -> str:
    """The matcher of all jobs that count traffic."""
    return _matcher((options.job, *options.crawler_jobs))


def _matcher(jobs: Sequence[str]) -> str:
    """The label matcher of one job or of any of several."""
    if len(jobs) == 1:
        return f'job="{escaped(jobs[0])}"'
    return f'job=~"{escaped("|".join(re.escape(job) for job in jobs))}"'


def escaped(text: str) -> str:
    """`text` as it stands inside a double-quoted PromQL string."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
