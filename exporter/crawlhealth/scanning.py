"""`crawlhealth logs scan`: what access logs say of bots, once over."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO, Final, cast

import click

from crawlhealth.searchbots import formats, report
from crawlhealth.searchbots.report import Report
from crawlhealth.searchbots.source import UNPACKING_FAILED, unpacked, whole_lines
from crawlhealth.searchbots.visits import LogReader

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


@logs.command(epilog="Example: crawlhealth logs scan /var/log/nginx/access.log*")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path, allow_dash=True))
@FORMAT
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--paths", type=click.IntRange(0, 10_000), help="So many paths of each bot (5 in the text, 0 in JSON).")
def scan(*, files: tuple[Path, ...], form: str | None, as_json: bool, paths: int | None) -> None:
    """Count the visits of bots in FILEs, plain or gzipped ("-" reads standard input), by bot, status, day and path.

    Days are those of the log's own clock. Exits 1 when a file could not be read, or was not a single line of it.
    """
    found, failed = Report(), False
    with _progress(files) as advance:
        for path in files:
            try:
                good = _scan(path, form, found, advance)
            except (OSError, *UNPACKING_FAILED) as error:
                click.echo(f"{path}: {getattr(error, 'strerror', None) or error}", err=True)
                good = False
            failed = failed or not good
    if as_json:
        click.echo(json.dumps(report.as_json(found, paths=paths or 0), indent=2, ensure_ascii=False))
    else:
        shown = report.PATHS_SHOWN if paths is None else paths
        click.echo("\n".join(report.as_text(found, paths=shown)))
    sys.exit(1 if failed else 0)


def _scan(path: Path, form: str | None, found: Report, advance: _Progress) -> bool:
    """Take one file into a report; False (and a message) when it has lines and none can be read."""
    with ExitStack() as closing:
        raw = sys.stdin.buffer if str(path) == "-" else closing.enter_context(path.open("rb"))
        chunks = whole_lines(unpacked(cast("IO[bytes]", raw)))
        first = next(chunks, b"")
        name = form or formats.detected(_sample(first))
        reader = LogReader(formats.reader(name))
        try:
            for chunk in _chain(first, chunks):
                found.add(reader.visits(chunk))
                advance(path, raw)
        finally:
            found.read(lines=reader.lines, unreadable=reader.unreadable, bytes_=reader.bytes)
    if reader.lines and reader.unreadable == reader.lines:
        click.echo(f"{path}: no line can be read as {name}: name its format with --format", err=True)
        return False
    return True


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


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


def _progress(files: Iterable[Path]) -> _Progress:
    return _Progress(files)
