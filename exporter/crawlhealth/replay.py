"""Replay: the past of many sites through the same evaluation, step by step. Pure.

It keeps what the running exporter keeps elsewhere: windows, the last hours with their marks, baselines and bands. What
follows from windows and normals alone is looked at for many steps together, up to the next time that baselines are
learnt; the bands follow one step after another. Where a band changes the windows of its site, what was seen of it ahead
is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth import marks as hours_judged
from crawlhealth.ahead import Ahead, Rows
from crawlhealth.bands import DEGRADING, RESISTING, UNKNOWN, States
from crawlhealth.baseline import HOUR, learn
from crawlhealth.evaluate import Before, Judged, follow
from crawlhealth.normals import Table
from crawlhealth.outcome import Source
from crawlhealth.recenthours import COLUMNS, RecentHours
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.stretch import Stretch, p95
from crawlhealth.sweep import Came, Held
from crawlhealth.verdict import Accepted, BandState, Baseline

Array = NDArray[np.float64]

AT_ONCE: Final = 4096
"""About how many strata times steps are looked at together."""
ROUNDING: Final = 1e-6
"""Seconds."""


class Replay:
    """The judgement of some sites over stretches of their past, one after another.

    `keys` are the first strata; those of `sites` may come later.
    """

    def __init__(
        self,
        keys: Sequence[tuple[str, str, Source]],
        settings: ScoreSettings,
        *,
        seconds: float,
        accepted: Mapping[str, Accepted] | None = None,
        sites: Iterable[str] = (),
    ) -> None:
        self.sites = tuple(dict.fromkeys((*sites, *(site for site, _, _ in keys))))
        self.settings = settings
        self.accepted = dict(accepted or {})
        self._half_lives = np.array(sorted(window.total_seconds() for window in settings.windows))
        self._table = Table()
        self._places = {site: place for place, site in enumerate(self.sites)}
        self.baselines: list[Baseline | None] = [None] * len(self.sites)
        count = len(self.sites)
        self._before = Before(
            states=States.of([BandState()] * count), smoothed=np.full(count, np.nan), at=np.full(count, np.nan)
        )
        self._hours = RecentHours(round(settings.baseline.reach.total_seconds() / HOUR) + 1, self._places)
        self._rows = Rows.of((), self._places, self._half_lives)
        self._held = Held.empty(0, len(self._half_lives))
        self._span: tuple[int, int] | None = None
        self._enter(keys)
        self._learnt_at = -np.inf
        self._anew = False
        self._ended: float | None = None

    def steps(self, stretch: Stretch) -> Iterator[Judged]:
        """The judgement after each step of a stretch, whose keys begin with those of the one before.

        It begins where the one before ended (ValueError): of a gap nobody knows whether it was silent.
        """
        if self._ended is not None and abs(stretch.start - self._ended) > ROUNDING:
            raise ValueError(f"the stretch begins at {stretch.start:.0f}, the one before ended at {self._ended:.0f}")
        self._ended = stretch.start + stretch.steps * stretch.seconds
        self._enter(stretch.keys)
        self._seconds = stretch.seconds
        slow = p95(stretch) if len(stretch.bucket) else None
        step = 0
        while step < stretch.steps:
            self._learn(stretch.start + (step + 1) * stretch.seconds)
            self._anew = False
            for judged in self._ahead(stretch, step, self._together(stretch, step), slow):
                step += 1
                yield judged

    def accept(self, accepted: Accepted) -> None:
        """Let a person have accepted a new normal: it is learnt at the next step, and the band begins anew."""
        self.accepted[accepted.site] = accepted
        self._learnt_at = -np.inf
        self._anew = True
        place = self._places[accepted.site]
        self._before.states.band[place] = UNKNOWN
        self._before.states.clocks[place] = np.nan

    @staticmethod
    def marks(judged: Judged) -> NDArray[np.uint8]:
        """How the sites were judged, as the marks of their hour."""
        bad = (judged.states.band == DEGRADING) | (judged.states.band == RESISTING)
        return hours_judged.marks_from(bad, judged.score, np.zeros(len(bad), dtype=np.bool_))

    def _enter(self, keys: Sequence[tuple[str, str, Source]]) -> None:
        """Know strata; those known before come first among them."""
        if len(keys) == len(self._rows.order):
            return
        self._hours.enter(keys)
        known = self._held.more(len(keys))
        held = self._held
        if len(held.sums):  # in the order of the keys again
            known.sums[self._rows.order], known.latency[self._rows.order] = held.sums, held.latency
        self._rows = Rows.of(keys, self._places, self._half_lives)
        self._held = known.of(self._rows.order)

    def _together(self, stretch: Stretch, first: int) -> int:
        """How many steps come before baselines are learnt again, or are as many as can be looked at together."""
        most = min(stretch.steps - first, max(1, AT_ONCE // max(1, len(self._rows.order))))
        for count in range(1, most):
            now = stretch.start + (first + count + 1) * stretch.seconds
            if self._due(now, self._hours.over(now - stretch.seconds)):
                return count
        return most

    def _ahead(self, stretch: Stretch, first: int, count: int, slow: Array | None) -> Iterator[Judged]:
        """The judgement after each of the next steps, until a normal is accepted."""
        begins = np.searchsorted(stretch.step, np.arange(first, first + count + 1)).tolist()
        every = slice(begins[0], begins[-1])
        new = np.zeros((count, len(self.sites)), dtype=np.bool_)
        new[stretch.step[every] - first, self._rows.owner[self._rows.place_of[stretch.row[every]]]] = True
        times = stretch.start + np.arange(first + 1, first + count + 1, dtype=np.float64) * stretch.seconds
        ahead = Ahead(
            self._held, self._came(stretch, first, count), rows=self._rows,
            normals=self._table.of(self._rows.panel, self.baselines), shown=self._before.states.shown,
            times=times, quiet=_quiet(self._before.states.seen_at, new, times), settings=self.settings,
        )  # fmt: skip
        for step in range(count):
            some = slice(begins[step], begins[step + 1])
            start = stretch.start + (first + step) * stretch.seconds
            now = start + stretch.seconds
            rows = stretch.row[some]
            self._hours.add(start, rows, stretch.values[some], None if slow is None else slow[rows, first + step])
            yield self._judge(ahead, step, now, new[step], stretch.seconds)
            self._hours.close(now)
            if self._anew:
                break
        self._held = ahead.swept.at(step)

    def _judge(self, ahead: Ahead, step: int, now: float, new: NDArray[np.bool_], seconds: float) -> Judged:
        judged = follow(
            ahead.seen(step),
            self._before,
            half_lives=self._half_lives,
            new_evidence=new,
            now=now,
            settings=self.settings,
            step=seconds,
        )
        ahead.moved(step, self._before.states.shown, judged)
        self._before = Before(states=judged.states, smoothed=judged.smoothed, at=np.full(len(self.sites), now))
        self._hours.mark(self.marks(judged))
        return judged

    def _came(self, stretch: Stretch, first: int, count: int) -> Came:
        """What came in some steps, by row and step."""
        begin, end = np.searchsorted(stretch.step, [first, first + count])
        step, row = stretch.step[begin:end] - first, self._rows.place_of[stretch.row[begin:end]]
        values = np.zeros((count, len(self._rows.order), COLUMNS))
        values[step, row] = stretch.values[begin:end]
        low, high = stretch.timed[begin], stretch.timed[end]
        bucket, timed = stretch.bucket[low:high].astype(np.intp), None
        if len(bucket):
            before = self._span or (int(bucket.min()), 0)
            self._span = (min(before[0], int(bucket.min())), max(before[1], int(bucket.max()) + 1))
            timed = np.zeros((count, len(self._rows.order), self._span[1] - self._span[0]), dtype=np.float32)
            lengths = np.diff(stretch.timed[begin : end + 1])
            timed[np.repeat(step, lengths), np.repeat(row, lengths), bucket - self._span[0]] = stretch.count[low:high]
        return Came(seconds=stretch.seconds, values=values, timed=timed, span=self._span or (0, 0))

    def _due(self, now: float, hours: int) -> bool:
        """Whether it is time to learn the baselines: more often while they are new."""
        return now - self._learnt_at >= self.settings.baseline.renewed(hours * HOUR) - ROUNDING

    def _learn(self, now: float) -> None:
        if not self._due(now, self._hours.count):
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


def _quiet(seen_at: Array, new: NDArray[np.bool_], times: Array) -> Array:
    """For how long nothing has come of each site at each time (T, N), as evaluate.silence."""
    came = np.where(new, times[:, None], -np.inf)
    last = np.maximum.accumulate(np.vstack([np.nan_to_num(seen_at, nan=-np.inf)[None], came]), axis=0)[1:]
    found: Array = np.where(np.isinf(last), 0.0, np.maximum(times[:, None] - last, 0.0))
    return found
