"""Replays, against the same judgement step by step with the windows of the running exporter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import timedelta
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from crawlhealth import columns, marks, stats
from crawlhealth.backtest.simulator import Population, Simulation, names
from crawlhealth.bands import DEGRADING, RESISTING, UNKNOWN, States
from crawlhealth.baseline import HOUR, Hours, learn
from crawlhealth.evaluate import Before, Judged, evaluate
from crawlhealth.normals import Table
from crawlhealth.outcome import Source
from crawlhealth.replay import Replay
from crawlhealth.scoresettings import BaselineSettings, ScoreSettings
from crawlhealth.scoring import Scored
from crawlhealth.stretch import Key, Stretch, dense, p95
from crawlhealth.tally import Slot, Tally
from crawlhealth.verdict import Accepted, BandState, Baseline
from crawlhealth.windows import Windows
from samples import DAY, slot

pytestmark = pytest.mark.filterwarnings("error")

SETTINGS = ScoreSettings()
START = 1_767_225_600.0  # 2026-01-01T00:00:00Z
KEYS: Sequence[Key] = (
    ("calm", "direct", Source.TRAFFIC),
    ("mixed", "direct", Source.TRAFFIC),
    ("mixed", "dc-us", Source.TRAFFIC),
    ("rare", "direct", Source.CANARY),
)
LATE: Key = ("calm", "direct", Source.CANARY)


def some(chance: np.random.Generator, key: Key, hour: int, share: float) -> Tally:
    """What comes of a stratum in a share of an hour; `mixed` is blocked for a day and slow for another."""
    site, route, source = key
    volume = {"calm": 300, "mixed": 150, "rare": 12}[site] if source is Source.TRAFFIC or site == "rare" else 6
    total = int(chance.poisson(volume * share))
    bad, slow = 0.05 if route == "direct" else 0.0, 0.4
    if site == "mixed" and 360 <= hour < 384:
        bad = 0.9
    if site == "mixed" and route == "dc-us" and 430 <= hour < 450:
        slow = 2.5
    hard, challenge, error = (int(chance.binomial(total // 2, p)) for p in (bad, bad / 2, 0.02))
    ok = max(0, total - hard - challenge - error)
    buckets, each = np.unique(
        np.searchsorted(stats.BOUNDS, np.exp(chance.normal(np.log(slow), 0.5, ok))), return_counts=True
    )
    return Tally(
        ok=ok, hard_block=hard, challenge=challenge, error=error, extractions_ok=ok // 2, extractions_failed=ok // 9,
        latency=dict(zip(buckets.tolist(), each.tolist(), strict=True)),
    )  # fmt: skip


@cache
def slots(first: int, hours: int, *, seconds: float, late: bool = False, seed: int = 1) -> Sequence[Slot]:
    chance = np.random.default_rng(seed + first)
    found = []
    for key in (*KEYS, LATE) if late else KEYS:
        for step in range(round(hours * HOUR / seconds)):
            at = first * HOUR + step * seconds
            tally = some(chance, key, int(at // HOUR), seconds / HOUR)
            if tally.requests:
                found.append(slot(START + at, tally, seconds=seconds, site=key[0], route=key[1], source=key[2]))
    return found


def stretch(given: Sequence[Slot], first: int, hours: int, *, seconds: float, keys: Sequence[Key] = KEYS) -> Stretch:
    places = {key: place for place, key in enumerate(keys)}
    return Stretch.placed(
        keys,
        np.array([places[one.site, one.route, one.source] for one in given], dtype=np.intp),
        np.array([one.start for one in given]),
        np.array([one.seconds for one in given]),
        columns.of_tallies([one.tally for one in given]),
        start=START + first * HOUR,
        seconds=seconds,
        steps=round(hours * HOUR / seconds),
    )


class StepByStep:
    """The same judgement as the running exporter makes it: windows, then normals, then bands, then resets."""

    def __init__(self, keys: Sequence[Key], settings: ScoreSettings) -> None:
        self.sites = tuple(dict.fromkeys(key[0] for key in keys))
        self.settings, self.accepted = settings, dict[str, Accepted]()
        self.windows = Windows([window.total_seconds() for window in settings.windows], resolution=60.0)
        self.table, self.learnt_at = Table(), -np.inf
        self.baselines: list[Baseline | None] = [None] * len(self.sites)
        nothing = np.full(len(self.sites), np.nan)
        self.before = Before(states=States.of([BandState()] * len(self.sites)), smoothed=nothing, at=nothing)
        self.keys = list(keys)
        self.counts: list[NDArray[np.float64]] = []
        self.slow: list[NDArray[np.float64]] = []
        self.marks: list[NDArray[np.uint8]] = []
        self.mark = np.full(len(self.sites), marks.NONE, dtype=np.uint8)

    def steps(
        self, given: Sequence[Slot], first: int, hours: int, *, seconds: float, keys: Sequence[Key]
    ) -> Iterator[Judged]:
        self.keys = list(keys)
        hourly = stretch(given, first, hours, seconds=seconds, keys=keys)
        fine, slow = dense(hourly), p95(hourly)
        each = round(HOUR / seconds)
        for step in range(hourly.steps):
            begin = hourly.start + step * seconds
            come = [one for one in given if one.start == begin]
            self.windows.add(come)
            yield self.judge(begin + seconds, {one.site for one in come}, seconds)
            if (step + 1) % each == 0:
                within = slice(step + 1 - each, step + 1)
                self.counts.append(fine[:, within].sum(axis=1))
                served = np.where(np.isnan(slow[:, within]), 0.0, fine[:, within, 0])
                logs = (np.log(np.where(served > 0, slow[:, within], 1.0)) * served).sum(axis=1)
                total = served.sum(axis=1)
                self.slow.append(np.where(total > 0, np.exp(logs / np.where(total > 0, total, 1.0)), np.nan))
                self.marks.append(self.mark)
                self.mark = np.full(len(self.sites), marks.NONE, dtype=np.uint8)

    def judge(self, now: float, seen: set[str], step: float) -> Judged:
        self.learn(now)
        panel = self.windows.panel(self.sites, now)
        new = np.array([site in seen for site in self.sites])
        normals = self.table.of(panel, self.baselines)
        judged = evaluate(panel, normals, self.before, new_evidence=new, now=now, settings=self.settings, step=step)
        if len(judged.reset_sites):
            self.windows.reset([self.sites[place] for place in judged.reset_sites], judged.resets, now)
        self.before = Before(states=judged.states, smoothed=judged.smoothed, at=np.full(len(self.sites), now))
        bad = (judged.states.band == DEGRADING) | (judged.states.band == RESISTING)
        self.mark = marks.worse(self.mark, marks.marks_from(bad, judged.score, np.zeros(len(bad), dtype=np.bool_)))
        return judged

    def learn(self, now: float) -> None:
        count = len(self.counts)
        if now - self.learnt_at < self.settings.baseline.renewed(count * HOUR) - 1e-6:
            return
        self.learnt_at = now
        if not count:
            return
        kept = slice(-round(self.settings.baseline.reach.total_seconds() / HOUR) - 1, None)
        rows = sorted(range(len(self.keys)), key=lambda row: self.sites.index(self.keys[row][0]))
        counts, slow = np.zeros((len(rows), count, 12)), np.full((len(rows), count), np.nan)
        for hour, (sums, p95s) in enumerate(zip(self.counts, self.slow, strict=True)):
            counts[: len(sums), hour], slow[: len(sums), hour] = sums, p95s
        past = Hours(
            sites=self.sites,
            keys=[self.keys[row][1:] for row in rows],
            owner=np.array([self.sites.index(self.keys[row][0]) for row in rows]),
            counts=counts[rows][:, kept],
            p95=slow[rows][:, kept],
            marks=np.array(self.marks).T[:, kept],
            end=START + count * HOUR,
        )
        robust = self.settings.method == "robust"
        self.baselines = learn(
            past, self.settings.baseline, now=now, robust=robust, accepted=self.accepted, known=self.baselines
        )

    def accept(self, accepted: Accepted) -> None:
        self.accepted[accepted.site] = accepted
        self.learnt_at = -np.inf
        place = self.sites.index(accepted.site)
        self.before.states.band[place] = UNKNOWN
        self.before.states.clocks[place] = np.nan


def agree(replayed: Judged, stepped: Judged) -> None:
    assert replayed.at == stepped.at
    for name in ("score", "parser_score"):
        np.testing.assert_array_equal(getattr(replayed, name), getattr(stepped, name), err_msg=f"{name} {stepped.at}")
    for field in fields(States):
        mine, its = (getattr(one.states, field.name) for one in (replayed, stepped))
        np.testing.assert_array_equal(mine, its, err_msg=f"{field.name} at {stepped.at}")
    for field in fields(Scored):
        mine, its = (getattr(one.scored, field.name) for one in (replayed, stepped))
        np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-6, err_msg=f"{field.name} at {stepped.at}")
    np.testing.assert_array_equal(replayed.reset_sites, stepped.reset_sites)
    np.testing.assert_array_equal(replayed.resets, stepped.resets)


METHODS = pytest.mark.parametrize(
    "settings",
    [
        pytest.param(SETTINGS, id="robust"),
        pytest.param(ScoreSettings(method="plain"), id="plain"),
        pytest.param(replace(SETTINGS, windows=(timedelta(hours=1),), min_requests=20), id="one window"),
    ],
)


@METHODS
def test_a_replay_is_the_judgement_of_the_running_exporter(settings: ScoreSettings) -> None:
    """Hours, then minutes, then hours with a new stratum; blocks, recoveries and an accepted change within."""
    replayed, stepped = Replay(KEYS, settings, seconds=HOUR), StepByStep(KEYS, settings)
    bands = set()
    for first, hours, seconds, keys in (
        (0, 100, HOUR, KEYS), (100, 258, HOUR, KEYS), (358, 4, 60.0, KEYS), (362, 40, HOUR, (*KEYS, LATE)),
        (402, 60, HOUR, (*KEYS, LATE)),
    ):  # fmt: skip
        given = slots(first, hours, seconds=seconds, late=LATE in keys)
        if first == 402:
            change = Accepted(site="mixed", at=START + first * HOUR, since=START + 380 * HOUR)
            replayed.accept(change)
            stepped.accept(change)
        mine = replayed.steps(stretch(given, first, hours, seconds=seconds, keys=keys))
        its = stepped.steps(given, first, hours, seconds=seconds, keys=keys)
        for one, other in zip(mine, its, strict=True):
            agree(one, other)
            bands |= set(one.states.band.tolist())
    assert bands == {0, 1, 2, 3} if settings is SETTINGS else len(bands) > 1
    assert [one is None for one in replayed.baselines] == [one is None for one in stepped.baselines]


def test_how_a_past_is_cut_into_stretches_changes_nothing() -> None:
    given = slots(0, 400, seconds=HOUR)
    whole = [
        one.score.tolist() for one in Replay(KEYS, SETTINGS, seconds=HOUR).steps(stretch(given, 0, 400, seconds=HOUR))
    ]
    cut = Replay(KEYS, SETTINGS, seconds=HOUR)
    pieces = []
    for first, hours in ((0, 1), (1, 250), (251, 7), (258, 142)):
        some_ = [one for one in given if first <= (one.start - START) // HOUR < first + hours]
        pieces += [one.score.tolist() for one in cut.steps(stretch(some_, first, hours, seconds=HOUR))]
    np.testing.assert_array_equal(pieces, whole)


def test_sites_are_each_judged_as_alone() -> None:
    given = slots(0, 400, seconds=HOUR)
    together = [one.score for one in Replay(KEYS, SETTINGS, seconds=HOUR).steps(stretch(given, 0, 400, seconds=HOUR))]
    for place, site in enumerate(("calm", "mixed", "rare")):
        keys = [key for key in KEYS if key[0] == site]
        own = stretch([one for one in given if one.site == site], 0, 400, seconds=HOUR, keys=keys)
        alone = [one.score for one in Replay(keys, SETTINGS, seconds=HOUR).steps(own)]
        np.testing.assert_array_equal(np.array(alone)[:, 0], np.array(together)[:, place])


def test_a_replay_of_nothing_says_nothing() -> None:
    empty = stretch([], 0, 48, seconds=HOUR)
    judged = list(Replay(KEYS, SETTINGS, seconds=HOUR).steps(empty))
    assert len(judged) == 48
    assert all(np.isnan(one.score).all() and (one.states.band == UNKNOWN).all() for one in judged)


def test_settings_of_the_baseline_are_used() -> None:
    short = replace(SETTINGS, baseline=BaselineSettings(length=timedelta(days=3), exclude_last=timedelta(hours=2)))
    given = slots(0, 120, seconds=HOUR)
    replayed = Replay(KEYS, short, seconds=HOUR)
    for _ in replayed.steps(stretch(given, 0, 120, seconds=HOUR)):
        pass
    found = replayed.baselines[0]
    assert found is not None
    assert found.hours == 72
    assert found.newest <= START + 118 * HOUR
    assert found.newest > START + 3 * DAY


def test_a_stretch_begins_where_the_one_before_ended() -> None:
    simulation = Simulation(Population.mixed(9), seed=1, before=0, after=4)
    replay = Replay(names(9), ScoreSettings(), seconds=HOUR)
    list(replay.steps(simulation.hourly(0, 2)))
    with pytest.raises(ValueError, match="begins at 10800, the one before ended at 7200"):
        list(replay.steps(simulation.hourly(3, 4)))
