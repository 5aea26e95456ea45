"""What Prometheus answers to the queries of a dashboard: series now, series over time, values of a label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import requests

_SECONDS: Final = 60.0


class PreviewError(Exception):
    """A preview cannot be drawn; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series: its labels, and (unix seconds, value) in order; a single point where the present was asked for."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """A server by its address. All methods raise PreviewError."""

    url: str

    def now(self, expr: str, at: float) -> list[Series]:
        """The series of an expression at a moment."""
        found = self._ask("query", {"query": expr, "time": f"{at:.3f}"})
        if found["resultType"] == "scalar":
            return [Series(labels={}, points=((float(found["result"][0]), float(found["result"][1])),))]
        return [_series(one["metric"], [one["value"]]) for one in found["result"]]

    def over_time(self, expr: str, since: float, until: float, step: float) -> list[Series]:
        """The series of an expression at moments `step` seconds apart."""
        asked = {"query": expr, "start": f"{since:.3f}", "end": f"{until:.3f}", "step": f"{step:.3f}"}
        return [_series(one["metric"], one["values"]) for one in self._ask("query_range", asked)["result"]]

    def label_values(self, selector: str, label: str, since: float, until: float) -> list[str]:
        """The values of a label on the series that a selector chooses, in order."""
        asked = {"match[]": selector, "start": f"{since:.3f}", "end": f"{until:.3f}"}
        return sorted(str(value) for value in self._ask(f"label/{label}/values", asked))

    def _ask(self, path: str, asked: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
        try:
            answer = requests.get(f"{self.url.rstrip('/')}/api/v1/{path}", params=asked, timeout=_SECONDS)
            told = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise PreviewError(f"{self.url} does not answer as Prometheus does: {error}") from error
        if not isinstance(told, dict) or told.get("status") != "success":
            said = told.get("error") if isinstance(told, dict) else None
            raise PreviewError(f"{self.url} refused a query: {said or answer.status_code}: {asked}")
        return told["data"]


def _series(labels: Mapping[str, str], values: list[list[Any]]) -> Series:
    return Series(labels=labels, points=tuple((float(at), float(value)) for at, value in values))
