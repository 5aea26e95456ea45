"""Renders the bundle, writes it, and tells where files on disk differ from it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from crawlhealth.bundle.alertmanager import alertmanager
from crawlhealth.bundle.alerts import ALERTS
from crawlhealth.bundle.rules import rules

RULES = "alerting/rules/crawlhealth.yml"
ALERTMANAGER = "alerting/alertmanager.yml"
DEFAULT_RUNBOOKS = "https://crawlhealth.invalid/runbooks"


def render(
    *,
    job: str = "crawlhealth",
    time_scale: float = 1.0,
    runbook_base: str = DEFAULT_RUNBOOKS,
    page_url: str = "http://127.0.0.1:9878/page",
    notify_url: str = "http://127.0.0.1:9878/notify",
) -> Mapping[str, str]:
    """Every file of the bundle, as relative path to text; equal arguments give equal bytes.

    `job` is the name of the scrape job, `runbook_base` the folder of the runbooks as a URL, `page_url` and
    `notify_url` the webhooks of critical and of other alerts. `time_scale` divides every duration: a demo plays hours
    in minutes. Raises ValueError unless it is over 0.
    """
    if not time_scale > 0:
        raise ValueError(f"time_scale must be over 0, not {time_scale}")
    return {
        RULES: rules(ALERTS, job=job, runbook_base=runbook_base, time_scale=time_scale),
        ALERTMANAGER: alertmanager(page_url=page_url, notify_url=notify_url, time_scale=time_scale),
    }


def write(out: Path, files: Mapping[str, str] | None = None) -> list[Path]:
    """Write the rendered files (by default `render()`) under `out`, making folders; returns the paths. Raises OSError."""
    written = []
    for name, text in (render() if files is None else files).items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def check(out: Path, files: Mapping[str, str] | None = None) -> list[str]:
    """Unified diffs from what is under `out` to the rendered files (by default `render()`); empty when up to date."""
    differences = []
    for name, text in (render() if files is None else files).items():
        path = out / name
        present = path.read_text(encoding="utf-8") if path.is_file() else ""
        if present != text:
            lines = difflib.unified_diff(
                present.splitlines(keepends=True), text.splitlines(keepends=True), name, f"{name} (rendered)"
            )
            differences.append("".join(lines))
    return differences
