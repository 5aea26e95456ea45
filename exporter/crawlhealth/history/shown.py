"""What a history shows: all that is on disk, to be read from any thread."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from crawlhealth.history.batch import HOUR
from crawlhealth.history.committed import Committed, RunKey, StoredRun
from crawlhealth.history.contents import Contents
from crawlhealth.history.database import size_on_disk
from crawlhealth.history.journal import Learnt
from crawlhealth.history.judged import Judged
from crawlhealth.history.ondisk import OnDisk
from crawlhealth.history.reading import reading
from crawlhealth.history.stretches import stretches
from crawlhealth.incident import Incident, Warned
from crawlhealth.model import Refusal
from crawlhealth.stretch import Stretch
from crawlhealth.tally import Slot
from crawlhealth.verdict import Verdict


class Shown:
    """The reading side of a history. Nothing is shown before it is on disk, but how hours were judged.

    What reads the disk raises HistoryError where that fails.
    """

    def __init__(self, path: Path, *, disk: OnDisk, contents: Contents) -> None:
        self._path = path
        self._disk = disk
        self._contents = contents
        self._failures = 0
        self._lock = threading.RLock()  # what is pending, and what of it is published
        self._layout_lock = threading.Lock()  # while rows move to hours, so that no reader sees them twice or never
        self.judged = Judged(path, disk)
        """How each hour of each site was judged."""

    def hours(self, site: str, since: float, until: float = math.inf) -> tuple[Slot, ...]:
        """All of a site on disk that began from `since` until before `until`: whole hours, then the fine slots."""
        with self._layout_lock:
            return self._disk.hours(site, since, until)

    def stretches(
        self, sites: Sequence[str], since: float, until: float, *, seconds: float = HOUR
    ) -> Iterator[Stretch]:
        """All of these sites on disk as arrays, in steps of `seconds` and pieces of time (see `stretches.stretches`).

        It is as it was when the first piece was read; read on to the end, for the file grows meanwhile.
        """
        with reading(self._path) as connection:
            yield from stretches(connection, sites, since, until, seconds=seconds)

    def baselines(self) -> Mapping[str, Learnt]:
        """The baselines that were kept."""
        with self._lock:
            return dict(self._contents.baselines)

    def verdicts(self, site: str, since: float) -> tuple[Verdict, ...]:
        """The recorded verdicts on a site from `since` on, oldest first: every change of band, and one an hour."""
        return self._disk.verdicts(site, since)

    def unfinished(self) -> tuple[Sequence[Incident], Mapping[str, Warned]]:
        """The incidents on disk that have not ended, and the early warnings: what a restart goes on from."""
        return self._disk.unfinished()

    def refusals(self, site: str, limit: int) -> tuple[Refusal, ...]:
        """The latest refusals of a site with their evidence, newest first, a few of each kind."""
        return self._disk.refusals(site, limit)

    def committed(self) -> Committed:
        """Everything on disk that /metrics shows, at one moment."""
        with self._lock:
            contents = self._contents
            return Committed(
                totals=dict(contents.totals),
                last=dict(contents.last),
                counters=dict(contents.counters),
                timings=dict(contents.timings),
                runs=dict(contents.runs),
                at=contents.at,
                failures=self._failures,
                size=size_on_disk(self._path),
            )

    def states(self) -> Mapping[str, Verdict]:
        """The latest verdict on every site that is on disk."""
        with self._lock:
            return dict(self._contents.states)

    def runs(self) -> Mapping[RunKey, StoredRun]:
        """The latest run of every canary through each route that is on disk."""
        with self._lock:
            return dict(self._contents.runs)

    def sizes(self) -> Mapping[tuple[str, str, str], tuple[int, ...]]:
        """The sizes of the last pages served, by site, canary and route."""
        with self._lock:
            return {key: stored.sizes for key, stored in self._contents.runs.items()}
