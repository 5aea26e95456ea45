"""A replay looks ahead; here the same is reckoned step by step, with the windows that the exporter itself keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from crawlhealth.backtest.simulator import HOUR
from crawlhealth.bands import DEGRADING, NORMAL, RESISTING, UNKNOWN, States
from crawlhealth.baseline import learn
from crawlhealth.evaluate import Before, Judged, evaluate
from crawlhealth.normals import Table
from crawlhealth.outcome import Source
from crawlhealth.recenthours import RecentHours
from crawlhealth.replay import Replay
from crawlhealth.scoresettings import BaselineSettings, ScoreSettings
from crawlhealth.stretch import Key, Stretch, p95
from crawlhealth.verdict import Accepted, BandState, Baseline
from crawlhealth.windows import Windows

DAY = 24
SITES = 11
KEYS: list[Key] = [
    (f"site-{number % SITES}", f"route-{number // SITES}", Source.CANARY if number % 5 == 0 else Source.TRAFFIC)
    for number in range(25)
]
VOLUME = np.array([20, 80, 300, 1500])[np.arange(len(KEYS)) % 4]
"""Requests an hour."""
SETTINGS = ScoreSettings(baseline=BaselineSettings(length=timedelta(days=5), exclude_last=timedelta(hours=12)))


def past(steps: int, *, seconds: float = HOUR, start: float = 0.0, seed: int = 1, keys: int = len(KEYS)) -> Stretch:
    """Several routes a site, latencies, quiet times, and a bad day now and then."""
    draw = np.random.default_rng(seed)
    bad = draw.random((SITES, int(steps * seconds / HOUR) // DAY + 1)) < 0.15
    entries, timed, bucket, count = [], [0], [], []
    for step in range(steps):
        day = int(step * seconds / HOUR) // DAY
        for row in range(keys):
            requests = draw.poisson(VOLUME[row] * seconds / HOUR) if draw.random() < 0.97 else 0
            if not requests:
                continue
            refused = bad[row % SITES, day]
            outcomes = draw.multinomial(
                requests, [0.2, 0.7, 0.05, 0.02, 0.03] if refused else [0.9, 0.02, 0.05, 0.02, 0.01]
            )
            values = np.zeros(12)
            values[:5], values[5] = outcomes, outcomes[0]
            entries.append((step, row, values))
            slow = 120 if refused else 100
            buckets, counts = np.unique(draw.integers(slow - 12, slow + 12, outcomes[0]), return_counts=True)
            timed.append(timed[-1] + len(buckets))
            bucket.append(buckets)
            count.append(counts)
    return Stretch(
        keys=KEYS[:keys], start=start, seconds=seconds, steps=steps,
        step=np.array([step for step, _, _ in entries]), row=np.array([row for _, row, _ in entries]),
        values=np.array([values for _, _, values in entries]), timed=np.array(timed),
        bucket=np.concatenate(bucket).astype(np.uint16), count=np.concatenate(count).astype(np.float32),
    )  # fmt: skip


class StepByStep:
    """The same as Replay, one evaluation after another."""

    def __init__(self, sites: list[str], settings: ScoreSettings) -> None:
        self.sites, self.settings = sites, settings
        self.windows = Windows([window.total_seconds() for window in settings.windows], resolution=60.0)
        self.table = Table()
        self.places = {site: place for place, site in enumerate(sites)}
        self.baselines: list[Baseline | None] = [None] * len(sites)
        none = np.full(len(sites), np.nan)
        self.before = Before(states=States.of([BandState()] * len(sites)), smoothed=none, at=none)
        self.hours = RecentHours(round(settings.baseline.reach.total_seconds() / HOUR) + 1, self.places)
        self.learnt_at = -np.inf
        self.accepted: dict[str, Accepted] = {}

    def steps(self, stretch: Stretch) -> Iterator[Judged]:
        rows = self.windows.rows_for(stretch.keys)
        self.hours.enter(stretch.keys)
        slow = p95(stretch)
        for step in range(stretch.steps):
            begin, end = np.searchsorted(stretch.step, [step, step + 1])
            some, values = stretch.row[begin:end], stretch.values[begin:end]
            start = stretch.start + step * stretch.seconds
            first, last = stretch.timed[begin], stretch.timed[end]
            owner = np.repeat(np.arange(end - begin), np.diff(stretch.timed[begin : end + 1]))
            latency = owner, stretch.bucket[first:last].astype(np.intp), stretch.count[first:last].astype(np.float64)
            self.windows.add_dense(rows[some], start, stretch.seconds, values, latency)
            self.hours.add(start, some, values, slow[some, step])
            new = np.zeros(len(self.sites), dtype=np.bool_)
            new[[self.places[stretch.keys[row][0]] for row in some]] = True
            yield self.judge(start + stretch.seconds, new, stretch.seconds)
            self.hours.close(start + stretch.seconds)

    def judge(self, now: float, new: NDArray[np.bool_], step: float) -> Judged:
        if now - self.learnt_at >= self.settings.baseline.renewed(self.hours.count * HOUR) - 1e-6:
            self.learnt_at = now
            hours = self.hours.told(self.sites)
            if hours is not None:
                self.baselines = learn(
                    hours, self.settings.baseline, now=now, robust=self.settings.method == "robust",
                    accepted=self.accepted, known=self.baselines,
                )  # fmt: skip
        panel = self.windows.panel(self.sites, now)
        normals = self.table.of(panel, self.baselines)
        judged = evaluate(panel, normals, self.before, new_evidence=new, now=now, settings=self.settings, step=step)
        self.windows.reset([self.sites[place] for place in judged.reset_sites], judged.resets, now)
        self.before = Before(states=judged.states, smoothed=judged.smoothed, at=np.full(len(self.sites), now))
        self.hours.mark(Replay.marks(judged))
        return judged

    def accept(self, accepted: Accepted) -> None:
        self.accepted[accepted.site] = accepted
        self.learnt_at = -np.inf
        self.before.states.band[self.places[accepted.site]] = UNKNOWN
        self.before.states.clocks[self.places[accepted.site]] = np.nan


def told(judged: Judged) -> dict[str, NDArray[np.float64]]:
    """All that is said, but what is read from histograms, in copies: bands go on from these arrays."""
    scored, states = judged.scored, judged.states
    return {
        "band": states.band.astype(np.float64), "since": states.since.copy(), "clocks": states.clocks.copy(),
        "shown": states.shown.copy(), "score": judged.smoothed.copy(), "recovery": scored.recovery.copy(),
        "points": scored.points[:, :3].copy(), "now": scored.now[:, :4].copy(), "normal": scored.normal.copy(),
        "lower": scored.lower.copy(), "drift": scored.drift[:, :4].copy(), "parser": judged.parser_score.copy(),
        "requests": scored.requests.copy(),
    }  # fmt: skip


CASES = {
    "hours": ([past(240), past(120, start=240 * HOUR, seed=2)], SETTINGS),
    "hours, plain": ([past(240)], replace(SETTINGS, method="plain", smoothing=timedelta(hours=3))),
    "minutes after hours": ([past(168), past(400, seconds=60.0, start=168 * HOUR, seed=3)], SETTINGS),
    "strata that come later": ([past(168, keys=8), past(168, start=168 * HOUR, seed=4)], SETTINGS),
}


@pytest.mark.parametrize(("stretches", "settings"), CASES.values(), ids=CASES.keys())
def test_looking_ahead_says_what_is_said_step_by_step(stretches: list[Stretch], settings: ScoreSettings) -> None:
    sites = list(dict.fromkeys(key[0] for key in KEYS))
    ahead, steps = Replay(stretches[0].keys, settings, seconds=HOUR, sites=sites), StepByStep(sites, settings)
    seen: set[int] = set()
    number = 0
    for stretch in stretches:
        for one, other in zip(ahead.steps(stretch), steps.steps(stretch), strict=True):
            number += 1
            mine, theirs = told(one), told(other)
            for name, value in mine.items():
                np.testing.assert_allclose(value, theirs[name], atol=1e-6, err_msg=f"{name} after step {number}")
            seen |= set(one.states.band.tolist())
            if number % 97 == 0:  # people accept in the middle of what was looked at ahead
                accepted = Accepted(site=sites[number % SITES], at=one.at, since=one.at - DAY * HOUR)
                ahead.accept(accepted)
                steps.accept(accepted)
    assert seen == {NORMAL, DEGRADING, RESISTING, UNKNOWN}
    assert sum(one is not None for one in ahead.baselines) == SITES


def test_nothing_has_to_come_at_all() -> None:
    replay = Replay((), SETTINGS, seconds=HOUR, sites=("books",))
    nothing = np.zeros(0, dtype=np.intp)
    stretch = Stretch(
        keys=(), start=0.0, seconds=HOUR, steps=50, step=nothing, row=nothing, values=np.zeros((0, 12)),
        timed=np.zeros(1, dtype=np.intp), bucket=np.zeros(0, dtype=np.uint16), count=np.zeros(0, dtype=np.float32),
    )  # fmt: skip
    assert [judged.states.band.tolist() for judged in replay.steps(stretch)] == [[UNKNOWN]] * 50
