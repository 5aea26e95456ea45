"""Labelled real series through the judgement as shipped: what is told of rises, and how often for nothing.

    python bench/series.py DIR [--requests 200] [--launches 2000] [--sigma 0.6]

DIR holds an `index.tsv` (tab separated: file, kind, interval_s, ...) and series as `timestamp,value,label`, gzipped;
label 1 marks what people saw as unusual. Each becomes a site of its own that is replayed with the default settings. Its
values hold over their whole intervals, which are fed in steps of five minutes at most.

- `latency`: so many requests an hour, all served, lognormal with this sigma, the value (milliseconds) being their p95:
  exactly so, for it is a statistic already and needs no second noise. An hour of 0 had no calls: nothing is fed.
- `error_rate`: a share of hard blocks among so many requests (launches) an hour; what exceeds 1 is 1. A series of whole
  numbers is one of counts, and is left out by name.

A window is a rise if its highest value lies further above the unlabelled median of the week before than its lowest lies
below. It is found if an alert is on at any time of it or in the `SLACK` hours after; one that began before there was a
baseline is not counted. Alerts less than `JOINED` hours apart are one episode; it is false if no labelled window, rise
or fall, comes within `SLACK` hours of it. Exits 1 when the latency alert breaks a bound.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crawlhealth import score, stats
from crawlhealth.bands import DEGRADING, RESISTING
from crawlhealth.config import DIRECT
from crawlhealth.outcome import Source
from crawlhealth.replay import Replay
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.stretch import Stretch

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

RECALL_BOUND, FALSE_BOUND = 0.90, 0.5
ALERT_SHARE = 0.2
"""What latency must cost of its weight: as much as the band `degrading` takes of 100 points."""
ALERT_HOURS = 0.25
SLACK = 3.0
JOINED = 6.0
"""As long as a band that began stays at least."""
HOUR, WEEK = 3600.0, 168.0
STEP = 300.0
Z95 = 1.6449
LATENCY, HARD_BLOCK, REFUSED = 4, 0, 3
"""Places in the arrays of early warnings."""
LATENCY_POINTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A series of values, one for each interval of so many hours, NaN where none is known, with their labels."""

    name: str
    kind: str
    hours: float
    values: Array
    labels: Flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """A series and what was told of it: alerts by name, by interval, and whether there was a baseline."""

    series: Labelled
    known: Flags
    alerts: dict[str, Flags]


@dataclass(slots=True)
class Counted:
    """What an alert came to over some series."""

    found: int = 0
    missed: int = 0
    uncounted: int = 0
    false: int = 0
    weeks: float = 0.0
    outside: float = 0.0

    @property
    def recall(self) -> float:
        return self.found / max(1, self.found + self.missed)

    @property
    def rate(self) -> float:
        return self.false / max(1.0, self.weeks)


def read(folder: Path) -> list[Labelled]:
    """All series of latencies and error rates."""
    with (folder / "index.tsv").open() as index:
        rows = [row for row in csv.DictReader(index, delimiter="\t") if row["kind"] in ("latency", "error_rate")]
    return [_series(folder / row["file"], row["kind"], float(row["interval_s"])) for row in rows]


def _series(path: Path, kind: str, seconds: float) -> Labelled:
    with gzip.open(path, "rt") as lines:
        rows = list(csv.DictReader(lines))
    times = np.array([np.datetime64(row["timestamp"].removesuffix("Z"), "s") for row in rows]).astype(np.float64)
    places = np.rint((times - times[0]) / seconds).astype(np.intp)
    values = np.full(places[-1] + 1, np.nan)
    labels = np.zeros(len(values), dtype=np.bool_)
    values[places] = [float(row["value"]) for row in rows]
    labels[places] = [row["label"] == "1" for row in rows]
    name = path.name.split(".")[0].split("__")[-1]
    return Labelled(name=name, kind=kind, hours=seconds / HOUR, values=values, labels=labels)


def is_share(series: Labelled) -> bool:
    known = series.values[~np.isnan(series.values)]
    return bool(np.any(known != np.rint(known)))


