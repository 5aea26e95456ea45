"""What the commands share: the option that names the configuration, and reading it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from crawlhealth import configfile
from crawlhealth.config import Config

CONFIG = click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    default=Path("crawlhealth.yml"),
    show_default=True,
    help="The configuration file.",
)


def load(path: Path) -> Config:
    """The configuration; a broken one is told on standard error, and ends the command with 1."""
    try:
        return configfile.load(path, environ=os.environ)
    except configfile.ConfigError as error:
        click.echo(error.render(), err=True)
        if not path.exists():
            click.echo("name your configuration with --config", err=True)
        sys.exit(1)
