"""Resets of windows: in force at once, on disk with their verdict, and there again after every kind of start."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pytest

from crawlhealth.config import HistorySettings
from crawlhealth.history import Batch, History, import_windows, snapshot
from crawlhealth.history.resets import Reset
from crawlhealth.outcome import Outcome
from crawlhealth.tally import Tally
from crawlhealth.verdict import Band, BandState, Verdict
from samples import DAY, HOUR, NOW, observation, slot

SETTINGS = HistorySettings()
LIVES = (600.0, 3600.0, 21600.0)
SITES = ("books", "quotes")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    history = History.open(path, SETTINGS, now=NOW)
    yield history
    history.close()


def refused(history: History, now: float = NOW, site: str = "books", lives: tuple[float, ...] = LIVES) -> list[float]:
    """The refused share by half-life."""
    ((panel, _, _),) = history.panels([site], now, half_lives=lives)
    sums = panel.totals[0]
    return [float(share) for share in sums[:, 1] / sums[:, :5].sum(axis=1)]


def blocked(history: History, *, site: str = "books", now: float = NOW) -> None:
    """Six hours of good traffic, then ten minutes of refusals."""
    for minute in range(360, 0, -3):
        outcome = Outcome.OK if minute > 10 else Outcome.HARD_BLOCK
        history.add(observation(site=site, at=now - minute * 60, count=10, outcome=outcome, seconds=0.2))
    history.commit(now)


def resisting(site: str = "books", at: float = NOW) -> Verdict:
    return Verdict(site=site, at=at, state=BandState(band=Band.RESISTING, since=at))


def worsened(history: History, now: float = NOW) -> None:
    with history.together():
        history.put_verdict(resisting(at=now))
        history.reset_windows("books", 0, now)


def test_old_good_traffic_does_not_lift_a_silent_site_whatever_starts_there_are(
    history: History, path: Path, tmp_path: Path
) -> None:
    blocked(history)
    short, *longer = refused(history)
    assert short > 2 * longer[-1] > 0
    worsened(history)
    assert refused(history, NOW + 8 * HOUR) == pytest.approx([short] * 3)
    history.commit(NOW)
    history.close()
    for name, files in [("snapshot", ["history.db", snapshot.FILE_NAME]), ("slots alone", ["history.db"])]:
        folder = tmp_path / name
        folder.mkdir()
        for file in files:
            shutil.copy(path.with_name(file), folder / file)
        again = History.open(folder / "history.db", SETTINGS, now=NOW)
        assert refused(again, NOW + 8 * HOUR) == pytest.approx([short] * 3), name
        assert refused(again, NOW + 8 * HOUR, lives=(300.0, 600.0, 9000.0))[1:] == pytest.approx([short] * 2), name
        again.close()


def test_windows_are_emptied(history: History, path: Path) -> None:
    blocked(history)
    blocked(history, site="quotes")
    before = refused(history, site="quotes")
    history.empty_windows("books", NOW)
    ((panel, _, _),) = history.panels(SITES, NOW, half_lives=LIVES)
    assert not panel.totals[0].any()
    assert np.isnan(panel.site_p95[0]).all()
    history.add(observation(at=NOW, count=3))
    history.commit(NOW)
    history.close()
    for lost in (False, True):
        if lost:
            path.with_name(snapshot.FILE_NAME).unlink()
        again = History.open(path, SETTINGS, now=NOW)
        ((panel, _, _),) = again.panels(SITES, NOW, half_lives=LIVES)
        assert panel.totals[0, :, 0] == pytest.approx([3] * 3)
        assert refused(again, site="quotes") == pytest.approx(before)
        again.close()


def test_a_kill_before_the_commit_leaves_neither_verdict_nor_reset(
    history: History, path: Path, tmp_path: Path
) -> None:
    blocked(history)
    before = refused(history)
    history.save_windows(NOW)
    worsened(history)
    history.save_windows(NOW + 1000)  # due, but it would hold what is not on disk
    (tmp_path / "killed").mkdir()
    for file in path.parent.glob("*.*"):
        if file.is_file() and not file.name.endswith("-shm"):
            shutil.copy(file, tmp_path / "killed")
    assert marked(tmp_path / "killed" / path.name).resets == 0
    again = History.open(tmp_path / "killed" / path.name, SETTINGS, now=NOW)
    assert refused(again) == pytest.approx(before)
    assert not again.states()
    again.close()
    history.commit(NOW + 1)
    refused(history, NOW + 1000)
    assert marked(path).resets == 1, "the next reading begins with it"


def marked(path: Path) -> snapshot.Mark:
    loaded = snapshot.load(path.with_name(snapshot.FILE_NAME))
    assert loaded is not None
    return loaded[0]


def test_a_close_before_the_commit_leaves_neither(history: History, path: Path) -> None:
    blocked(history)
    before = refused(history)
    worsened(history)
    history.close()
    again = History.open(path, SETTINGS, now=NOW)
    assert refused(again) == pytest.approx(before)
    assert not again.states()
    again.close()


def test_a_commit_that_fails_is_made_up_for(history: History, path: Path) -> None:
    blocked(history)
    short = refused(history)[0]
    worsened(history)
    history._writer.execute("ALTER TABLE resets RENAME TO away")
    assert not history.commit(NOW)
    history.reset_windows("quotes", 0, NOW)
    history._writer.execute("ALTER TABLE away RENAME TO resets")
    assert history.commit(NOW)
    history.close()
    again = History.open(path, SETTINGS, now=NOW)
    assert refused(again, NOW + HOUR) == pytest.approx([short] * 3)
    assert again.states().keys() == {"books"}
    again.close()


def test_resets_taken_during_a_commit_that_fails_come_after_its_own() -> None:
    first, second = (Reset(number=n, sequence=7, site="books", at=NOW, half_life=600.0) for n in (1, 2))
    batch = Batch(resets=[first])
    assert batch, "a commit has something to write"
    batch.absorb(Batch(resets=[second]))
    assert batch.resets == [first, second]


def test_a_reset_that_waits_for_the_disk_stays_while_windows_are_made_anew(history: History, path: Path) -> None:
    blocked(history)
    short = refused(history)[0]
    history._present.save()
    worsened(history)
    other = (600.0, 7200.0, 14400.0)
    for lives in (other, LIVES, other):
        assert refused(history, lives=lives) == pytest.approx([short] * 3)
    import_windows(path, SETTINGS, [slot(NOW - HOUR, Tally(ok=1000))], now=NOW)
    history.refresh()
    shares = refused(history, lives=other)
    assert shares[0] < short
    assert shares == pytest.approx([shares[0]] * 3)


def test_rows_keep_their_numbers_when_windows_are_made_anew(history: History) -> None:
    names = ["books", "news", "quotes"]
    list(history.panels(names, NOW, half_lives=LIVES))
    for site in reversed(names):
        blocked(history, site=site)
    ((before, _, _),) = history.panels(names, NOW, half_lives=LIVES)
    assert before.row_ids.tolist() == [2, 1, 0]
    ((after, _, _),) = history.panels(names, NOW, half_lives=(60.0, 7200.0))
    assert after.row_ids.tolist() == before.row_ids.tolist()


def test_an_import_of_old_good_traffic_is_before_the_reset(history: History, path: Path) -> None:
    blocked(history)
    refused(history)
    worsened(history)
    history.commit(NOW)
    import_windows(path, SETTINGS, [slot(NOW - 3 * HOUR, Tally(ok=1_000_000))], now=NOW)
    history.refresh()
    shares = refused(history, NOW + HOUR)
    assert shares == pytest.approx([shares[0]] * 3)


def test_a_reset_by_a_clock_that_was_ahead_is_forgotten(history: History, path: Path) -> None:
    blocked(history)
    before = refused(history)
    history.reset_windows("books", 0, NOW + 400 * DAY)
    assert np.allclose(refused(history), before), "made anew"
    history.commit(NOW)
    history.close()
    again = History.open(path, SETTINGS, now=NOW)
    assert refused(again) == pytest.approx(before)
    again.close()


def test_a_snapshot_of_before_there_were_resets_is_read(history: History, path: Path) -> None:
    blocked(history)
    before = refused(history)
    history.close()
    file = path.with_name(snapshot.FILE_NAME)
    with np.load(file) as parts:
        head = msgspec.msgpack.decode(parts["head"].tobytes())
        del head["mark"]["resets"]
        np.savez(
            file,
            head=np.frombuffer(msgspec.msgpack.encode(head), np.uint8),
            **{n: parts[n] for n in ("sums", "latency")},
        )
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM minutes")
        connection.commit()
    again = History.open(path, SETTINGS, now=NOW)
    assert refused(again) == pytest.approx(before)
    again.close()


def test_an_older_copy_of_the_file_does_not_take_a_snapshot_with_later_resets(
    history: History, path: Path, tmp_path: Path
) -> None:
    blocked(history)
    before = refused(history)
    (tmp_path / "backup").mkdir()
    copy = tmp_path / "backup" / path.name
    with closing(sqlite3.connect(copy)) as target:
        history._writer.backup(target)
    worsened(history)
    history.commit(NOW)
    history.close()
    shutil.copy(path.with_name(snapshot.FILE_NAME), copy.parent)
    again = History.open(copy, SETTINGS, now=NOW)
    assert refused(again) == pytest.approx(before)
    again.close()


def test_resets_go_when_they_have_faded_and_a_snapshot_holds_them(history: History) -> None:
    def kept() -> list[float]:
        return [at for (at,) in history._writer.execute("SELECT at FROM resets")]

    def pass_time(now: float) -> None:
        for second in range(0, 700, 50):
            history.commit(now + second)

    blocked(history)
    refused(history)
    worsened(history)
    history.commit(NOW)
    later = NOW + 8 * LIVES[-1] + 60
    pass_time(later)
    assert kept() == [NOW], "in no snapshot yet"
    history.save_windows(later + 700)
    refused(history, later + 1100)
    history.reset_windows("books", 1, later + 1100)
    pass_time(later + 1100)
    assert kept() == [later + 1100]
    history._present.save()
    history.reset_windows("books", 1, later + 1200)
    history.commit(later + 1800)
    assert [number for (number,) in history._writer.execute("SELECT number FROM resets")] == [2, 3]
