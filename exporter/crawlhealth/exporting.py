"""`crawlhealth export`: the history as a file, for another crawlhealth or for Prometheus."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import click

from crawlhealth import ownership
from crawlhealth.config import Config
from crawlhealth.history import FILE_NAME, HistoryError, Past, reading
from crawlhealth.history.visits import read_hours, visited_hours
from crawlhealth.options import CONFIG, SHARD, when
from crawlhealth.shard import Shard
from crawlhealth.tally import Slot
from crawlhealth.traffic.backfill import Backfill
from crawlhealth.traffic.exporting import as_line

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@click.command(epilog="Example: crawlhealth export --since 14d --out history.jsonl")
@CONFIG
@SHARD
@click.option("--site", "names", multiple=True, help="Only this site; may be repeated.")
@click.option("--since", metavar="WHEN", help="From a moment (2026-12-01T00:00:00Z) or so long ago (14d) on.")
@click.option("--until", metavar="WHEN", help="What began before a moment, or so long ago.")
@click.option("--openmetrics", is_flag=True, help="For promtool tsdb create-blocks-from openmetrics.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME=VALUE",
    default=("job=crawlhealth",),
    show_default=True,
    help="On every series with --openmetrics; may be repeated.",
)
@click.option("--out", type=click.File("wb", lazy=True, atomic=True), default="-", help="A file; standard output else.")
def export(
    *,
    path: Path,
    shard: Shard | None,
    names: tuple[str, ...],
    since: str | None,
    until: str | None,
    openmetrics: bool,
    labels: tuple[str, ...],
    out: IO[bytes],
) -> None:
    """Write the history as JSON lines, one window each, which `import` takes back exactly.

    Visits of search bots are no windows, and written with --openmetrics only.
    May run while `serve` runs. Only what is configured is written, and of the sites only the shard's. What has left,
    and how much is here of other shards, is told on standard error.
    """
    config = ownership.beside(path, shard)
    now = time.time()
    for name in names:
        ownership.check(config, name, remedy=ownership.past_elsewhere(config, name))
    past = Past(
        settings=config.history,
        now=now,
        since=0.0 if since is None else when(since, now),
        until=now + 60.0 if until is None else when(until, now),
    )
    chosen = _Chosen(config, frozenset(names or config.sites))
    try:
        with reading(config.data_dir / FILE_NAME) as connection:
            if openmetrics:
                backfill = Backfill(
                    windows=lambda: chosen.windows(past.windows(connection)),
                    verdicts=lambda: (pair for pair in past.verdicts(connection) if pair[0] in chosen.sites),
                    labels=_labels(labels),
                    end=now,
                    visits=lambda: () if names else read_hours(connection, past.since, past.until),
                )
                out.writelines(line.encode() for line in backfill.lines())
            else:
                out.write(b"")  # a file of its own is there even when nothing is in it
                if not names and (hours := visited_hours(connection, past.since, past.until)):
                    click.echo(f"left out: search bots' visits in {hours} h (--openmetrics has them)", err=True)
                for _, slots in chosen.windows(past.windows(connection)):
                    out.writelines(map(as_line, slots))
    except HistoryError as error:
        raise click.ClickException(str(error)) from error
    if chosen.left_out:
        click.echo(f"left out: {', '.join(sorted(chosen.left_out))} (not configured any more)", err=True)
    if chosen.elsewhere and not names:
        owners = sorted({owner.written for owner in map(config.owner, chosen.elsewhere) if owner is not None})
        which = ", or ".join(f"--shard {written}" for written in owners)
        click.echo(f"left out: {len(chosen.elsewhere)} sites of other shards (to write them: {which})", err=True)


class _Chosen:
    """Keeps what is configured, and the names of what is not."""

    def __init__(self, config: Config, sites: frozenset[str]) -> None:
        self._config = config
        self.sites = sites
        self.left_out: set[str] = set()
        self.elsewhere: set[str] = set()

    def windows(self, found: Iterable[tuple[str, list[Slot]]]) -> Iterator[tuple[str, list[Slot]]]:
        for site, slots in found:
            if site in self._config.elsewhere:
                self.elsewhere.add(site)
            elif site not in self._config.sites:
                self.left_out.add(f"site {site}")
            elif site in self.sites:
                self.left_out.update(
                    f"route {slot.route}" for slot in slots if slot.route not in self._config.routes
                )  # fmt: skip
                yield site, [slot for slot in slots if slot.route in self._config.routes]


def _labels(written: Iterable[str]) -> dict[str, str]:
    labels = {}
    for pair in written:
        name, equals, value = pair.partition("=")
        if not equals or not _LABEL.fullmatch(name):
            raise click.UsageError(f"{pair!r} is no label: write NAME=VALUE")
        labels[name] = value
    return labels
