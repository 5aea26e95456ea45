"""Variables of a dashboard: what would be chosen when it is opened, and texts with it put in, as Grafana does it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from crawlhealth.bundle.preview.asking import PreviewError, Prometheus

_LABEL_VALUES: Final = re.compile(r"label_values\((?P<selector>.*), *(?P<label>\w+)\)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)")
_AGO: Final = re.compile(r"now-(\d+)(ms|[smhd])")
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}

Chosen = Mapping[str, tuple[str, ...]]
"""By variable: the chosen values; none stand for all of them."""


def span(dashboard: Mapping[str, Any]) -> float:
    """How far a dashboard looks back at first, in seconds."""
    found = _AGO.fullmatch(dashboard["time"]["from"])
    if found is None:
        raise PreviewError(f"no time range: {dashboard['time']['from']}")
    return float(found[1]) * _UNITS[found[2]]


def choices(
    dashboard: Mapping[str, Any], prometheus: Prometheus, until: float, seconds: float, wanted: Mapping[str, str]
) -> Chosen:
    """What is chosen: everything, or one value: the one that was wanted, else the first. Raises PreviewError."""
    chosen: dict[str, tuple[str, ...]] = {}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] != "query":
            continue
        found = label_values(variable, prometheus, chosen, until, seconds)
        first = [wanted[name]] if wanted.get(name := variable["name"]) in found else found[:1]
        chosen[name] = () if variable["includeAll"] else tuple(first)
    return chosen


def label_values(
    variable: Mapping[str, Any], prometheus: Prometheus, chosen: Chosen, until: float, seconds: float
) -> list[str]:
    """What can be chosen of a variable. Raises PreviewError."""
    text = put_in(variable["query"]["query"], chosen, seconds, seconds)
    asked = _LABEL_VALUES.fullmatch(text)
    if asked is None:
        raise PreviewError(f"no query of a variable: {text}")
    return prometheus.label_values(asked["selector"], asked["label"], until - seconds, until)


def put_in(text: str, chosen: Chosen, step: float, seconds: float) -> str:
    """`text` with what is chosen, and Grafana's own variables, put in. Raises PreviewError for an unknown one."""
    own = {
        "__rate_interval": f"{max(4 * 15, round(step) + 15)}s",
        "__interval": f"{max(1, round(step))}s",
        "__range": f"{max(1, round(seconds))}s",
    }

    def one(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name in own:
            return own[name]
        if name not in chosen:
            raise PreviewError(f"no variable {name}: {text}")
        return _pattern(chosen[name])

    return _VARIABLE.sub(one, text)


def named(text: str, chosen: Chosen) -> str:
    """A title with what is chosen in words."""
    return _VARIABLE.sub(lambda found: ", ".join(chosen.get(found[1] or found[2], ())) or "all", text)


def _pattern(values: tuple[str, ...]) -> str:
    """A regular expression of these values, as it stands in a PromQL string."""
    if not values:
        return ".+"
    escaped = [re.sub(r"([\\^$.*+?()\[\]{}|])", r"\\\\\1", value) for value in values]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"
