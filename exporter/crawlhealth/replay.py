"""Replay: the past of many sites through the same evaluation, step by step. Pure.

It keeps what the running exporter keeps elsewhere: windows, the last hours with their marks, baselines and bands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth import marks as hours_judged
from crawlhealth.bands import DEGRADING, RESISTING, UNKNOWN, States
from crawlhealth.baseline import HOUR, Hours, learn
from crawlhealth.config import ScoreSettings
from crawlhealth.evaluate import Before, Judged, evaluate
from crawlhealth.normals import Table
from crawlhealth.outcome import Source
from crawlhealth.stretch import Stretch, p95
from crawlhealth.verdict import Accepted, BandState, Baseline
from crawlhealth.windows import Windows

Array = NDArray[np.float64]
COLUMNS: Final = 12
"""Columns of a tally."""


class Replay:
    """The judgement of some sites over stretches of their past, one after another."""

    def __init__(
        self,
        keys: Sequence[tuple[str, str, Source]],
        settings: ScoreSettings,
        *,
        seconds: float,
        accepted: Mapping[str, Accepted] | None = None,
    ) -> None:
        self.sites = tuple(dict.fromkeys(site for site, _, _ in keys))
        self.settings = settings
        self.accepted = dict(accepted or {})
        self._windows = Windows([window.total_seconds() for window in settings.windows], resolution=60.0)
        self._table = Table()
        self._places = {site: place for place, site in enumerate(self.sites)}
        self.baselines: list[Baseline | None] = [None] * len(self.sites)
        count = len(self.sites)
        self._before = Before(
            states=States.of([BandState()] * count), smoothed=np.full(count, np.nan), at=np.full(count, np.nan)
        )
        self._hours = _Ring(round(settings.baseline.reach.total_seconds() / HOUR) + 1, self._places)
        self._hours.enter(keys)
        self._learnt_at = -np.inf

    def steps(self, stretch: Stretch) -> Iterable[Judged]:
        """The judgement after each step of a stretch, whose keys begin with those of the one before."""
        rows = self._windows.rows_for(stretch.keys)
        self._hours.enter(stretch.keys)
        site_of = np.array([self._places[key[0]] for key in stretch.keys], dtype=np.intp)
        slow = p95(stretch) if len(stretch.bucket) else None
        begins = np.searchsorted(stretch.step, np.arange(stretch.steps + 1))
        for step in range(stretch.steps):
            begin, end = begins[step], begins[step + 1]
            start = stretch.start + step * stretch.seconds
            some = stretch.row[begin:end]
            values = stretch.values[begin:end]
            if end > begin:
                first, last = stretch.timed[begin], stretch.timed[end]
                lengths = np.diff(stretch.timed[begin : end + 1])
                latency = (
                    np.repeat(np.arange(end - begin), lengths),
                    stretch.bucket[first:last].astype(np.intp),
                    stretch.count[first:last].astype(np.float64),
                )
                self._windows.add_dense(rows[some], start, stretch.seconds, values, latency if last > first else None)
            self._hours.add(start, some, values, None if slow is None else slow[some, step])
            new = np.zeros(len(self.sites), dtype=np.bool_)
            new[site_of[some]] = True
            yield self._judge(start + stretch.seconds, new, stretch.seconds)
            self._hours.close(start + stretch.seconds)

    def _judge(self, now: float, new: NDArray[np.bool_], step: float) -> Judged:
        self._learn(now)
        panel = self._windows.panel(self.sites, now)
        normals = self._table.of(panel, self.baselines)
        judged = evaluate(panel, normals, self._before, new_evidence=new, now=now, settings=self.settings, step=step)
        if len(judged.reset_sites):
            self._windows.reset([self.sites[place] for place in judged.reset_sites.tolist()], judged.resets, now)
        self._before = Before(states=judged.states, smoothed=judged.smoothed, at=np.full(len(self.sites), now))
        self._hours.mark(self.marks(judged))
        return judged

    def _learn(self, now: float) -> None:
        """Learn the baselines again when it is time to: more often while they are new."""
        if now - self._learnt_at < self.settings.baseline.renewed(self._hours.count * HOUR) - 1e-6:
            return
        self._learnt_at = now
        hours = self._hours.told(self.sites)
        if hours is not None:
            self.baselines = learn(
                hours,
                self.settings.baseline,
                now=now,
                robust=self.settings.method == "robust",
                accepted=self.accepted,
                known=self.baselines,
            )

    @staticmethod
    def marks(judged: Judged) -> NDArray[np.uint8]:
        """How the sites were judged, as the marks of their hour."""
        bad = (judged.states.band == DEGRADING) | (judged.states.band == RESISTING)
        return hours_judged.marks_from(bad, judged.score, np.zeros(len(bad), dtype=np.bool_))

    def accept(self, accepted: Accepted) -> None:
        """Let a person have accepted a new normal: it is learnt at the next step, and the band begins anew."""
        self.accepted[accepted.site] = accepted
        self._learnt_at = -np.inf
        place = self._places[accepted.site]
        self._before.states.band[place] = UNKNOWN
        self._before.states.clocks[place] = np.nan


class _Ring:
    """The last hours of all strata, with their marks; the hour that runs is apart from them."""

    def __init__(self, length: int, places: Mapping[str, int]) -> None:
        self._length = length
        self._places = places
        self._keys: list[tuple[str, str, Source]] = []
        self._counts = np.zeros((0, length, COLUMNS))
        self._p95 = np.full((0, length), np.nan)
        self._marks = np.full((len(places), length), hours_judged.NONE, dtype=np.uint8)
        self._hour: float | None = None
        self.count = 0
        self._running = np.zeros((0, COLUMNS))
        self._slow = np.zeros((0, 2))
        self._mark = np.full(len(places), hours_judged.NONE, dtype=np.uint8)

    def __len__(self) -> int:
        return self._length

    def enter(self, keys: Sequence[tuple[str, str, Source]]) -> None:
        """Know strata; those known before come first among them."""
        more = len(keys) - len(self._keys)
        if more > 0:
            self._keys.extend(keys[len(self._keys) :])
            self._counts = np.concatenate([self._counts, np.zeros((more, self._length, COLUMNS))])
            self._p95 = np.concatenate([self._p95, np.full((more, self._length), np.nan)])
            self._running = np.concatenate([self._running, np.zeros((more, COLUMNS))])
            self._slow = np.concatenate([self._slow, np.zeros((more, 2))])

    def add(self, start: float, rows: NDArray[np.intp], values: Array, slow: Array | None) -> None:
        """Add what came of some strata in a step."""
        if self._hour is None:
            self._hour = start // HOUR * HOUR
        self._running[rows] += values
        if slow is not None:
            timed = ~np.isnan(slow)
            served = values[timed, 0]
            self._slow[rows[timed], 0] += np.log(slow[timed]) * served
            self._slow[rows[timed], 1] += served

    def mark(self, marks: NDArray[np.uint8]) -> None:
        """Note how the sites were judged in the hour that runs."""
        self._mark = hours_judged.worse(self._mark, marks)

    def close(self, now: float) -> None:
        """End the hour when it is over."""
        if self._hour is None or now < self._hour + HOUR:
            return
        place = self.count % self._length
        self._counts[:, place] = self._running
        served = self._slow[:, 1]
        self._p95[:, place] = np.where(served > 0, np.exp(self._slow[:, 0] / np.where(served > 0, served, 1.0)), np.nan)
        self._marks[:, place] = self._mark
        self._running[:] = 0.0
        self._slow[:] = 0.0
        self._mark[:] = hours_judged.NONE
        self.count += 1
        self._hour += HOUR

    def told(self, sites: Sequence[str]) -> Hours | None:
        """The hours, oldest first; None before the first."""
        held = min(self.count, self._length)
        if self._hour is None or not held:
            return None
        order = np.arange(self.count - held, self.count) % self._length
        rows = np.argsort([self._places[key[0]] for key in self._keys], kind="stable")
        return Hours(
            sites=sites,
            keys=[self._keys[row][1:] for row in rows.tolist()],
            owner=np.array([self._places[self._keys[row][0]] for row in rows.tolist()], dtype=np.intp),
            counts=self._counts[rows][:, order],
            p95=self._p95[rows][:, order],
            marks=self._marks[:, order],
            end=self._hour,
        )
