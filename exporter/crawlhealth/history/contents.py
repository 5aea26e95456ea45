"""What is kept in memory of what is on disk, and what a batch changes in it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from crawlhealth.history.batch import Batch, SlotKey
from crawlhealth.history.committed import CounterKey, RunKey, StoredRun, Stratum, Timings
from crawlhealth.history.journal import Learnt
from crawlhealth.metrics import INCIDENTS
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally, merged
from crawlhealth.verdict import Verdict

CLOCK_SLACK = 60.0
"""A time further ahead of the clock than this came from a clock that was wrong."""


@dataclass(slots=True, kw_only=True)
class Contents:
    """Everything on disk but slots, hours and recorded verdicts. Values are replaced and never changed.

    `requests` is how many were ever counted of a site, `imported` the generation of its last import, `begun` when its
    latest incident began. `slots` are fine slots to be written, `added` what is new in them: both only of a change.
    """

    slots: list[Slot] = field(default_factory=list)
    added: list[Slot] = field(default_factory=list)
    totals: dict[Stratum, Tally] = field(default_factory=dict)
    last: dict[tuple[str, Source], float] = field(default_factory=dict)
    counters: dict[CounterKey, float] = field(default_factory=dict)
    timings: dict[CounterKey, Timings] = field(default_factory=dict)
    runs: dict[RunKey, StoredRun] = field(default_factory=dict)
    states: dict[str, Verdict] = field(default_factory=dict)
    baselines: dict[str, Learnt] = field(default_factory=dict)
    imported: dict[str, int] = field(default_factory=dict)
    begun: dict[str, float] = field(default_factory=dict)
    requests: dict[str, int] = field(init=False, default_factory=dict)
    generation: int = 0
    sequence: int = 0
    at: float | None = None

    def __post_init__(self) -> None:
        for (site, _, _), tally in self.totals.items():
            self.requests[site] = self.requests.get(site, 0) + tally.requests

    def take(self, changed: Contents) -> None:
        """Replace what has changed."""
        for key, tally in changed.totals.items():
            before = self.totals.get(key)
            self.requests[key[0]] = (
                self.requests.get(key[0], 0) + tally.requests - (before.requests if before is not None else 0)
            )
            self.totals[key] = tally
        self.last.update(changed.last)
        self.counters.update(changed.counters)
        self.timings.update(changed.timings)
        self.runs.update(changed.runs)
        self.states.update(changed.states)
        self.baselines.update(changed.baselines)
        self.begun.update(changed.begun)
        self.sequence = changed.sequence
        self.at = changed.at


def changed_by(
    contents: Contents, batch: Batch, present: Mapping[SlotKey, Slot], *, now: float, width: float
) -> Contents:
    """The new values of all that a batch changes. Its slots are `width` seconds wide; `present` are those on disk."""
    changed = Contents(
        runs=batch.runs,
        states=batch.states,
        baselines=batch.baselines,
        sequence=contents.sequence + 1 if batch.slots else contents.sequence,
        at=now,
    )
    for key, tally in batch.slots.items():
        site, route, source, start = key
        before = present.get(key)
        seconds = width if before is None else max(width, before.seconds)
        new = Slot(site=site, route=route, source=source, start=start, seconds=seconds, tally=tally)
        changed.added.append(new)
        changed.slots.append(new if before is None else replace(new, tally=merged((before.tally, tally))))
        stratum = (site, route, source)
        if stratum not in changed.totals:
            changed.totals[stratum] = merged((contents.totals.get(stratum, Tally()),))
        changed.totals[stratum].merge(tally)
    for counter, amount in batch.counters.items():
        changed.counters[counter] = contents.counters.get(counter, 0.0) + amount
    _count_incidents(changed, contents, batch)
    for counter, timings in batch.timings.items():
        changed.timings[counter] = contents.timings.get(counter, Timings()).plus(timings)
    for seen, at in batch.last.items():
        known = contents.last.get(seen, at)
        changed.last[seen] = max(at, known) if known <= now + CLOCK_SLACK else at
    return changed


def _count_incidents(changed: Contents, contents: Contents, batch: Batch) -> None:
    """Count the incidents that are new: those that began after the latest on disk. A later state of one is not."""
    for site, start in sorted(batch.incidents):
        if start > changed.begun.get(site, contents.begun.get(site, -math.inf)):
            counter = (INCIDENTS.name, (site,))
            changed.begun[site] = start
            changed.counters[counter] = changed.counters.get(counter, contents.counters.get(counter, 0.0)) + 1
