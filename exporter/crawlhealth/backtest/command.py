"""`crawlhealth backtest`: the judgement tried on a simulation, or on the past of one's own sites."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click
import msgspec

from crawlhealth.backtest import labelled, replaying, tables, working
from crawlhealth.backtest.labelled import LabelError, Labelled
from crawlhealth.backtest.past import Tried
from crawlhealth.backtest.replaying import Figures
from crawlhealth.backtest.simulating import BY_THE_MINUTE, HOURLY, NAMES, simulated, work
from crawlhealth.backtest.sources import Asked, imported, stored
from crawlhealth.config import Config
from crawlhealth.history import FILE_NAME, HistoryError
from crawlhealth.options import load, when
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.traffic.windows import Problem

MOST_SITES = 10_000
MOST_PROCESSES = 64
STEPS = {"1h": 3600.0, "1m": 60.0}
PROBLEMS_TOLD = 20
"""So many bad lines of a file are told, and the others counted."""
DEFAULT = Path("crawlhealth.yml")


@click.command(epilog="Examples: crawlhealth backtest --simulate; crawlhealth backtest --since 90d --labels faults.csv")
@click.option("--config", "path", type=click.Path(path_type=Path), help="The configuration. [default: crawlhealth.yml]")
@click.option("--compare", "other", type=click.Path(path_type=Path), help="Another configuration, side by side.")
@click.option("--history", "folder", type=click.Path(path_type=Path), help="Another data_dir than the configuration's.")
@click.option("--import", "file", type=click.File("rb"), help="Windows in JSON lines in place of a history.")
@click.option("--since", metavar="WHEN", help="From a moment (2026-12-01T00:00:00Z) or so long ago (90d) on.")
@click.option("--until", metavar="WHEN", help="Up to a moment, or so long ago.")
@click.option("--site", "sites", multiple=True, help="Only this site; may be repeated.")
@click.option("--labels", type=click.File("r", encoding="utf-8"), help="When something was wrong: site,start,end.")
@click.option("--step", type=click.Choice(list(STEPS)), default="1h", show_default=True, help="Judged so often.")
@click.option(
    "--processes",
    type=click.IntRange(1, MOST_PROCESSES),
    default=lambda: min(MOST_PROCESSES, os.cpu_count() or 1),
    show_default="one a processor",
    help="At once.",
)
@click.option("--simulate", is_flag=True, help="Simulated sites in place of the past of real ones.")
@click.option("--sites", "count", type=click.IntRange(9, MOST_SITES), default=180, show_default=True, help="How many.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=1, show_default=True, help="Of the simulation.")
@click.option("--minutes", is_flag=True, help="Simulate the table of minutes as well.")
@click.option(
    "--scenario", "names", multiple=True, type=click.Choice([*NAMES, "all"]), help="Simulate this; may be repeated."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def backtest(
    *,
    path: Path | None,
    other: Path | None,
    folder: Path | None,
    file: IO[bytes] | None,
    since: str | None,
    until: str | None,
    sites: tuple[str, ...],
    labels: IO[str] | None,
    step: str,
    processes: int,
    simulate: bool,
    count: int,
    seed: int,
    minutes: bool,
    names: tuple[str, ...],
    as_json: bool,
) -> None:
    """Try the judgement, with any score configuration, on the past of one's own sites or on simulated ones.

    The stored history (which is only read: the exporter may run), or a file of windows, is judged step by step as the
    exporter would have judged it. Told are incidents, alarms a site-week, and how these agree with --labels: CSV or
    JSON lines of site, start and end of all that was wrong.

    --simulate prints the plain formula beside what ships: how soon and how often faults are found, and how many false
    alarms there are. --scenario names what else is simulated: seasons, incidents that are never fixed, a new normal
    that is accepted, an incident in the past.
    """
    past = {"history": folder, "import": file, "since": since, "until": until, "site": sites, "labels": labels}
    if simulate:
        _refuse(past, "--simulate knows no past: leave out")
        wanted = list(NAMES) if "all" in names else [name for name in NAMES if name in (names or (HOURLY,))]
        if minutes and BY_THE_MINUTE not in wanted:
            wanted.append(BY_THE_MINUTE)
        _simulate(wanted, _methods(path, other), sites=count, seed=seed, processes=processes, as_json=as_json)
        return
    _refuse({"minutes": minutes, "scenario": names}, "write --simulate as well, or leave out")
    if folder is not None and file is not None:
        raise click.UsageError("--history and --import: write one of them")
    now = time.time()
    asked = Asked(
        sites=sites,
        since=None if since is None else when(since, now),
        until=None if until is None else when(until, now),
        seconds=STEPS[step],
        processes=processes,
    )
    if asked.since is not None and asked.until is not None and asked.until <= asked.since:
        raise click.UsageError("--until: write a moment later than --since")
    configs = {str(each): load(each, secrets=False) for each in (path or DEFAULT, other) if each is not None}
    tried = {name: Tried(settings=one.score, maintenance=one.maintenance) for name, one in configs.items()}
    _replay(next(iter(configs.values())), tried, asked, folder=folder, file=file, labels=labels, as_json=as_json)


def _simulate(
    wanted: Sequence[str], methods: Mapping[str, ScoreSettings], *, sites: int, seed: int, processes: int, as_json: bool
) -> None:
    steps = sum(piece.steps for piece in work(wanted, methods, sites=sites, seed=seed))
    with _progress(steps, "simulating") as told:
        found = simulated(
            wanted, methods, sites=sites, seed=seed, each=lambda todo: working.each(todo, told, processes=processes)
        )
    if as_json:
        _print_json(found)
    else:
        click.echo("\n".join(tables.simulation(found)))


def _replay(
    config: Config,
    tried: Mapping[str, Tried],
    asked: Asked,
    *,
    folder: Path | None,
    file: IO[bytes] | None,
    labels: IO[str] | None,
    as_json: bool,
) -> None:
    unknown = [site for site in asked.sites if site not in config.sites]
    if unknown:
        raise click.UsageError(f"no site {unknown[0]!r} in the configuration")
    windows = None if labels is None else _labels(labels)
    problems = _Problems("" if file is None else file.name)
    try:
        if file is not None:
            with click.progressbar(file, label=file.name, hidden=not sys.stderr.isatty(), file=sys.stderr) as lines:
                told = imported(lines, config, tried, asked, problem=problems.take)
        else:
            told = stored((folder or config.data_dir) / FILE_NAME, config, tried, asked, progress=_progress)
    except (HistoryError, working.WorkError) as error:
        raise click.ClickException(str(error)) from error
    if windows is not None:
        windows = [one for one in windows if told.covers(one) and (not asked.sites or one.site in asked.sites)]
    figures = {name: Figures.of(one, windows, since=told.since) for name, one in told.outcomes.items()}
    if as_json:
        _print_json(replaying.answer(told, figures))
    else:
        click.echo("\n".join(replaying.text(told, figures)))
    problems.end()


@contextmanager
def _progress(steps: int, label: str) -> Iterator[working.Told]:
    """A bar on a terminal."""
    with click.progressbar(length=steps, label=label, hidden=not sys.stderr.isatty(), file=sys.stderr) as bar:
        yield bar.update


def _print_json(said: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())


def _methods(path: Path | None, other: Path | None) -> dict[str, ScoreSettings]:
    """The methods of a simulation: those that ship, or those of configurations."""
    if path is None and other is None:
        return {"plain": ScoreSettings(method="plain"), "robust": ScoreSettings()}
    return {str(each): load(each, secrets=False).score for each in (path, other) if each is not None}


def _refuse(given: Mapping[str, object], why: str) -> None:
    some = next((f"--{name}" for name, value in given.items() if value not in (None, (), False)), None)
    if some is not None:
        raise click.UsageError(f"{why} {some}")


def _labels(file: IO[str]) -> list[Labelled]:
    try:
        return labelled.read(file)
    except (LabelError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{file.name}: {error}") from error


class _Problems:
    """Tells the first bad lines of a file, and counts all."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0

    def take(self, problem: Problem) -> None:
        self._count += 1
        if self._count <= PROBLEMS_TOLD:
            click.echo(f"{self._name}:{problem.line}: {problem.reason}", err=True)

    def end(self) -> None:
        """Exit 1 where there was any."""
        if self._count > PROBLEMS_TOLD:
            click.echo(f"{self._name}: {self._count - PROBLEMS_TOLD} more lines not taken", err=True)
        if self._count:
            sys.exit(1)
