"""The answers of a table's queries put together as Grafana's transformations do it: merged, sorted, chosen. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crawlhealth.bundle.preview.asking import Series

Cell = float | str | None
Rows = list[dict[str, Cell]]


def rows(panel: Mapping[str, Any], answers: Sequence[Sequence[Series]]) -> Rows:
    """The rows of a table, with the fields that are left in their order."""
    merged = _merged(answers)
    fields: list[str] = []
    for step in panel.get("transformations", ()):
        options = step["options"]
        if step["id"] == "sortBy":
            by = options["sort"][0]
            merged.sort(key=lambda row: _order(row.get(by["field"])), reverse=bool(by["desc"]))
        elif step["id"] == "filterFieldsByName":
            fields = list(options["include"]["names"])
    return [{name: row.get(name) for name in fields} for row in merged] if merged else []


def _order(value: Cell) -> tuple[int, float, str]:
    """Nothing comes first, then numbers, then words."""
    if value is None:
        return (0, 0.0, "")
    return (1, value, "") if isinstance(value, float) else (2, 0.0, value)


def _merged(answers: Sequence[Sequence[Series]]) -> Rows:
    """A row for each set of labels that all answers share."""
    frames: list[list[dict[str, Cell]]] = []
    for number, found_by_one in enumerate(answers):
        field = "Value" if len(answers) == 1 else f"Value #{chr(ord('A') + number)}"
        frames.append([{**one.labels, field: one.points[-1][1]} for one in found_by_one])
    shared = set.intersection(
        *(set.intersection(*(set(row) for row in frame)) for frame in frames if frame), set(_any(frames))
    )
    found: dict[tuple[Cell, ...], list[dict[str, Cell]]] = {}
    for frame in frames:
        for row in frame:
            places = found.setdefault(tuple(row[name] for name in sorted(shared)), [])
            for place in places:
                if all(place.get(name, value) == value for name, value in row.items()):
                    place.update(row)
                    break
            else:
                places.append(dict(row))
    return [row for places in found.values() for row in places]


def _any(frames: Sequence[Sequence[Mapping[str, Cell]]]) -> set[str]:
    return {name for frame in frames for row in frame for name in row}
