"""The volume rules as shipped, over labelled series: what is told of losses, and how often for nothing.

    python bench/volume.py DIR [--seed 7]

DIR holds an `index.tsv` (tab separated: file, kind, interval_s, ...) and series as `timestamp,value,label`, gzipped.
Each series of kind `volume`, and each made-up one, becomes the counter of a site of its own in
steps of five minutes: minutes are summed, hours spread evenly. `promtool test rules` replays the rendered rules over
all of them, every ten minutes (shipped: every four), with their order, `for` and all, and beside them the rule that is
often written: the last hour below half of the same hour yesterday. Only texts are left out. What fired is read from
what promtool says did not meet the expectation that nothing does.

A labelled window is a loss if its mean lies under that of the hour before and the hour after. (An index that compares
with the mean of the whole series calls short rises by night falls.) It is found if an alert holds in it or `SLACK`
after. An episode is an unbroken stretch of an alert; it is false if it begins neither in a loss nor in the day after,
which sums look back on. Exits 1 when a loss of the real series is missed, or false alarms break the bound.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml
from numpy.typing import NDArray

from crawlhealth.bundle import volume
from crawlhealth.bundle.model import Options
from crawlhealth.bundle.recording import REQUESTS
from crawlhealth.bundle.rules import rule_groups

Array = NDArray[np.float64]

STEP: Final = 300
HOUR: Final = 3600 // STEP
DAY: Final = 24 * HOUR
WEEKS: Final = 7
CHANGE: Final = 22
"""The day, a Tuesday, on which something happens: three weeks are behind it."""
Flags = NDArray[np.bool_]

SLACK: Final = 3 * HOUR
EVERY: Final = 2
"""Steps between two evaluations."""
FALSE_BOUND: Final = 0.5
LITERAL: Final = "Literal"
RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "halved": ("CrawlVolumeHalved",),
    "halved or declining": ("CrawlVolumeHalved", "CrawlVolumeDeclining"),
    "50 % below yesterday": (LITERAL,),
}
_UNITS: Final = {"y": 525_600, "w": 10_080, "d": 1440, "h": 60, "m": 1, "s": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Counts in steps of five minutes from a Monday's midnight, and what was lost: (first step, one behind)."""

    name: str
    counts: Array
    losses: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class Count:
    """What a rule came to over some series."""

    found: int = 0
    losses: int = 0
    false: int = 0
    weeks: float = 0.0
    covered: float = 0.0

    def __iadd__(self, other: Count) -> Count:
        self.found += other.found
        self.losses += other.losses
        self.false += other.false
        self.weeks += other.weeks
        self.covered += other.covered
        return self

    def __str__(self) -> str:
        share = f"{self.covered / self.losses:.0%}" if self.losses else "-"
        return f"{self.found}/{self.losses} | {share} | {self.false} | {self.false / self.weeks:.2f}"


def read(folder: Path) -> Iterator[Volume]:
    """The labelled series of volumes."""
    with (folder / "index.tsv").open() as index:
        rows = [row for row in csv.DictReader(index, delimiter="\t") if row["kind"] == "volume"]
    for row in rows:
        with gzip.open(folder / row["file"], "rt") as lines:
            points = list(csv.DictReader(lines))
        values = np.array([float(point["value"]) for point in points])
        labels = np.array([point["label"] == "1" for point in points])
        seconds = float(row["interval_s"])
        hour = round(3600 / seconds)
        lost = [window for window in _windows(labels) if _falls(values, *window, around=hour)]
        scale = seconds / STEP
        yield Volume(
            name=Path(row["file"]).name.split(".")[0].split("__")[-1],
            counts=_by_step(values, scale),
            losses=tuple((int(first * scale), int(np.ceil(behind * scale))) for first, behind in lost),
        )


