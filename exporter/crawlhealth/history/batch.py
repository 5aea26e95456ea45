"""A batch: what has been seen and is not yet on disk. Sums by slot, so that a long wait for the disk stays small."""

from __future__ import annotations

import math
from concurrent.futures import Future
from dataclasses import dataclass, field

from crawlhealth.history.committed import CounterKey, RunKey, StoredRun, Timings
from crawlhealth.history.incidents import IncidentKey
from crawlhealth.history.journal import Learnt
from crawlhealth.history.pushes import Pushed, PushKey
from crawlhealth.history.refusals import Refusals, gather
from crawlhealth.history.resets import Reset
from crawlhealth.incident import Incident, Warned
from crawlhealth.metrics import REASONS
from crawlhealth.model import Observation
from crawlhealth.outcome import Reason, Source
from crawlhealth.tally import Tally
from crawlhealth.verdict import Verdict

MAX_SLOTS = 100_000
"""Beyond this many fine slots waiting for the disk, the older ones are summed to hours."""
HOUR = 3600.0

SlotKey = tuple[str, str, Source, float]
"""site, route, source, start (unix seconds)."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch; an accumulator, owned by the history. Who is in `waiting` is told when it is on disk."""

    slots: dict[SlotKey, Tally] = field(default_factory=dict)
    last: dict[tuple[str, Source], float] = field(default_factory=dict)
    counters: dict[CounterKey, float] = field(default_factory=dict)
    timings: dict[CounterKey, Timings] = field(default_factory=dict)
    runs: dict[RunKey, StoredRun] = field(default_factory=dict)
    states: dict[str, Verdict] = field(default_factory=dict)
    verdicts: dict[tuple[str, float], Verdict] = field(default_factory=dict)
    incidents: dict[IncidentKey, Incident] = field(default_factory=dict)
    warned: dict[str, Warned | None] = field(default_factory=dict)
    resets: list[Reset] = field(default_factory=list)
    refusals: Refusals = field(default_factory=dict)
    baselines: dict[str, Learnt] = field(default_factory=dict)
    pushes: dict[PushKey, Pushed] = field(default_factory=dict)
    waiting: list[Future[None]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(
            (
                self.slots,
                self.counters,
                self.timings,
                self.runs,
                self.states,
                self.verdicts,
                self.incidents,
                self.warned,
                self.resets,
                self.refusals,
                self.baselines,
                self.pushes,
                self.waiting,
            ),
        )

    def add(self, observation: Observation, *, width: float) -> None:
        """Add one observation to the slot of its time, `width` seconds wide, and its reason unless it was served."""
        start = math.floor(observation.at / width) * width
        key = (observation.site, observation.route, observation.source, start)
        seen = (observation.site, observation.source)
        self.slots.setdefault(key, Tally()).add(observation)
        self.last[seen] = max(observation.at, self.last.get(seen, observation.at))
        if observation.reason is not Reason.SERVED:
            labels = (observation.site, observation.source.value, observation.reason.value)
            self.increase((REASONS.name, labels), observation.count)

    def increase(self, counter: CounterKey, amount: float) -> None:
        """Add to one counter."""
        self.counters[counter] = self.counters.get(counter, 0.0) + amount

    def absorb(self, later: Batch) -> None:
        """Take in a batch that was gathered after this one; it becomes a part of this."""
        for key, tally in later.slots.items():
            mine = self.slots.get(key)
            if mine is None:
                self.slots[key] = tally
            else:
                mine.merge(tally)
        for counter, amount in later.counters.items():
            self.increase(counter, amount)
        for counter, timings in later.timings.items():
            self.timings[counter] = self.timings.get(counter, Timings()).plus(timings)
        for seen, at in later.last.items():
            self.last[seen] = max(at, self.last.get(seen, at))
        self.runs.update(later.runs)
        self.states.update(later.states)
        self.verdicts.update(later.verdicts)
        self.incidents.update(later.incidents)
        self.warned.update(later.warned)
        self.resets += later.resets
        self.baselines.update(later.baselines)
        for refusals in later.refusals.values():
            for refusal in refusals:
                gather(self.refusals, refusal)
        self.pushes.update(later.pushes)
        self.waiting += later.waiting
        if len(self.slots) > MAX_SLOTS:
            self._coarsen()

    def _coarsen(self) -> None:
        """Sum the slots to hours: nothing is lost but the minute."""
        hours: dict[SlotKey, Tally] = {}
        for (site, route, source, start), tally in self.slots.items():
            hours.setdefault((site, route, source, start // HOUR * HOUR), Tally()).merge(tally)
        self.slots = hours
