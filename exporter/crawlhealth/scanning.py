"""`crawlhealth logs`: what access logs say of bots, once over, and old ones for the history."""

from __future__ import annotations

import io
import ipaddress
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol, cast

import click

from crawlhealth.history import FILE_NAME, HistoryError
from crawlhealth.history.visitstore import KEPT_SECONDS, VisitStore
from crawlhealth.options import load
from crawlhealth.searchbots import formats, report
from crawlhealth.searchbots.inquiry import inquire
from crawlhealth.searchbots.model import Bot, Identify, unverified
from crawlhealth.searchbots.past import Past
from crawlhealth.searchbots.report import Report
from crawlhealth.searchbots.scan import Network
from crawlhealth.searchbots.source import UNPACKING_FAILED, unpacked, whole_lines
from crawlhealth.searchbots.visits import LogReader
from crawlhealth.searchbotsettings import LogSettings, SearchbotSettings

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

SAMPLE_LINES: Final = 200
"""Lines at the beginning of a log by which its format is found out."""


@click.group()
def logs() -> None:
    """Read access logs for the visits of search bots."""


def _format(_context: click.Context, _parameter: click.Parameter, written: str | None) -> str | None:
    if written is not None:
        try:
            formats.reader(written)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    return written


FORMAT = click.option(
    "--format",
    "form",
    metavar="NAME",
    callback=_format,
    help=f"{', '.join(formats.FORMATS)}, or an nginx log_format in quotes; found out by default.",
)


VERIFY = click.option("--verify", is_flag=True, help="Look up who the visitors really are: by DNS and ranges.")
CONFIG = click.option("--config", "config_path", type=click.Path(path_type=Path), help="Default: crawlhealth.yml.")


@logs.command(epilog="Example: crawlhealth logs scan /var/log/nginx/access.log*")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path, allow_dash=True))
@FORMAT
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--paths", type=click.IntRange(0, 10_000), help="So many paths of each bot (5 in the text, 0 in JSON).")
@VERIFY
@CONFIG
def scan(
    *,
    files: tuple[Path, ...],
    form: str | None,
    as_json: bool,
    paths: int | None,
    verify: bool,
    config_path: Path | None,
) -> None:
    """Count the visits of bots in FILEs, plain or gzipped ("-" reads standard input), by bot, status, day and path.

    Days are those of the log's own clock. With --verify, the name servers and ranges of the configuration are asked,
    or the system's name servers where there is none. Exits 1 when a file could not be read, or not a line of it.
    """
    settings = _settings(config_path) if verify else None
    found = Report()
    good = _read_all(files, form, lambda reader, chunk: found.add(reader.visits(chunk)), found.read)
    visitors = [
        (address.decode("ascii", "replace"), seen.bot) for seen in found.bots.values() for address in seen.addresses
    ]
    identify = None if settings is None else _inquired(visitors, settings)
    if as_json:
        click.echo(json.dumps(report.as_json(found, identify=identify, paths=paths or 0), indent=2, ensure_ascii=False))
    else:
        shown = report.PATHS_SHOWN if paths is None else paths
        click.echo("\n".join(report.as_text(found, identify=identify, paths=shown)))
    sys.exit(0 if good else 1)


@logs.command(name="import", epilog="Example: crawlhealth logs import --log shop /var/log/nginx/access.log.*.gz")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--log", "label", help="The configured log, by name or path, that these are old files of.")
@VERIFY
@click.option("--config", "config_path", type=click.Path(path_type=Path), default=Path("crawlhealth.yml"))
def import_(*, files: tuple[Path, ...], label: str | None, verify: bool, config_path: Path) -> None:
    """Bring the visits in old log FILEs, plain or gzipped, into the history, by the hour.

    Hours that are in the files replace what the history has of them and the same domain: give all files of an hour at
    once. No counter on /metrics moves; `export --openmetrics` has them. Without --verify all visits are unverified.
    Visits older than the history keeps, or of times to come, are left out, and how many is said. Exits 1 and takes
    nothing when a file could not be read to its end: what is left of its hours must not replace all of them.
    """
    config = load(config_path)
    log = _chosen(config.searchbots.logs, label)
    past = Past(log, addresses=verify, now=time.time())
    trusted = tuple(ipaddress.ip_network(each, strict=False) for each in log.trusted_proxies)
    good = _read_all(
        files, log.format, lambda reader, chunk: past.add(reader.visits(chunk)), lambda **_: None, trusted=trusted
    )
    if not good:
        raise click.ClickException("nothing is taken into the history: mend that file, or leave it out")
    identify = _inquired(list(past.visitors()), config.searchbots) if verify else unverified
    try:
        with closing(VisitStore.open(config.data_dir / FILE_NAME, now=time.time())) as store:
            store.replace_hours(past.hours(identify))
    except HistoryError as error:
        raise click.ClickException(str(error)) from error
    if past.left_out:
        years = f"{KEPT_SECONDS / (365 * 86_400):g} years"
        click.echo(f"{past.left_out:,} visits left out: older than {years}, or of times to come", err=True)
    click.echo(f"{past.visits:,} visits taken")


