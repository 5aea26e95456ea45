"""`crawlhealth backtest`: the judgement tried on a simulation, or on the past of one's own sites."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from crawlhealth.backtest import tables, working
from crawlhealth.backtest.simulating import BY_THE_MINUTE, HOURLY, NAMES, simulated, work
from crawlhealth.config import ScoreSettings
from crawlhealth.options import load

MOST_SITES = 10_000
MOST_PROCESSES = 64


@click.command(epilog="Example: crawlhealth backtest --simulate --scenario all")
@click.option("--config", "path", type=click.Path(path_type=Path), help="The configuration; crawlhealth.yml else.")
@click.option("--compare", "other", type=click.Path(path_type=Path), help="Another configuration, side by side.")
@click.option("--simulate", is_flag=True, help="Simulated sites in place of the past of real ones.")
@click.option("--sites", type=click.IntRange(9, MOST_SITES), default=180, show_default=True, help="How many.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=1, show_default=True, help="Of the simulation.")
@click.option("--minutes", is_flag=True, help="Simulate the table of minutes as well.")
@click.option(
    "--scenario", "names", multiple=True, type=click.Choice([*NAMES, "all"]), help="Simulate this; may be repeated."
)
@click.option("--processes", type=click.IntRange(1, MOST_PROCESSES), default=1, show_default=True, help="At once.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def backtest(
    *,
    path: Path | None,
    other: Path | None,
    simulate: bool,
    sites: int,
    seed: int,
    minutes: bool,
    names: tuple[str, ...],
    processes: int,
    as_json: bool,
) -> None:
    """Try the judgement, with any score configuration, on simulated sites (--simulate) or on the past of real ones.

    The simulation prints the plain formula beside what ships: how soon and how often faults are found, and how many
    false alarms there are. --scenario names what else is simulated: seasons, incidents that are never fixed, a new
    normal that is accepted, an incident in the past.
    """
    methods = _methods(path, other)
    wanted = list(NAMES) if "all" in names else [name for name in NAMES if name in (names or (HOURLY,))]
    if minutes and BY_THE_MINUTE not in wanted:
        wanted.append(BY_THE_MINUTE)
    pieces = work(wanted, methods, sites=sites, seed=seed)
    with progress(sum(piece.steps for piece in pieces), "simulating") as told:
        found = simulated(
            wanted, methods, sites=sites, seed=seed, each=lambda w: working.each(w, told, processes=processes)
        )
    if as_json:
        print_json(found)
    else:
        click.echo("\n".join(tables.simulation(found)))


@contextmanager
def progress(steps: int, label: str) -> Iterator[working.Told]:
    """A bar on a terminal."""
    with click.progressbar(length=steps, label=label, hidden=not sys.stderr.isatty(), file=sys.stderr) as bar:
        yield bar.update


def print_json(said: object) -> None:
    """Print what can be encoded."""
    click.echo(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())


def _methods(path: Path | None, other: Path | None) -> dict[str, ScoreSettings]:
    """The methods of a simulation: those that ship, or those of configurations."""
    if path is None and other is None:
        return {"plain": ScoreSettings(method="plain"), "robust": ScoreSettings()}
    return {str(each): load(each).score for each in (path, other) if each is not None}
