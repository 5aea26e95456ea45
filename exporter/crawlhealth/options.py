"""What the commands share: the option that names the configuration, reading it, and times as people write them."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timedelta
from pathlib import Path

import click

from crawlhealth import configfile, quantities
from crawlhealth.config import Config
from crawlhealth.shard import Shard, parse

CONFIG = click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    default=Path("crawlhealth.yml"),
    show_default=True,
    help="The configuration file.",
)


def _shard(_context: click.Context, _parameter: click.Parameter, written: str | None) -> Shard | None:
    """A shard as written on the command line or in the environment."""
    if written is None:
        return None
    try:
        return parse(written)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


SHARD = click.option(
    "--shard",
    metavar="I/N",
    callback=_shard,
    envvar="CRAWLHEALTH_SHARD",
    show_envvar=True,
    help="Only the sites of this shard, as in 1/3: each site belongs to one of them, by its name. Commands beside an"
    " exporter know the one that it last had.",
)


def load(path: Path, *, secrets: bool = True) -> Config:
    """The configuration; a broken one is told on standard error, and ends the command with 1.

    A command that neither serves nor fetches needs no `secrets`: without them, none is read or missed.
    """
    try:
        return configfile.load(path, environ=os.environ, secrets=secrets)
    except configfile.ConfigError as error:
        click.echo(error.render(), err=True)
        if not path.exists():
            click.echo("name your configuration with --config", err=True)
        sys.exit(1)


def when(written: str, now: float) -> float:
    """A moment, or so long before `now`, as people write it; unix seconds. Raises UsageError."""
    try:
        ago: timedelta = quantities.duration(written)
    except ValueError:
        pass
    else:
        return now - ago.total_seconds()
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise click.UsageError(f"{written!r} is no time: write 2026-12-01T00:00:00Z, or 14d")
    return moment.timestamp()
