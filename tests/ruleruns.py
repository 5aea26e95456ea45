"""Rules run over made-up series by promtool, and what they say at some moments."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import yaml

from crawlhealth.bundle.model import Group, Options
from crawlhealth.bundle.rules import rule_groups
from crawlhealth.bundle.yamltext import dump

_ASKED: Final = re.compile(r'expr: "(?P<query>.*)", time: (?P<time>\S+),\s+exp: nil\s+got: (?P<got>.*)')
_SAMPLE: Final = re.compile(r"(?P<labels>\{[^{}]*\})\s+(?P<value>[^\s,]+)")
_UNITS: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}

Said = dict[tuple[str, float], dict[tuple[str, ...], float]]
"""By query and seconds: values by those of the labels, in the order of their names."""


def written(values: Iterable[float]) -> str:
    """Samples one after another, as promtool reads them."""
    return " ".join(f"{value:.10g}" for value in values)


def ran(
    groups: Sequence[Group],
    series: Mapping[str, str],
    queries: Sequence[str],
    at: Sequence[int],
    folder: Path,
    *,
    options: Options,
    step: str = "1m",
    every: str = "1m",
    timeout: float = 280,
) -> Said:
    """What queries give at some moments, in seconds, when rules have been evaluated from the beginning on.

    `series` are samples `step` apart, by series; rules are evaluated `every` so long, group after group. promtool tells
    values only of what was expected otherwise, so nothing is expected.
    """
    rules = folder / "rules.yml"
    rules.write_text(dump({"groups": rule_groups(groups, options)}))
    case = {
        "rule_files": [rules.name],
        "evaluation_interval": every,
        "group_eval_order": [group.name for group in groups],
        "tests": [
            {
                "interval": step,
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [{"expr": query, "eval_time": f"{time}s"} for query in queries for time in at],
            }
        ],
    }
    path = folder / "case.yml"
    path.write_text(yaml.dump(case, width=10**9, Dumper=yaml.CSafeDumper))
    quick = {**os.environ, "GOGC": "800"}
    result = subprocess.run(
        ["promtool", "test", "rules", path], check=False, capture_output=True, text=True, timeout=timeout, env=quick
    )
    text = result.stdout + result.stderr
    assert not re.search("err:|parse error", text), text[:2000]
    return {(found["query"], _seconds(found["time"])): _values(found["got"]) for found in _ASKED.finditer(text)}


def _values(text: str) -> dict[tuple[str, ...], float]:
    found = {}
    for sample in _SAMPLE.finditer(text):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', sample["labels"]))
        labels.pop("__name__", None)
        found[tuple(labels[name] for name in sorted(labels))] = float(sample["value"])
    return found


def _seconds(text: str) -> float:
    return sum(float(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)([dhms])", text))
