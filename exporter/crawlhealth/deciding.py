"""`crawlhealth pause`, `resume`, `limit` and `accept`: what a person decides."""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from crawlhealth import acceptance, overrides, ownership
from crawlhealth.config import Config
from crawlhealth.history import FILE_NAME, Decisions, HistoryError
from crawlhealth.options import CONFIG, SHARD
from crawlhealth.shard import Shard
from crawlhealth.verdict import OverrideKind

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
@SHARD
def pause(*, site: str, until: str, note: str, path: Path, shard: Shard | None) -> None:
    """Tell the crawlers of SITE to stop, whatever its score; its canaries go on.

    A running exporter follows with its next evaluation. What was decided before for the site ends.
    """
    _decide(ownership.beside(path, shard), site, OverrideKind.PAUSE, until=until, note=note)


@click.command(epilog="Example: crawlhealth resume books --until 2026-12-01T22:00:00Z --concurrency 0.2")
@click.argument("site")
@UNTIL
@NOTE
@click.option("--concurrency", type=float, help="Share of the usual concurrency, 1 by default.")
@click.option("--clear", is_flag=True, help="Only end what was decided: the advice rules again.")
@CONFIG
@SHARD
def resume(
    *, site: str, until: str, note: str, concurrency: float | None, clear: bool, path: Path, shard: Shard | None
) -> None:
    """Tell the crawlers of SITE to go on, whatever its score."""
    config = ownership.beside(path, shard)
    if not clear:
        _decide(config, site, OverrideKind.RESUME, until=until, note=note, concurrency=concurrency)
        return
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
@SHARD
def limit(*, site: str, concurrency: float, until: str, note: str, path: Path, shard: Shard | None) -> None:
    """Tell the crawlers of SITE to use a share of their concurrency at most; the advice may be less."""
    _decide(ownership.beside(path, shard), site, OverrideKind.LIMIT, until=until, note=note, concurrency=concurrency)


@click.command(epilog="Example: crawlhealth accept books --note 'their new shop challenges first visits'")
@click.argument("site")
@click.option("--since", metavar="WHEN", help="From a moment, or so long ago (2h); when it left its normal, else now.")
@click.option("--note", help="Why; shown on the page of the site.")
@click.option("--by", metavar="NAME", help="Who accepts it; your login name by default.")
@click.option("--undo", is_flag=True, help="Take back what was accepted last.")
@CONFIG
@SHARD
def accept(
    *, site: str, since: str | None, note: str | None, by: str | None, undo: bool, path: Path, shard: Shard | None
) -> None:
    """Accept that what SITE does since a moment is its new normal.

    Its baseline is then made of what came since. A running exporter follows with its next evaluation. What was accepted
    before is replaced, and is in force again after --undo.
    """
    if undo and (since is not None or note is not None or by is not None):
        raise click.UsageError("--undo takes no other option than --config: leave them out")
    config = ownership.beside(path, shard)
    now = time.time()
    with _decisions(config, site, now) as decisions:
        if undo:
            _undo(decisions, site, now)
            return
        usual = decisions.outside_since(site, now, config.score.baseline)
        try:
            who = _login() if by is None else by
            accepted = acceptance.parse(site, now=now, usual=usual, since=since, by=who, note=note or "")
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        decisions.accept(accepted)
    why = f" ({usual.why})" if not since else ""
    by_whom = f", by {accepted.by}" if accepted.by else ""
    click.echo(f"{site}: what it does since {acceptance.shown(accepted.since)}{why} is its normal{by_whom}.")
    click.echo(f"{acceptance.consequence(config.score.baseline)} `crawlhealth accept {site} --undo` takes it back.")


def _undo(decisions: Decisions, site: str, now: float) -> None:
    if not decisions.undo_accept(site, now):
        click.echo(f"{site}: nothing was accepted")
        return
    before = decisions.accepted().get(site)
    now_so = "its baseline is made as usual again" if before is None else f"in force again: {acceptance.told(before)}"
    click.echo(f"{site}: taken back; {now_so}")


def _login() -> str:
    """The login name, where there is one: a container may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _decide(
    config: Config,
    site: str,
    kind: OverrideKind,
    *,
    until: str,
    note: str,
    concurrency: float | None = None,
) -> None:
    """Bring an override to disk, and say what it is."""
    now = time.time()
    try:
        override = overrides.parse(site, kind, now=now, until=until, concurrency=concurrency, note=note)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    with _decisions(config, site, now) as decisions:
        decisions.put(override)
    end = acceptance.shown(override.until)
    click.echo(f"{site}: {kind} at {override.concurrency:g} of the usual concurrency until {end}")


@contextmanager
def _decisions(config: Config, site: str, now: float) -> Iterator[Decisions]:
    """What people decided, on disk, for a site of the exporter's own."""
    ownership.check(config, site, remedy="decide it there, or on that exporter's page of it")
    try:
        with closing(Decisions.open(config.data_dir / FILE_NAME, now=now)) as decisions:
            yield decisions
    except HistoryError as error:
        raise click.ClickException(str(error)) from error
