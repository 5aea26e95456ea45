"""A year of hourly history of a hundred sites, replayed by the real command.

    python bench/backtest.py [--sites 100] [--days 365] [--processes 2]

Makes the history that a running exporter would have left: over-dispersed traffic of the simulator with latencies, and
on each site an incident of a day every two months. Exits 1 when the replay takes longer than its bound.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import zstandard
from numpy.typing import NDArray

from crawlhealth import configfile, stats
from crawlhealth.backtest.scenarios import Added, Scenario
from crawlhealth.backtest.simulator import Population, Simulation
from crawlhealth.history import FILE_NAME, History, rollup
from crawlhealth.history.database import transaction
from crawlhealth.outcome import Source
from crawlhealth.stretch import dense
from crawlhealth.tally import Tally, pack

HOUR, DAY = 3600, 86400
END = 1_796_040_000 // DAY * DAY
BOUND = 20.0
"""Seconds, of a year of a hundred sites."""


def write_config(folder: Path, sites: int) -> Path:
    path = folder / "crawlhealth.yml"
    lines = ["data_dir: ./data", "history: {keep_hours: 400d}", "sites:"]
    lines += [f"  site-{number:04d}: {{hosts: [site-{number:04d}.example]}}" for number in range(sites)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def drawn(sites: int, days: int) -> NDArray[np.float64]:
    """What came of each site in each hour: ok and the three kinds of refusals."""
    incidents = tuple(Added(at_once=0.4, begins=day * 24, ends=day * 24 + 24) for day in range(30, days, 60))
    scenario = Scenario(name="year", hours=days * 24, added=incidents)
    simulation = Simulation(Population.mixed(sites), seed=1, before=0, after=days * 24, effect=scenario.effect)
    return dense(simulation.hourly())[..., :4]


def tally(outcomes: NDArray[np.int64], draw: np.random.Generator) -> Tally:
    ok = int(outcomes[0])
    buckets, counts = np.unique(
        [stats.bucket(seconds) for seconds in draw.lognormal(-1.2, 0.5, min(ok, 200))], return_counts=True
    )
    return Tally(
        ok=ok, hard_block=int(outcomes[1]), challenge=int(outcomes[2]), soft_block=int(outcomes[3]), extractions_ok=ok,
        records_valid=ok * 10, bytes=ok * 20_000, latency=dict(zip(buckets.tolist(), counts.tolist(), strict=True)),
        latency_sum=0.35 * ok,
    )  # fmt: skip


def make(folder: Path, sites: int, days: int) -> None:
    """The history as it stands on disk."""
    config = configfile.load(write_config(folder, sites), environ={})
    draw = np.random.default_rng(2)
    counts = drawn(sites, days).astype(np.int64)
    path = config.data_dir / FILE_NAME
    with closing(History.open(path, config.history, now=float(END))) as history:
        connection = history._writer  # the only way to write what took a year
        with transaction(connection):
            for site in range(sites):
                packed = [
                    (
                        END - (days - day) * DAY,
                        [("direct", Source.TRAFFIC, float(END - (days - day) * DAY + hour * HOUR),
                          pack(tally(counts[site, day * 24 + hour], draw))) for hour in range(24)],
                    )
                    for day in range(days)
                ]  # fmt: skip
                connection.executemany(
                    "INSERT INTO days (site, day, step, strata) VALUES (?, ?, ?, ?)",
                    (
                        (f"site-{site:04d}", day, HOUR, zstandard.compress(rollup._encode(hours)))
                        for day, hours in packed
                    ),
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=100)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        making = multiprocessing.get_context("spawn").Process(
            target=make, args=(folder, arguments.sites, arguments.days)
        )  # apart: what this process holds would count as memory of those it starts
        making.start()
        making.join()
        path = folder / "data" / FILE_NAME
        command = [
            sys.executable, "-m", "crawlhealth.cli", "backtest", "--config", str(folder / "crawlhealth.yml"), "--json",
            "--processes", str(arguments.processes),
        ]  # fmt: skip
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        took = time.perf_counter() - began
        if status:
            sys.exit("the backtest failed")
        (figures,) = [one["figures"] for one in json.loads(said)["configurations"].values()]
        print(f"{arguments.sites} sites, {arguments.days} days by the hour, {arguments.processes} processes")
        for label, value in {
            "seconds": took,
            "processor seconds": used.ru_utime + used.ru_stime,
            "MB of the largest process": used.ru_maxrss / 1000,
            "MB on disk": path.stat().st_size / 1e6,
            "incidents": figures["incidents"],
            "incidents that began": arguments.sites * len(range(30, arguments.days, 60)),
        }.items():
            print(f"  {label:26} {value:10.1f}")
    bound = BOUND * max(1.0, arguments.sites * arguments.days / 36_500)
    if took > bound:
        sys.exit(f"it took {took:.1f} s, more than {bound:.0f} s")


if __name__ == "__main__":
    main()
