"""Which shard a data directory is of, and whose a site is: asked by every command that works beside an exporter."""

from __future__ import annotations

from pathlib import Path

import click

from crawlhealth.config import Config
from crawlhealth.history import FILE_NAME, HistoryError, shard_of
from crawlhealth.options import load
from crawlhealth.shard import Shard
from crawlhealth.yamlfile.binding import nearest


def beside(path: Path, shard: Shard | None) -> Config:
    """What of the configuration at `path` is of the exporter that has its data directory, without its secrets.

    That is the part of the `shard`, where one is given, else of the one that `serve` last had there, else everything.
    A broken configuration ends the command (`options.load`). Raises ClickException for a history that cannot be read.
    """
    config = load(path, secrets=False)
    try:
        last = shard_of(config.data_dir / FILE_NAME)
    except HistoryError as error:
        raise click.ClickException(str(error)) from error
    if shard is not None and last is not None and shard != last:
        click.echo(f"{config.data_dir} is that of shard {last}, and you ask as shard {shard}", err=True)
    chosen = last if shard is None else shard
    return config if chosen is None else config.part(chosen)


def check(config: Config, site: str, *, remedy: str) -> None:
    """Turn down (UsageError) a site that is none of a configuration's; of one of another shard, with the `remedy`."""
    if site in config.sites:
        return
    if config.owner(site) is None:
        raise click.UsageError(f"there is no site {site!r}: {nearest(site, (*config.sites, *config.elsewhere))}")
    raise click.UsageError(f"{config.unknown(site)}: {remedy}")


def past_elsewhere(config: Config, site: str) -> str:
    """The remedy for a question about the past: most of it is elsewhere, and some may be here from before."""
    owner = config.owner(site)
    here = "" if owner is None else f", or see what is here from before, with --shard {owner.written}"
    return f"ask there{here}"
