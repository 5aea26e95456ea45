"""Pictures of all dashboards of a rendered bundle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from crawlhealth.bundle.preview.asking import PreviewError, Prometheus


def pictures(
    files: Mapping[str, str], folder: Path, prometheus: Prometheus, *, now: float, width: int, wanted: Mapping[str, str]
) -> Sequence[Path]:
    """Draw every dashboard among the rendered files; returns the pictures. Raises PreviewError, OSError."""
    try:
        from crawlhealth.bundle.preview.drawing import draw, view  # noqa: PLC0415 - an extra brings what draws
    except ModuleNotFoundError as error:
        raise PreviewError(f"{error.name} is not installed: pip install 'crawlhealth[preview]'") from error
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, text in files.items():
        if not name.startswith("grafana/dashboards/"):
            continue
        dashboard = json.loads(text)
        path = folder / f"{dashboard['uid']}.png"
        draw(dashboard, view(dashboard, prometheus, now, wanted), path, width)
        drawn.append(path)
    return drawn
