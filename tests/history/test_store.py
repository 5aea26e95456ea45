from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from crawlhealth import metrics
from crawlhealth.config import HistorySettings
from crawlhealth.history import History, HistoryError, import_windows
from crawlhealth.outcome import Outcome, Reason, Source
from crawlhealth.tally import Tally
from crawlhealth.verdict import Band, BandState, Verdict
from samples import DAY, HOUR, NOW, observation, refusal, run, slot
from someslots import sums
from waiting import until

SETTINGS = HistorySettings()
BOOKS = ("books", "direct", Source.TRAFFIC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    opened = History.open(path, SETTINGS, now=NOW)
    yield opened
    opened.close()


def reopened(history: History, path: Path) -> History:
    history.close()
    return History.open(path, SETTINGS, now=NOW)


def counted(history: History, now: float) -> int:
    """How many requests of the site are ever counted, as a judge is told."""
    ((_, requests, _),) = history.panels(["books"], now, half_lives=(600,))
    return int(requests[0])


def verdict(at: float, band: Band, score: int | None = None) -> Verdict:
    return Verdict(site="books", at=at, state=BandState(band=band, since=at, evidence_at=at), score=score,
                   route_refused={"direct": 0.25})  # fmt: skip


def test_nothing_is_shown_before_it_is_on_disk(history: History) -> None:
    history.add(observation(outcome=Outcome.HARD_BLOCK, reason=Reason.HTTP_403))
    history.count(metrics.SKIPPED, ())
    history.observe(metrics.SCHEDULE_LAG, (), 0.02)
    history.add_run(run())
    history.put_verdict(verdict(NOW, Band.NORMAL))
    shown = history.committed()
    assert (shown.totals, shown.counters, shown.timings, shown.runs, shown.at) == ({}, {}, {}, {}, None)
    assert (history.hours("books", 0), history.states()) == ((), {})


def test_everything_committed_is_there_after_a_restart(history: History, path: Path) -> None:
    history.add(observation(outcome=Outcome.HARD_BLOCK, reason=Reason.HTTP_403, count=3))
    history.add(observation(at=NOW + 61, seconds=0.25, extracted=True))
    history.count(metrics.SKIPPED, (), 2)
    history.observe(metrics.SCHEDULE_LAG, (), 0.02)
    history.add_run(run())
    history.put_verdict(verdict(NOW, Band.DEGRADING, 70))
    assert history.commit(NOW + 62)
    before = history.committed()
    assert before.totals[BOOKS].requests == 4
    assert before.last["books", Source.TRAFFIC] == NOW + 61
    assert before.counter(metrics.REASONS) == {("books", "traffic", "http_403"): 3}
    assert before.counter(metrics.SKIPPED) == {(): 2}
    slots, states = history.hours("books", 0), history.states()
    again = reopened(history, path)
    after = again.committed()
    for part in ("totals", "last", "counters", "timings", "runs", "at"):
        assert getattr(after, part) == getattr(before, part), part
    assert again.hours("books", 0) == slots
    assert counted(again, NOW + 62) == 5
    assert again.states() == states == {"books": verdict(NOW, Band.DEGRADING, 70)}
    again.close()


def test_observations_go_to_the_slot_of_their_time(history: History) -> None:
    for at in (NOW, NOW + 59.9, NOW + 60, NOW - 0.1):
        history.add(observation(at=at))
    history.commit(NOW + 60)
    slots = {s.start: s.tally.requests for s in history.hours("books", 0)}
    assert slots == {NOW - 60: 1, NOW: 2, NOW + 60: 1}


def test_slots_are_as_fine_as_configured(tmp_path: Path) -> None:
    history = History.open(tmp_path / "h.db", HistorySettings(resolution=timedelta(seconds=1)), now=NOW)
    for at in (NOW + 0.5, NOW + 0.7, NOW + 1):
        history.add(observation(at=at))
    history.commit(NOW + 2)
    assert [(s.start, s.seconds, s.tally.ok) for s in history.hours("books", 0)] == [
        (NOW, 1, 2), (NOW + 1, 1, 1),
    ]  # fmt: skip
    history.close()


def test_a_panel_handed_out_does_not_change(history: History) -> None:
    history.add(observation(seconds=0.2))
    history.commit(NOW)
    ((panel, requests, _),) = history.panels(["books"], NOW, half_lives=(600,))
    shown = history.committed()
    before = panel.rows.tolist(), panel.totals.tolist(), panel.site_p95.tolist()
    history.add(observation(seconds=9.0, count=100))
    history.commit(NOW + 1)
    list(history.panels(["books"], NOW + 1, half_lives=(600,)))
    assert (panel.rows.tolist(), panel.totals.tolist(), panel.site_p95.tolist()) == before
    assert (sums(panel)[0].requests, requests.tolist()) == (1, [1])
    assert shown.totals[BOOKS].requests == 1
    assert history.committed().totals[BOOKS].requests == 101


def test_runs_keep_their_last_success_and_the_sizes_of_served_pages(history: History, path: Path) -> None:
    for n in range(25):
        history.add_run(run(at=NOW + n, size=n))
    history.commit(NOW + 30)
    history.add_run(run(at=NOW + 50, outcome=Outcome.HARD_BLOCK, size=9))
    history.add_run(run(at=NOW + 60, outcome=Outcome.HARD_BLOCK, size=9))
    history.commit(NOW + 60)
    again = reopened(history, path)
    stored = again.committed().runs["books", "front", "direct"]
    assert (stored.run.at, stored.last_success, stored.sizes) == (NOW + 60, NOW + 24, tuple(range(5, 25)))
    assert again.sizes() == {("books", "front", "direct"): tuple(range(5, 25))}
    again.close()


def test_verdicts_are_recorded_at_every_change_of_band_and_hourly(history: History) -> None:
    times = [(0, Band.NORMAL), (15, Band.NORMAL), (30, Band.DEGRADING), (45, Band.DEGRADING), (3600, Band.DEGRADING)]
    for after, band in times:
        history.put_verdict(verdict(NOW + after, band))
    history.commit(NOW + 3600)
    assert [(v.at - NOW, v.band) for v in history.verdicts("books", 0)] == [
        (0, Band.NORMAL), (30, Band.DEGRADING), (3600, Band.DEGRADING),
    ]  # fmt: skip
    assert [v.at for v in history.verdicts("books", NOW + 31)] == [NOW + 3600]


def test_a_score_that_moves_far_is_recorded_within_the_hour(history: History) -> None:
    for after, score in ((0, 100), (10, 94), (16, 94), (32, 97), (48, 88), (49, 70)):
        history.put_verdict(verdict(NOW + after, Band.NORMAL, score))
    history.commit(NOW)
    assert [(v.at - NOW, v.score) for v in history.verdicts("books", 0)] == [(0, 100), (16, 94), (48, 88)]


def test_refused_runs_are_kept_with_their_evidence(history: History, path: Path) -> None:
    history.add_run(run(outcome=Outcome.HARD_BLOCK))
    history.add_run(run(canary="listing"))
    history.commit(NOW)
    with closing(reopened(history, path)) as again:
        (kept,) = again.refusals("books", 10)
    assert (kept.canary, kept.reason, kept.evidence.headers) == ("front", Reason.HTTP_403, (("server", "x"),))


def test_one_frequent_kind_of_refusal_hides_no_rare_one(history: History) -> None:
    history.add_refusal(refusal(at=NOW, reason=Reason.HTTP_429))
    for number in range(20):
        history.add_refusal(refusal(at=NOW + 1 + number, title=f"page {number}"))
        if number % 2:
            history.commit(NOW + number)
    history.add_refusal(refusal(at=NOW, site="quotes"))
    history.commit(NOW + 30)
    kept = history.refusals("books", 10)
    assert [(one.at - NOW, one.reason) for one in kept] == [
        (20, Reason.HTTP_403), (19, Reason.HTTP_403), (18, Reason.HTTP_403), (0, Reason.HTTP_429),
    ]  # fmt: skip
    assert kept[0].evidence.title == "page 19"
    assert len(history.refusals("books", 2)) == 2


def test_refusals_survive_a_failed_commit_and_go_with_their_age(history: History, path: Path) -> None:
    history.add_refusal(refusal(at=NOW))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert not history.commit(NOW)
    history.add_refusal(refusal(at=NOW + 1))
    assert history.commit(NOW + 1)
    assert [one.at - NOW for one in history.refusals("books", 10)] == [1, 0]
    later = NOW + 91 * DAY
    for after in (0, 200, 400, 601):
        history.commit(later + after)
    assert history.refusals("books", 10) == ()


def test_the_latest_observation_forgets_a_time_that_a_wrong_clock_gave(history: History) -> None:
    history.add(observation(at=NOW + 3000 * DAY))
    history.commit(NOW + 3000 * DAY)
    history.add(observation(at=NOW))
    history.commit(NOW + 1)
    assert history.committed().last["books", Source.TRAFFIC] == NOW


def test_a_full_disk_loses_nothing_and_is_counted(
    history: History, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    history.add(observation())
    assert history.commit(NOW)
    with limited_to_its_size(history):
        history.add(observation(outcome=Outcome.HARD_BLOCK, reason=Reason.HTTP_403))
        fill(history)
        assert not history.commit(NOW + 1)
        history.add(observation())
        assert not history.commit(NOW + 2)
        shown = history.committed()
        assert (shown.totals[BOOKS].requests, shown.failures, shown.at) == (1, 2, NOW)
    assert history.commit(NOW + 3)
    assert history.committed().totals[BOOKS].requests == 3
    assert caplog.text.count("cannot write the history") == 1, "said once, not with every commit"
    assert "can be written again" in caplog.text
    again = reopened(history, path)
    assert again.committed().totals[BOOKS].requests == 3
    assert len(again.committed().counters) == 5001
    again.close()


class limited_to_its_size:
    """The database may not grow: what SQLite says is that of a full disk."""

    def __init__(self, history: History) -> None:
        self._connection = history._writer

    def __enter__(self) -> None:
        pages = self._connection.execute("PRAGMA page_count").fetchone()[0]
        self._connection.execute(f"PRAGMA max_page_count={pages}")

    def __exit__(self, *_: object) -> None:
        self._connection.execute("PRAGMA max_page_count=1073741823")


def fill(history: History) -> None:
    """More than fits into the pages that are there."""
    for number in range(5000):
        history.count(metrics.CANARY_RUNS, ("books", f"canary-{number}", "direct", "ok"))


def test_a_long_wait_for_the_disk_stays_small_and_loses_no_request(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlhealth.history.batch.MAX_SLOTS", 100)
    fill(history)
    with limited_to_its_size(history):
        for minute in range(600):
            history.add(observation(at=NOW + minute * 60))
            assert not history.commit(NOW + minute * 60)
        assert len(history._pending.slots) <= 100
    assert history.commit(NOW + 600 * 60)
    assert history.committed().totals[BOOKS].requests == 600
    assert sum(s.tally.ok for s in history.hours("books", 0)) == 600


def test_readers_and_writers_of_many_threads_agree(history: History) -> None:
    done = threading.Event()
    seen: list[int] = []
    errors: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                seen.append(sum(s.tally.requests for s in history.hours("books", 0)))
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    def write() -> None:
        for number in range(2000):
            history.add(observation(at=NOW - number % 7 * 60))

    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [threading.Thread(target=write) for _ in range(3)]
    for thread in readers + writers:
        thread.start()
    step = 0
    while any(thread.is_alive() for thread in writers):
        step += 1
        assert history.commit(NOW + step / 1000)
    history.commit(NOW + 1)
    done.set()
    for thread in readers + writers:
        thread.join()
    assert errors == []
    assert seen == sorted(seen)
    ((panel, requests, _),) = history.panels(["books"], NOW, half_lives=(1e12,))
    assert requests.tolist() == [6000]
    assert sums(panel)[0].requests == pytest.approx(6000)


def test_only_one_exporter_uses_a_history(history: History, path: Path) -> None:
    with pytest.raises(HistoryError, match="in use by another exporter"):
        History.open(path, SETTINGS, now=NOW)
    history.close()
    History.open(path, SETTINGS, now=NOW).close()


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE meta SET value = value WHERE name = 'generation'")
print("holding", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""


def test_reading_goes_on_while_another_process_writes_and_a_commit_waits_its_turn(history: History, path: Path) -> None:
    history.add(observation())
    history.commit(NOW)
    import_windows(path, SETTINGS, [slot(NOW - 12 * HOUR, Tally(ok=7), seconds=HOUR)], now=NOW)
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "holding\n"
        history.refresh()
        assert sum(s.tally.ok for s in history.hours("books", 0)) == 8
        history.add(observation())
        committing = threading.Thread(target=history.commit, args=(NOW + 1,))
        committing.start()
        assert history.committed().totals[BOOKS].requests == 1
        assert sum(s.tally.ok for s in history.hours("books", 0)) == 8
        other.stdin.write("done\n")
        other.stdin.flush()
        committing.join(timeout=10)
        history.commit(NOW + 2)
        until(lambda: history.committed().totals[BOOKS].requests == 2, 5)


def test_a_damaged_day_is_said_when_it_is_read_and_keeps_no_commit_from_its_work(history: History, path: Path) -> None:
    import_windows(path, SETTINGS, [slot(NOW - 12 * HOUR, Tally(ok=7), seconds=HOUR)], now=NOW)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE days SET strata = x'00ff'")
    other.close()
    with pytest.raises(HistoryError, match="books"):
        history.hours("books", 0)
    with pytest.raises(HistoryError, match="slots"):
        list(history.panels(["books"], NOW, half_lives=(600,)))
    history.add(observation())
    assert history.commit(NOW)
