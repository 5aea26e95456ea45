"""`crawlhealth pause`, `resume` and `limit`: what a person decides in place of the advice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from crawlhealth import overrides
from crawlhealth.config import Config
from crawlhealth.history import FILE_NAME, Decisions, HistoryError
from crawlhealth.options import CONFIG, load
from crawlhealth.verdict import OverrideKind
from crawlhealth.yamlfile.binding import nearest

UNTIL = click.option(
    "--until",
    default=overrides.DEFAULT_FOR,
    show_default=True,
    metavar="WHEN",
    help="Until a moment (2026-12-01T22:00:00Z), or for a duration (2h).",
)
NOTE = click.option("--note", default="", help="Why; shown wherever the override is.")


@click.command(epilog="Example: crawlhealth pause books --until 2h --note 'they asked us to'")
@click.argument("site")
@UNTIL
@NOTE
@CONFIG
def pause(site: str, until: str, note: str, path: Path) -> None:
    """Tell the crawlers of SITE to stop, whatever its score; its canaries go on.

    A running exporter follows with its next evaluation. What was decided before for the site ends.
    """
    _decide(path, site, OverrideKind.PAUSE, until=until, note=note)


@click.command(epilog="Example: crawlhealth resume books --until 2026-12-01T22:00:00Z --concurrency 0.2")
@click.argument("site")
@UNTIL
@NOTE
@click.option("--concurrency", type=float, help="Share of the usual concurrency, 1 by default.")
@click.option("--clear", is_flag=True, help="Only end what was decided: the advice rules again.")
@CONFIG
def resume(*, site: str, until: str, note: str, concurrency: float | None, clear: bool, path: Path) -> None:
    """Tell the crawlers of SITE to go on, whatever its score."""
    if not clear:
        _decide(path, site, OverrideKind.RESUME, until=until, note=note, concurrency=concurrency)
        return
    config = load(path)
    now = time.time()
    with _decisions(config, site, now) as decisions:
        ended = decisions.end(site, now)
    click.echo(f"{site}: {'left to the advice again' if ended else 'nothing was decided, the advice rules'}")


@click.command(epilog="Example: crawlhealth limit books --concurrency 0.3 --until 8h --note 'their sale is on'")
@click.argument("site")
@click.option("--concurrency", type=float, required=True, help="Share of the usual concurrency, at most.")
@UNTIL
@NOTE
@CONFIG
def limit(site: str, concurrency: float, until: str, note: str, path: Path) -> None:
    """Tell the crawlers of SITE to use a share of their concurrency at most; the advice may be less."""
    _decide(path, site, OverrideKind.LIMIT, until=until, note=note, concurrency=concurrency)


def _decide(
    path: Path, site: str, kind: OverrideKind, *, until: str, note: str, concurrency: float | None = None
) -> None:
    """Bring an override to disk, and say what it is."""
    config = load(path)
    now = time.time()
    try:
        override = overrides.parse(site, kind, now=now, until=until, concurrency=concurrency, note=note)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    with _decisions(config, site, now) as decisions:
        decisions.put(override)
    end = datetime.fromtimestamp(override.until, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    click.echo(f"{site}: {kind} at {override.concurrency:g} of the usual concurrency until {end}")


@contextmanager
def _decisions(config: Config, site: str, now: float) -> Iterator[Decisions]:
    """What people decided, on disk, for a site of the configuration."""
    if site not in config.sites:
        raise click.UsageError(f"there is no site {site!r}: {nearest(site, config.sites)}")
    try:
        with closing(Decisions.open(config.data_dir / FILE_NAME, now=now)) as decisions:
            yield decisions
    except HistoryError as error:
        raise click.ClickException(str(error)) from error
