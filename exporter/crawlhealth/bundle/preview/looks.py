"""How Grafana writes and colours values: units, value mappings, thresholds, overrides of single series. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

TEXT: Final = "#d8d9da"
FAINT: Final = "#9a9ca3"
PAGE: Final = "#111217"
PANEL: Final = "#181b1f"
EDGE: Final = "#2c3235"
PALETTE: Final = ("#3b8fc4", "#dd6b20", "#2a9d78", "#d58ab8", "#f0e442", "#7cc7ee", "#b08d57", "#8f7fe0")
_SIZES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K"))
_SPANS: Final = ((86400 * 365, "years"), (86400, "days"), (3600, "hours"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How one field is shown: the defaults of its panel with what overrides say."""

    unit: str = "none"
    decimals: int | None = None
    mappings: tuple[Mapping[str, Any], ...] = ()
    steps: tuple[Mapping[str, Any], ...] = ()
    colour: str | None = None
    custom: Mapping[str, Any] = field(default_factory=dict)
    title: str | None = None

    def text(self, value: float | str | None, now: float) -> str:
        """The value in words."""
        mapped = self._mapped(value)
        if mapped is not None and mapped.get("text"):
            return str(mapped["text"])
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        return value if isinstance(value, str) else written(value, self.unit, self.decimals, now)

    def shade(self, value: float | str | None) -> str | None:
        """The colour of the value: of its mapping, else of its step; None where nothing says one."""
        mapped = self._mapped(value)
        if mapped is not None and mapped.get("color"):
            return str(mapped["color"])
        if isinstance(value, str) or value is None:
            return None
        found = None
        for step in self.steps:
            if step.get("value") is None or value >= step["value"]:
                found = step["color"]
        return None if found == "transparent" else found

    def _mapped(self, value: float | str | None) -> Mapping[str, Any] | None:
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        for mapping in self.mappings:
            if mapping["type"] == "special" and missing:
                found: Mapping[str, Any] = mapping["options"]["result"]
                return found
            if mapping["type"] == "value" and not missing:
                key = f"{value:g}" if isinstance(value, float | int) else str(value)
                if key in mapping["options"]:
                    one: Mapping[str, Any] = mapping["options"][key]
                    return one
        return None


def look(panel: Mapping[str, Any], name: str) -> Look:
    """How the field of that name is shown on a panel."""
    defaults = panel["fieldConfig"]["defaults"]
    found: dict[str, Any] = {
        "unit": defaults.get("unit", "none"),
        "decimals": defaults.get("decimals"),
        "mappings": defaults.get("mappings", []),
        "thresholds": defaults.get("thresholds", {"steps": []}),
        "color": None,
    }
    custom = dict(defaults.get("custom") or {})
    for override in panel["fieldConfig"]["overrides"]:
        if _matches(override["matcher"], name):
            for one in override["properties"]:
                if one["id"].startswith("custom."):
                    custom[one["id"].removeprefix("custom.")] = one["value"]
                else:
                    found[one["id"]] = one["value"]
    colour = (found["color"] or {}).get("fixedColor")
    return Look(
        unit=found["unit"],
        decimals=None if found["decimals"] is None else int(found["decimals"]),
        mappings=tuple(found["mappings"]),
        steps=tuple(found["thresholds"]["steps"]),
        colour=TEXT if colour == "text" else colour,
        custom=custom,
        title=found.get("displayName"),
    )


def _matches(matcher: Mapping[str, Any], name: str) -> bool:
    if matcher["id"] == "byName":
        return bool(matcher["options"] == name)
    return re.search(str(matcher["options"]).strip("/"), name) is not None


def legend(template: str, labels: Mapping[str, str]) -> str:
    """The name of a series."""
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), template).strip()


def written(value: float, unit: str, decimals: int | None, now: float) -> str:
    """A number with its unit."""
    if unit == "percentunit":
        return f"{value:.{1 if decimals is None and 0 < abs(value) < 0.1 else decimals or 0}%}"
    if unit == "dateTimeFromNow":
        ago = now - value / 1000
        return f"{_span(ago)} ago" if ago >= 0 else f"in {_span(-ago)}"
    if unit == "s":
        return _span(value)
    if unit == "bytes":
        for size, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
            if abs(value) >= size:
                return f"{value / size:.1f} {name}"
        return f"{value:.0f} B"
    ends = {"reqps": " req/s", "cps": " c/s"}
    end = unit.removeprefix("suffix:") if unit.startswith("suffix:") else ends.get(unit, "")
    return _number(value, decimals) + end


def _number(value: float, decimals: int | None) -> str:
    for size, name in _SIZES:
        if abs(value) >= size * 10:
            return f"{value / size:.3g} {name}"
    return f"{value:.{decimals}f}" if decimals is not None else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _span(seconds: float) -> str:
    if 0 < abs(seconds) < 1:
        return f"{seconds * 1000:.0f} ms"
    for size, name in _SPANS:
        if abs(seconds) >= size:
            count = seconds / size
            return f"{count:.1f} {name}" if abs(count) < 10 and size > 1 else f"{count:.3g} {name}"
    return "0 s"