def _chosen(known: Sequence[LogSettings], label: str | None) -> LogSettings:
    """The configured log of a label, or the only one."""
    if label is None and len(known) == 1:
        return known[0]
    labels = [log.label for log in known]
    if not labels:
        raise click.UsageError("no log is configured: add searchbots: logs: to the configuration")
    if label is None or label not in labels:
        raise click.UsageError(f"name the log with --log: one of {', '.join(labels[:20])}")
    return known[labels.index(label)]


def _settings(path: Path | None) -> SearchbotSettings:
    """Those of the configuration; the defaults where none is named and none stands here."""
    default = Path("crawlhealth.yml")
    return SearchbotSettings() if path is None and not default.exists() else load(path or default).searchbots


def _inquired(visitors: Sequence[tuple[str, Bot]], settings: SearchbotSettings) -> Identify:
    """Who visitors are, with a bar on a terminal."""
    bar: ProgressBar[int] = click.progressbar(
        length=len(visitors), label="looking up", hidden=not sys.stderr.isatty(), file=sys.stderr
    )
    with bar:
        return inquire(visitors, settings, now=time.time(), advance=lambda: bar.update(1))


class _Told(Protocol):
    def __call__(self, *, lines: int, unreadable: int, bytes_: int) -> object: ...


def _read_all(
    files: Sequence[Path],
    form: str | None,
    take: Callable[[LogReader, bytes], object],
    told: _Told,
    *,
    trusted: Sequence[Network] = (),
) -> bool:
    """Read files one after another; False when one of them could not be read."""
    good = True
    with _Progress(files) as advance:
        for path in files:
            try:
                good = _read(path, form, take, told, advance=advance, trusted=trusted) and good
            except (OSError, *UNPACKING_FAILED) as error:
                click.echo(f"{path}: {getattr(error, 'strerror', None) or error}", err=True)
                good = False
    return good


def _read(
    path: Path,
    form: str | None,
    take: Callable[[LogReader, bytes], object],
    told: _Told,
    *,
    advance: _Progress,
    trusted: Sequence[Network],
) -> bool:
    """Read one file; False (and a message) when it has lines and none can be read."""
    with ExitStack() as stack:
        raw = sys.stdin.buffer if str(path) == "-" else stack.enter_context(open(path, "rb", opener=_opener))
        chunks = whole_lines(unpacked(cast("IO[bytes]", raw)))
        first = next(chunks, b"")
        name = form or formats.detected(_sample(first))
        reader = LogReader(formats.reader(name), trusted=trusted)
        try:
            for chunk in chain((first,) if first else (), chunks):
                take(reader, chunk)
                advance(path, raw)
        finally:
            told(lines=reader.lines, unreadable=reader.unreadable, bytes_=reader.bytes)
    if not reader.lines and path.is_fifo():
        click.echo(f"{path}: is a pipe that nobody writes into", err=True)
        return False
    if reader.lines and reader.unreadable == reader.lines:
        click.echo(f"{path}: no line can be read as {name}: name its format with --format", err=True)
        return False
    return True


def _opener(path: str, flags: int) -> int:
    """Open a file; a pipe as well, without waiting for somebody who writes into it."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def _sample(chunk: bytes) -> Iterable[bytes]:
    return islice((line.rstrip(b"\r\n") for line in io.BytesIO(chunk)), SAMPLE_LINES)


class _Progress:
    """A bar on a terminal: how far the files are read, by bytes."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._before = {path: path.stat().st_size for path in files if path.is_file()}
        self._done = 0
        self._bar = click.progressbar(
            length=sum(self._before.values()), label="reading", hidden=not sys.stderr.isatty(), file=sys.stderr
        )
        self._at: dict[Path, int] = {}

    def __enter__(self) -> _Progress:
        self._bar.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.render_finish()

    def __call__(self, path: Path, raw: IO[bytes]) -> None:
        """Note how far a file is read."""
        if path in self._before:
            at = raw.tell()
            self._bar.update(at - self._at.get(path, 0))
            self._at[path] = at
