"""Renders the bundle, writes it, and tells where files on disk differ from it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, Unpack

from crawlhealth.bundle.alertmanager import alertmanager
from crawlhealth.bundle.alerts import ALERTS
from crawlhealth.bundle.rules import rules

RULES = "alerting/rules/crawlhealth.yml"
ALERTMANAGER = "alerting/alertmanager.yml"
DEFAULT_RUNBOOKS = "https://crawlhealth.invalid/runbooks"


class Options(TypedDict, total=False):
    """What a rendering may be given; see `render` for meaning and defaults."""

    job: str
    time_scale: float
    runbook_base: str
    page_url: str
    notify_url: str


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


def write(out: Path, **options: Unpack[Options]) -> list[str]:
    """Write every file of `render(**options)` under `out`, making folders; returns their names. Raises OSError."""
    files = render(**options)
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)


def check(out: Path, **options: Unpack[Options]) -> list[str]:
    """Unified diffs from the files under `out` to those of `render(**options)`; empty when all are up to date."""
    differences = []
    for name, text in render(**options).items():
        path = out / name
        present = path.read_text(encoding="utf-8") if path.is_file() else ""
        if present != text:
            lines = difflib.unified_diff(
                present.splitlines(keepends=True), text.splitlines(keepends=True), name, f"{name} (rendered)"
            )
            differences.append("".join(lines))
    return differences
