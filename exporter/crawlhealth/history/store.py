"""The history of one running exporter: takes what is seen, commits it, and gives readers what is on disk."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from crawlhealth import stats
from crawlhealth.config import HistorySettings
from crawlhealth.history import incidents, judgedrows, owner, pushes, refusals, resets, rows
from crawlhealth.history.batch import Batch
from crawlhealth.history.committed import StoredRun, Timings
from crawlhealth.history.contents import Contents, changed_by
from crawlhealth.history.database import HistoryError, locked, open_database, transaction
from crawlhealth.history.housekeeping import Housekeeping
from crawlhealth.history.journal import Learnt
from crawlhealth.history.ondisk import OnDisk
from crawlhealth.history.present import Present
from crawlhealth.history.pushes import Pushed, PushKey
from crawlhealth.history.record import Record
from crawlhealth.history.shown import Shown
from crawlhealth.incident import Incident, Warned
from crawlhealth.metrics import CANARY_RUNS, MetricSpec
from crawlhealth.model import CanaryRun, Observation, Refusal
from crawlhealth.outcome import REFUSED
from crawlhealth.panel import Panel
from crawlhealth.shard import Shard
from crawlhealth.tally import LARGEST
from crawlhealth.verdict import Verdict
from crawlhealth.windows import NOTHING

log = logging.getLogger(__name__)


class History(Shown):
    """Everything seen, in memory until `commit`, then on disk. All methods may be called from any thread.

    Times are unix seconds. Readers see only what is on disk.
    """

    def __init__(
        self,
        path: Path,
        settings: HistorySettings,
        *,
        lock: IO[bytes],
        writer: sqlite3.Connection,
        disk: OnDisk,
        contents: Contents,
    ) -> None:
        super().__init__(path, disk=disk, contents=contents)
        self._settings = settings
        self._file_lock = lock
        self._writer = writer
        self._pending = Batch()
        self._runs = dict(contents.runs)
        self._states = dict(contents.states)
        self._record = Record()
        self._failing = False
        self._keeping = Housekeeping(settings)
        self._commit_lock = threading.Lock()  # one commit at a time
        self._present = Present(path, resolution=settings.resolution.total_seconds())
        self._wanted = threading.Event()  # somebody waits for a commit

    @classmethod
    def open(cls, path: Path, settings: HistorySettings, *, now: float, shard: Shard | None = None) -> History:
        """The history at `path`, begun when there is none, for this process alone, and of its `shard` from now on.

        A file that cannot be read is set aside with a message in the log. Raises HistoryError when another exporter
        uses it, when its schema is newer than this version knows, or when it cannot be opened.
        """
        with ExitStack() as undo:
            lock = undo.enter_context(locked(path))
            writer, contents = open_database(path, now=now, load=rows.load)
            undo.callback(writer.close)
            try:
                owner.keep(writer, shard)
            except sqlite3.Error as error:
                raise HistoryError(f"cannot write to the history {path}: {error}") from error
            disk = OnDisk(path)
            undo.pop_all()
            return cls(path, settings, lock=lock, writer=writer, disk=disk, contents=contents)

    def close(self) -> None:
        """Close the file; what was not committed is lost, and who waits for it is told so."""
        with self._commit_lock:
            with self._lock:
                lost, self._pending = self._pending.waiting, Batch()
            for waiting in lost:
                waiting.set_exception(HistoryError(f"the history {self._path} was closed before it was written"))
            self._present.save()
            self.judged.save(self._writer)
            self._disk.close()
            self._writer.close()
            self._file_lock.close()

    def add(self, observation: Observation) -> None:
        """Take one observation, into the slot of its time, and count its reason unless it was simply served."""
        with self._lock:
            self._pending.add(observation, width=self.resolution)

    def add_batch(self, batch: Batch) -> Future[None]:
        """Take what a whole push brought: sums by slot, counters, and its key, all in one transaction.

        The future resolves when all of it is on disk, which the next commit brings about (see `wait`); a commit that
        fails is tried again, and the future waits. It raises HistoryError when the history is closed before that. The
        batch belongs to the history from then on. Slots must start at multiples of the resolution.
        """
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()  # nobody can call it off
        batch.waiting.append(done)
        with self._lock:
            self._pending.absorb(batch)
        self._wanted.set()
        return done

    def pushed(self, key: PushKey) -> Pushed | None:
        """What is on disk of a push with this key; None when there is none (any more). Raises HistoryError."""
        return self._disk.pushed(key)

    def wait(self, seconds: float) -> None:
        """Wait for the time of the next commit: at once when a batch waits for it, else after `seconds`."""
        self._wanted.wait(seconds)

    def wake(self) -> None:
        """End `wait` at once."""
        self._wanted.set()

    @property
    def resolution(self) -> float:
        """How many seconds a slot has."""
        return self._settings.resolution.total_seconds()

    @property
    def failing(self) -> bool:
        """Whether the last commit failed."""
        return self._failing

    def add_run(self, run: CanaryRun) -> None:
        """Take one canary run: as an observation, as the latest of its canary and route, and in its own counter."""
        key = (run.site, run.canary, run.route)
        with self._lock:
            self._pending.add(run.observation(), width=self.resolution)
            self._runs[key] = self._pending.runs[key] = StoredRun.after(self._runs.get(key), run)
            self._pending.increase((CANARY_RUNS.name, (*key, run.classification.outcome.value)), 1)
            if run.classification.outcome in REFUSED:
                refusals.gather(self._pending.refusals, refusals.of_run(run))

    def add_refusal(self, refusal: Refusal) -> None:
        """Keep what proves a refusal, for people: the latest few of its kind. It counts nothing."""
        with self._lock:
            refusals.gather(self._pending.refusals, refusal)

    def count(self, spec: MetricSpec, labels: tuple[str, ...], amount: float = 1) -> None:
        """Increase one series of a counter."""
        with self._lock:
            self._pending.increase((spec.name, labels), amount)

    def observe(self, spec: MetricSpec, labels: tuple[str, ...], seconds: float) -> None:
        """Take one value of a histogram of seconds."""
        one = Timings(counts={stats.bucket(seconds): 1}, total=seconds)
        key = (spec.name, labels)
        with self._lock:
            timings = self._pending.timings
            timings[key] = timings[key].plus(one) if key in timings else one

    def put_verdict(self, verdict: Verdict, incident: Incident | None = None) -> None:
        """Take the latest verdict on a site, and its incident where that began, changed or ended: they stay together.

        It is recorded for good when the band changed, an hour began, or the score moved far from the recorded one.
        """
        with self._lock:
            before = self._states.get(verdict.site)
            self._states[verdict.site] = self._pending.states[verdict.site] = verdict
            if self._record.wants(verdict, before):
                self._pending.verdicts[verdict.site, verdict.at] = verdict
            if incident is not None:
                self._pending.incidents[incident.site, incident.start] = incident

    def put_warned(self, warned: Mapping[str, Warned | None]) -> None:
        """Take early warnings that began, ended or expired (None), so that a restart knows since when they are on."""
        with self._lock:
            self._pending.warned.update(warned)

    def commit(self, now: float) -> bool:
        """Bring everything taken so far to disk in one transaction, then show it to readers.

        False when that failed: everything is kept and tried again with the next commit, and the failure is counted.
        """
        with self._commit_lock:
            self._wanted.clear()
            with self._lock:
                batch, self._pending = self._pending, Batch()
            try:
                self._write(batch, now)
            except Exception as error:  # noqa: BLE001 - whatever it was, nothing that was taken may be lost
                with self._lock:
                    batch.absorb(self._pending)
                    self._pending = batch
                    self._failures += 1
                if not self._failing:
                    log.error("cannot write the history %s: %s; trying again with every commit", self._path, error)
                self._failing = True
                return False
            if self._failing:
                log.info("the history %s can be written again", self._path)
            self._failing = False
            for waiting in batch.waiting:
                waiting.set_result(None)
            self._keep_house(now)
            return True

    def _write(self, batch: Batch, now: float) -> None:
        judged = self.judged.due(now)
        if not batch and not judged:
            with self._lock:
                self._contents.at = now
            return
        with transaction(self._writer):
            width = self._settings.resolution.total_seconds()
            present = rows.read_present(self._writer, batch.slots)
            changed = changed_by(self._contents, batch, present, now=now, width=width)
            rows.put_contents(self._writer, changed, batch.verdicts.values(), now)
            refusals.put(self._writer, batch.refusals)
            pushes.put(self._writer, batch.pushes)
            incidents.put(self._writer, batch.incidents.values(), batch.warned)
            judgedrows.put(self._writer, judged)
            resets.put(self._writer, batch.resets)
        with self._lock:
            self._contents.take(changed)
        self.judged.written(judged)
        if changed.added:
            self._present.take(changed.sequence, changed.added)
        if batch.resets:
            self._present.kept(batch.resets[-1].number)

    def _keep_house(self, now: float) -> None:
        """Roll up and prune one step. A failure costs nothing but time: the rows stay where they are."""
        if not self._keeping.due(now):
            return
        present = self._present
        with self._layout_lock:
            try:
                with transaction(self._writer):
                    self._keeping.work(self._writer, now, journal_upto=present.saved)
                    resets.prune(self._writer, before=now - present.reach, upto=present.saved_resets)
            except (sqlite3.Error, ValueError) as error:
                log.error("cannot roll up the history %s: %s", self._path, error)

    def refresh(self) -> bool:
        """Notice rows that another process has imported; True when there were some."""
        known = self._contents.generation
        current, imported = self._disk.imported(known)
        if current == known:
            return False
        with self._lock:
            self._contents.imported.update(imported)
            self._contents.generation = current
        return True

    def panels(
        self, sites: Sequence[str], now: float, *, half_lives: Sequence[float]
    ) -> Iterator[tuple[Panel, NDArray[np.int64], NDArray[np.int64]]]:
        """What is on disk of these sites in their order, in pieces, with windows of these half-lives.

        Beside each panel, how many requests were ever counted of each site, and the generation of its last import. For
        one thread at a time; reads the disk and raises HistoryError where that fails.
        """
        self._prepare(half_lives, now)
        requests, imported = self._contents.requests, self._contents.imported
        for panel in self._present.panels(sites, now):
            counted = np.array([min(requests.get(site, 0), LARGEST) for site in panel.sites], dtype=np.int64)
            yield panel, counted, np.array([imported.get(site, 0) for site in panel.sites], dtype=np.int64)

    def _prepare(self, half_lives: Sequence[float], now: float) -> None:
        try:
            self._present.prepare(half_lives, now, generation=self._contents.generation)
        except (sqlite3.Error, ValueError) as error:
            raise HistoryError(f"cannot read the slots from {self._path}: {error}") from error

    @contextmanager
    def together(self) -> Iterator[None]:
        """What this thread takes inside comes to disk in one transaction or not at all. Be brief: others wait."""
        with self._lock:
            yield

    def reset_windows(self, site: str, window: int, now: float) -> None:
        """Let every longer window of a site become what its window of this number holds at `now`.

        That is so at once, and on disk with the next commit: call it `together` with `put_verdict` of its cause. For
        the thread that reads windows, after it has read some.
        """
        with self._lock:
            self._pending.resets.append(self._present.reset(site, window, now))

    def empty_windows(self, site: str, now: float) -> None:
        """Let all windows of a site hold nothing, as `reset_windows` does."""
        self.reset_windows(site, NOTHING, now)

    def save_windows(self, now: float) -> None:
        """Write a snapshot of the windows when one is due, so that the next start is quick.

        While a reset waits for the disk it is put off until the next reading.
        """
        self._present.save(now)

    def put_baseline(self, site: str, learnt: Learnt) -> None:
        """Keep the baseline of a site, so that a start need not learn it again."""
        with self._lock:
            self._pending.baselines[site] = learnt
