"""The options of `crawlhealth bundle` that draw pictures instead of writing files."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from crawlhealth.bundle.preview.asking import PreviewError, Prometheus
from crawlhealth.bundle.preview.pictures import pictures


def _choices(_context: click.Context, _parameter: click.Parameter, entries: tuple[str, ...]) -> dict[str, str]:
    """Pairs VARIABLE=VALUE."""
    for entry in entries:
        if not re.fullmatch(r"\w+=.+", entry):
            raise click.BadParameter(f"{entry!r} chooses nothing: write VARIABLE=VALUE, as in site=books")
    return dict(entry.split("=", 1) for entry in entries)


def _server(_context: click.Context, _parameter: click.Parameter, text: str) -> Prometheus:
    """A Prometheus by its address."""
    if not re.match(r"https?://[^\s/]", text):
        raise click.BadParameter(f"{text!r} is no address: write it whole, as http://127.0.0.1:9090")
    return Prometheus(url=text)


OPTIONS: Final[tuple[Callable[..., Any], ...]] = (
    click.option(
        "--preview",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="Write pictures of the dashboards into this folder and nothing else; what follows is for those.",
    ),
    click.option(
        "--prometheus",
        metavar="URL",
        callback=_server,
        default="http://127.0.0.1:9090",
        show_default=True,
        help="Whom to ask for their data.",
    ),
    click.option("--width", type=click.IntRange(640, 3840), default=1280, show_default=True, help="In pixels."),
    click.option(
        "--choose",
        multiple=True,
        metavar="VARIABLE=VALUE",
        callback=_choices,
        help="What is shown where one value is chosen, as in site=books.",
    ),
)


def draw(
    files: Mapping[str, str], folder: Path, *, prometheus: Prometheus, width: int, choose: Mapping[str, str]
) -> None:
    """Draw the dashboards among rendered files as they are now, and say where. Raises click.ClickException."""
    try:
        drawn = pictures(files, folder, prometheus, now=time.time(), width=width, wanted=choose)
    except (PreviewError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for path in drawn:
        click.echo(path)