def _windows(labels: Flags) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], labels, [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _falls(values: Array, first: int, behind: int, *, around: int) -> bool:
    neighbours = values[max(0, first - around) : first], values[behind : behind + around]
    return all(values[first:behind].mean() < part.mean() for part in neighbours if len(part))


def _by_step(values: Array, scale: float) -> Array:
    """Values of intervals of so many steps as counts by step."""
    if scale >= 1:
        return np.asarray(np.repeat(values / scale, round(scale)))
    each = round(1 / scale)
    return np.asarray(values[: len(values) // each * each].reshape(-1, each).sum(axis=1), dtype=np.float64)


def shapes(random: np.random.Generator) -> Iterator[Volume]:
    """Every made-up volume, drawn anew: Poisson counts, and where said a lognormal factor for every hour."""
    for name, rate in _harmless():
        yield Volume(name=name, counts=_drawn(rate, random, 0.3 if "uneven" in name else 0.0))
    for name, rate, first, length in _lost():
        window = (first, min(first + length, len(rate)))
        yield Volume(name=name, counts=_drawn(rate, random, 0.2), losses=(window,))


def _harmless() -> Iterator[tuple[str, Array]]:
    day, flat, night = _daylight(48_000), _even(24_000), _job(8_000)
    yield from (("day and night, uneven", day), ("all day, uneven", flat), ("four hours by night", night))
    yield from (("700 a day, uneven", _even(700)), ("144 a day", _even(144)), ("6 a day", _even(6)))
    yield "a holiday at 60 %", _times(day, CHANGE, 1, 0.6)
    yield "an hour of ten times", _times(day, CHANGE + 0.5, 1 / 24, 10)
    yield "a day of four times", _times(flat, CHANGE, 1, 4)
    yield "a week of three times", _times(flat, CHANGE, 7, 3)
    yield "quiet Sundays", _weekly(day, (1, 1, 1, 1, 1, 0.6, 0.2))
    yield "weekdays only", _weekly(day, (1, 1, 1, 1, 1, 0, 0))
    yield "700 a day on weekdays only", _weekly(_even(700), (1, 1, 1, 1, 1, 0, 0))
    for name, rate in (("day and night", day), ("four hours by night", night)):
        yield f"{name}, summer time begins", np.delete(rate, slice(CHANGE * DAY, CHANGE * DAY + HOUR))
        yield f"{name}, summer time ends", np.insert(rate, CHANGE * DAY, rate[:HOUR])
    yield "a third less since", _times(day, CHANGE, 7 * WEEKS, 0.67)


def _lost() -> Iterator[tuple[str, Array, int, int]]:
    """Name, rates, first step and length of a loss."""
    day, flat, noon = _daylight(48_000), _even(24_000), CHANGE + 0.5
    for name, rate, begin, hours, left in (
        ("an hour and a half of nothing", flat, noon, 1.5, 0.0),
        ("six hours at 30 %", day, CHANGE + 0.4, 6, 0.3),
        ("a holiday at 30 %", day, CHANGE, 24, 0.3),
        ("37 hours of nothing", day, CHANGE + 0.45, 37, 0.0),
        ("37 hours at 35 %, all day", flat, noon, 37, 0.35),
        ("three days at 20 %", day, noon, 72, 0.2),
        ("four hours by night, not run for two nights", _job(8_000), noon, 48, 0.0),
        ("two days of nothing, 700 a day", _even(700), noon, 48, 0.0),
        ("three days at 25 %, 144 a day", _even(144), noon, 72, 0.25),
    ):
        yield name, _times(rate, begin, hours / 24, left), round(begin * DAY), round(hours * HOUR)
    yield "979, 76, 67, 10, 8 a day", *_then(979, (76, 67, 10, 8))
    yield "from 700 to 50 a day in three weeks", *_then(700, (50 * 14 ** np.linspace(20 / 21, 0, 21)).tolist())
    yield (
        "3 % less every day for four weeks",
        *_then(24_000, [24_000 * 0.97**day for day in range(1, 7 * WEEKS - CHANGE + 1)]),
    )


def _even(per_day: float) -> Array:
    return np.full(7 * WEEKS * DAY, per_day / DAY)


def _daylight(per_day: float) -> Array:
    """Four times as much in the afternoon as by night."""
    hours = np.arange(7 * WEEKS * DAY) / HOUR
    return per_day / DAY * (1 + 0.6 * np.sin((hours - 9) / 24 * 2 * np.pi))


def _job(per_night: float) -> Array:
    hours = np.arange(7 * WEEKS * DAY) / HOUR % 24
    return np.where((hours >= 2) & (hours < 6), per_night / (4 * HOUR), 0.0)


def _times(rate: Array, begin: float, days: float, factor: float) -> Array:
    changed = rate.copy()
    changed[round(begin * DAY) : round((begin + days) * DAY)] *= factor
    return changed


def _weekly(rate: Array, factors: Sequence[float]) -> Array:
    return np.asarray(rate * np.repeat(np.tile(factors, WEEKS), DAY), dtype=np.float64)


def _then(usual: float, per_day: Sequence[float]) -> tuple[Array, int, int]:
    """As usual, then so much on each day, then the last of it."""
    days = np.full(7 * WEEKS, float(usual))
    days[CHANGE : CHANGE + len(per_day)] = per_day
    days[CHANGE + len(per_day) :] = per_day[-1]
    return np.repeat(days / DAY, DAY), CHANGE * DAY, len(per_day) * DAY


def _drawn(rate: Array, random: np.random.Generator, sigma: float) -> Array:
    hours = np.ceil(len(rate) / HOUR).astype(int)
    factor = np.exp(random.normal(-(sigma**2) / 2, sigma, hours))
    return np.asarray(random.poisson(rate * np.repeat(factor, HOUR)[: len(rate)]), dtype=np.float64)


def rules() -> dict[str, Any]:
    """The rules of requests as shipped, as one group and without texts, and the plain rule as its last."""
    options = Options()
    group = next(group for group in volume.groups(options) if group.file == "volume-requests")
    groups = rule_groups([replace(group, rules=(REQUESTS, *group.rules))], options)
    for rule in groups[0]["rules"]:
        rule["expr"] = str(rule["expr"])
        rule.pop("annotations", None)
    count = "site:crawl_requests:increase1h"
    told = next(rule["for"] for rule in groups[0]["rules"] if rule.get("alert") == "CrawlVolumeHalved")
    groups[0]["rules"].append({"alert": LITERAL, "expr": f"{count} < 0.5 * {count} offset 1d", "for": told})
    return {"groups": groups}


def replay(volumes: Sequence[Volume]) -> dict[tuple[int, str], Flags]:
    """When each alert fired for each volume, by step."""
    steps = max(len(each.counts) for each in volumes)
    labels = 'job="crawlhealth",instance="a:9877"'
    series = [{"series": f"up{{{labels}}}", "values": f"1x{steps}"}]
    for place, each in enumerate(volumes):
        total = " ".join(f"{count:.10g}" for count in np.concatenate([[0.0], np.cumsum(each.counts)]))
        name = f'crawlhealth_requests_total{{{labels},site="{place}",route="direct",source="traffic",outcome="ok"}}'
        series.append({"series": name, "values": total})
    alerts = sorted({alert for names in RULES.values() for alert in names})
    expected = [
        {"eval_time": f"{step * STEP}s", "alertname": alert, "exp_alerts": []}
        for step in range(EVERY, steps + 1, EVERY)
        for alert in alerts
    ]
    case = {"interval": f"{STEP}s", "input_series": series, "alert_rule_test": expected}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rules.yml").write_text(yaml.safe_dump(rules()))
        test = {"rule_files": ["rules.yml"], "evaluation_interval": f"{EVERY * STEP}s", "tests": [case]}
        Path(folder, "test.yml").write_text(yaml.dump(test, Dumper=yaml.CSafeDumper, width=10**9))
        done = subprocess.run(
            ["promtool", "test", "rules", f"{folder}/test.yml"], check=False, capture_output=True, text=True
        )
    return _fired(done.stdout + done.stderr, volumes)


def _fired(text: str, volumes: Sequence[Volume]) -> dict[tuple[int, str], Flags]:
    """What promtool complains of. Raises ValueError when it is something else than alerts that fired."""
    if "alertname:" not in text and "SUCCESS" not in text:
        raise ValueError(f"promtool said nothing of alerts: {text[:2000]!r}")
    fired: dict[tuple[int, str], Flags] = {}
    for alert, time, got in re.findall(
        r"alertname:\s*(\w+), time:\s*(\w+),.*?got:(.*?)(?=alertname:\s*\w+, time:|\Z)", text, re.DOTALL
    ):
        step = sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)([ywdhms])", time)) * 60 // STEP
        for site in re.findall(r'site="(\d+)"', got):
            flags = fired.setdefault((int(site), alert), np.zeros(len(volumes[int(site)].counts) + EVERY, np.bool_))
            flags[step : step + EVERY] = True
    return fired


def judged(each: Volume, alerts: Iterable[Flags]) -> Count:
    """What the alerts of a rule came to over one volume."""
    count = Count(losses=len(each.losses), weeks=len(each.counts) / DAY / 7)
    told = list(alerts)
    held = np.any(told, axis=0) if told else np.zeros(len(each.counts), np.bool_)
    excused = np.zeros(len(each.counts) + EVERY, np.bool_)
    for first, behind in each.losses:
        count.found += bool(held[first : behind + SLACK].any())
        count.covered += float(held[first:behind].mean())
        excused[first : behind + DAY] = True
    count.false = sum(not excused[begin] for flags in told for begin, _ in _windows(flags))
    return count


def report(title: str, volumes: Sequence[Volume]) -> dict[str, Count]:
    """Prints the table of some volumes; what each rule came to over all of them."""
    fired = replay(volumes)
    sums = {rule: Count() for rule in RULES}
    columns = "".join(f" | {rule}: found | of its time | false | a week" for rule in RULES)
    print(f"\n| {title}{columns} |\n|{'---|' * (1 + 4 * len(RULES))}")
    for place, each in enumerate(volumes):
        line = []
        for rule, names in RULES.items():
            count = judged(each, [fired[place, name] for name in names if (place, name) in fired])
            sums[rule] += count
            line.append(str(count))
        print(f"| {each.name} | {' | '.join(line)} |")
    print(f"| all | {' | '.join(map(str, sums.values()))} |", flush=True)
    return sums


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    if shutil.which("promtool") is None:
        parser.error("needs promtool")
    real = report("real series", list(read(arguments.folder)))["halved or declining"]
    made = report("made-up series", list(shapes(np.random.default_rng(arguments.seed))))["halved or declining"]
    fine = real.found == real.losses and max(real.false / real.weeks, made.false / made.weeks) <= FALSE_BOUND
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