def windows(series: Labelled) -> list[tuple[int, int, bool]]:
    """The labelled windows: first interval, the one behind, and whether it is a rise."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], series.labels, [0]])))
    week = round(WEEK / series.hours)
    found = []
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        before = slice(max(0, begin - week), begin)
        usual = series.values[before][~series.labels[before]]
        if series.kind == "latency":
            usual = usual[usual > 0]
        middle, inside = np.nanmedian(usual), series.values[begin:end]
        found.append((begin, end, bool(np.nanmax(inside) - middle >= middle - np.nanmin(inside))))
    return found


def parts(series: Labelled) -> int:
    """How many steps an interval is fed in."""
    return max(1, round(series.hours * HOUR / STEP))


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """How values become what the exporter would have counted."""

    requests: float
    launches: float
    sigma: float

    def stretch(self, together: Sequence[Labelled]) -> Stretch:
        """Series of one kind and interval as the stretch of as many sites."""
        each = parts(together[0])
        seconds = together[0].hours * HOUR / each
        fed = self._timed if together[0].kind == "latency" else self._refused
        known = {
            (interval * each + part, row): fed(value, seconds / HOUR)
            for row, one in enumerate(together)
            for interval, value in enumerate(one.values.tolist())
            if value > 0 or (value == 0 and one.kind != "latency")
            for part in range(each)
        }
        entries = sorted(known)
        return Stretch(
            keys=[(one.name, DIRECT, Source.TRAFFIC) for one in together],
            start=0.0,
            seconds=seconds,
            steps=max(len(one.values) for one in together) * each,
            step=np.array([step for step, _ in entries], dtype=np.intp),
            row=np.array([row for _, row in entries], dtype=np.intp),
            values=np.array([known[entry][0] for entry in entries]),
            timed=np.cumsum([0, *[len(known[entry][1]) for entry in entries]]),
            bucket=np.concatenate([known[entry][1] for entry in entries]).astype(np.uint16),
            count=np.concatenate([known[entry][2] for entry in entries]).astype(np.float32),
        )

    def _timed(self, milliseconds: float, hours: float) -> tuple[Array, NDArray[np.intp], Array]:
        buckets, shares = _lognormal(milliseconds / 1000, self.sigma)
        values = np.zeros(12)
        values[0] = self.requests * hours
        return values, buckets, shares * values[0]

    def _refused(self, share: float, hours: float) -> tuple[Array, NDArray[np.intp], Array]:
        values = np.zeros(12)
        values[1] = self.launches * hours * min(share, 1.0)
        values[0] = self.launches * hours - values[1]
        return values, np.zeros(0, dtype=np.intp), np.zeros(0)


@lru_cache(maxsize=100_000)
def _lognormal(p95: float, sigma: float) -> tuple[NDArray[np.intp], Array]:
    """The fine buckets of a lognormal distribution with this p95 in seconds, and their shares."""
    if sigma <= 0:
        return np.array([stats.bucket(p95)]), np.ones(1)
    middle = math.log(p95) - Z95 * sigma
    upto = [0.5 * math.erfc((middle - math.log(bound)) / sigma / math.sqrt(2)) for bound in stats.BOUNDS]
    shares = np.diff([0.0, *upto, 1.0])
    some = np.flatnonzero(shares > 1e-5)
    return some, shares[some]


def live(together: Sequence[Labelled], feed: Feed, settings: ScoreSettings) -> list[Lived]:
    """What would have been told of series of one kind and interval."""
    stretch = feed.stretch(together)
    replay = Replay(stretch.keys, settings, seconds=stretch.seconds)
    points, bad, drift, known = [], [], [], []
    for judged in replay.steps(stretch):
        points.append(judged.scored.points[:, LATENCY_POINTS])
        bad.append((judged.states.band == DEGRADING) | (judged.states.band == RESISTING))
        drift.append(np.nan_to_num(judged.scored.drift))
        known.append([baseline is not None for baseline in replay.baselines])
    told = [np.array(each) for each in (points, bad, drift, known)]
    return [_lived(one, *[each[:, row] for each in told], settings=settings) for row, one in enumerate(together)]


def _lived(
    series: Labelled, points: Array, bad: Flags, drift: Array, known: Flags, *, settings: ScoreSettings
) -> Lived:
    """The same of one series, by its intervals."""
    each, count = parts(series), len(series.values)

    def on(flags: Flags) -> Flags:
        return np.asarray(flags.reshape(-1, each).any(axis=1))[:count]

    dear = np.asarray(points >= ALERT_SHARE * settings.weights.latency)
    signals = [LATENCY] if series.kind == "latency" else [HARD_BLOCK, REFUSED]
    hour = round(ALERT_HOURS / series.hours * each)
    alerts = {
        "latency alert": on(held(dear, hour)),
        "the same at once": on(dear),
        "band": on(bad),
        "early warning": on(drift[:, signals].max(axis=1) >= settings.drift_threshold),
        **others(series, settings),
    }
    return Lived(series=series, known=np.asarray(known.reshape(-1, each).all(axis=1))[:count], alerts=alerts)


def held(flags: Flags, steps: int) -> Flags:
    """Where flags have held for so many steps before."""
    last = np.maximum.accumulate(np.where(flags, -1, np.arange(len(flags))))
    return np.asarray(flags & (np.arange(len(flags)) - last > steps))


def others(series: Labelled, settings: ScoreSettings) -> dict[str, Flags]:
    """The plain formula on values against their mean of 14 days without the last, and 3 sigma over 14 days."""
    values = np.where(series.values > 0, series.values, np.nan) if series.kind == "latency" else series.values
    hours = round(1 / series.hours)
    plain, sigma = np.zeros(len(values), dtype=np.bool_), np.zeros(len(values), dtype=np.bool_)
    for place, value in enumerate(values.tolist()):
        past = values[max(0, place - 14 * 24 * hours) : place]
        usual = values[max(0, place - 15 * 24 * hours) : max(0, place - 24 * hours)]
        past, usual = past[~np.isnan(past)], usual[~np.isnan(usual)]
        if len(past) >= settings.baseline.min_blocks:
            sigma[place] = value > past.mean() + 3 * past.std(ddof=1)
        if len(usual) >= settings.baseline.min_blocks:
            plain[place] = _plain(series.kind, value, float(usual.mean()), settings)
    hour = max(1, hours)
    return {
        "plain": plain,
        "plain, for an hour": held(plain, hour),
        "3 sigma": sigma,
        "3 sigma, for an hour": held(sigma, hour),
    }


def _plain(kind: str, value: float, usual: float, settings: ScoreSettings) -> bool:
    """Whether the plain formula would have told: as the latency alert does, or by the band `degrading`."""
    if kind == "latency":
        return score.latency_badness(value / 1000, usual / 1000) >= ALERT_SHARE
    return 100 - settings.weights.hard_block * score.share_badness(min(value, 1.0), usual) < settings.bands.degrading


def episodes(on: Flags, joined: float) -> list[tuple[int, int]]:
    """The stretches in which an alert is on, from the first interval to the one behind, joined when near."""
    found: list[tuple[int, int]] = []
    for place in np.flatnonzero(on).tolist():
        if found and place - found[-1][1] < joined:
            found[-1] = (found[-1][0], place + 1)
        else:
            found.append((place, place + 1))
    return found


def count(lives: Sequence[Lived], name: str) -> Counted:
    """What an alert came to."""
    found = Counted()
    for one in lives:
        hours, on = one.series.hours, one.alerts[name]
        slack = round(SLACK / hours)
        marked = windows(one.series)
        for begin, end, rise in marked:
            told = bool(on[begin : end + slack].any())
            counted = rise and bool(one.known[begin])
            found.found += counted and told
            found.missed += counted and not told
            found.uncounted += rise and not counted
        near = np.zeros(len(on), dtype=np.bool_)
        for begin, end, _ in marked:
            near[max(0, begin - slack) : end + slack] = True
        found.false += sum(not near[first:behind].any() for first, behind in episodes(on, JOINED / hours))
        found.weeks += one.known.sum() * hours / WEEK
        found.outside += float((on & ~near).sum()) * hours / WEEK
    return found


def table(title: str, lives: Sequence[Lived], names: Sequence[str]) -> dict[str, Counted]:
    """Print what the alerts came to."""
    counts = {name: count(lives, name) for name in names}
    first = next(iter(counts.values()))
    rises = first.found + first.missed
    print(f"\n{title}: {len(lives)} series, {first.weeks:.1f} series-weeks, {rises} rises", end="")
    print(f" ({first.uncounted} more began before there was a baseline)")
    print(f"{'':24}{'found':>8}{'recall':>8}{'false a week':>14}{'on elsewhere':>14}")
    for name, one in counts.items():
        print(f"{name:24}{one.found:8}{one.recall:8.2f}{one.rate:14.2f}{one.outside / one.weeks:14.1%}")
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--requests", type=float, default=200)
    parser.add_argument("--launches", type=float, default=2000)
    parser.add_argument("--sigma", type=float, default=0.6)
    given = parser.parse_args()
    settings = ScoreSettings()
    feed = Feed(requests=given.requests, launches=given.launches, sigma=given.sigma)
    groups: dict[tuple[str, float], list[Labelled]] = {}
    for one in read(given.folder):
        if one.kind == "latency" or is_share(one):
            groups.setdefault((one.kind, one.hours), []).append(one)
        else:
            print(f"left out as counts: {one.name}")
    both = ("early warning", "plain", "plain, for an hour", "3 sigma", "3 sigma, for an hour")
    good = True
    for (kind, hours), together in sorted(groups.items(), reverse=True):
        own = ("latency alert", "the same at once") if kind == "latency" else ("band",)
        title = f"{kind}, every {hours:g} h ({', '.join(one.name for one in together)})"
        counts = table(title, live(together, feed, settings), (*own, *both))
        alert = counts.get("latency alert")
        good = good and (alert is None or (alert.recall >= RECALL_BOUND and alert.rate <= FALSE_BOUND))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
