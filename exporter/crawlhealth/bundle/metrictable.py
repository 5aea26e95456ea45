"""The table of all metrics that the README carries between two markers, made from `crawlhealth.metrics`."""

from __future__ import annotations

from collections.abc import Iterable

from crawlhealth.metrics import ALL, MetricSpec

BEGIN = "<!-- metrics -->"
END = "<!-- /metrics -->"


def table(specs: Iterable[MetricSpec] = ALL) -> str:
    """A Markdown table, one row a metric in the order given: name, kind, labels, help."""
    rows = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for spec in specs:
        labels = ", ".join(f"`{label}`" for label in spec.labels)
        rows.append(f"| `{spec.name}` | {spec.kind} | {labels} | {_cell(spec.help)} |")
    return "\n".join(rows) + "\n"


def embed(page: str, specs: Iterable[MetricSpec] = ALL) -> str:
    """`page` with the table between its two markers renewed. Raises ValueError unless each stands there once."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in before + after:
        raise ValueError(f"needs one line {BEGIN!r} and after it one line {END!r}")
    return f"{before}{BEGIN}\n{table(specs)}{END}{after}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
