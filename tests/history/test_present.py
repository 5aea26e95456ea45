"""The windows through restarts, crashes, imports and clocks that are wrong: always what the slots on disk say."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from crawlhealth.config import HistorySettings
from crawlhealth.history import History, import_windows, snapshot
from crawlhealth.tally import Tally
from crawlhealth.weighted import Sums
from crawlhealth.windows import Windows
from samples import DAY, HOUR, NOW, observation, slot
from someslots import sums

SETTINGS = HistorySettings()
LIVES = (600.0, 21600.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    history = History.open(path, SETTINGS, now=NOW)
    yield history
    history.close()


def totals(history: History, now: float = NOW, lives: tuple[float, ...] = LIVES, *, site: str = "books") -> list[Sums]:
    ((panel, _, _),) = history.panels([site], now, half_lives=lives)
    return sums(panel, site)


def anew(history: History, now: float = NOW, lives: tuple[float, ...] = LIVES) -> list[Sums]:
    """The same from all slots on disk."""
    windows = Windows(lives, resolution=60)
    windows.add(history.hours("books", 0))
    return sums(windows.panel(["books"], now))


def same(one: list[Sums], other: list[Sums]) -> bool:
    return all(
        getattr(a, name) == pytest.approx(getattr(b, name), rel=1e-6, abs=1e-6)
        for a, b in zip(one, other, strict=True)
        for name in Sums.__struct_fields__
    )


def busy(history: History, *, minutes: int = 30, until: float = NOW) -> None:
    for minute in range(minutes):
        history.add(observation(at=until - minute * 60, count=minute + 1, seconds=0.2))
        history.commit(until)


def left_behind(history: History, path: Path, folder: Path) -> Path:
    """What a kill -9 at this moment would leave, in a folder of its own."""
    folder.mkdir()
    for file in path.parent.iterdir():
        if file.is_file() and not file.name.endswith("-shm"):
            shutil.copy(file, folder / file.name)
    return folder / path.name


def test_commits_are_in_the_windows_at_once_and_once(history: History) -> None:
    totals(history)
    busy(history)
    assert same(totals(history), anew(history))
    assert totals(history, NOW)[1].ok > 400


def test_panels_are_the_windows_with_what_was_ever_counted(history: History, path: Path) -> None:
    names = [f"site{n}" for n in range(1500)]
    for n in (0, 999, 1000, 1499):
        history.add(observation(site=names[n], at=NOW, count=n + 1, seconds=0.2))
    history.commit(NOW)
    import_windows(path, SETTINGS, [slot(NOW - 3600, Tally(ok=7), site="site1000")], now=NOW)
    history.refresh()
    panels = list(history.panels(names, NOW, half_lives=LIVES))
    assert [site for panel, _, _ in panels for site in panel.sites] == names
    counted = dict(zip(names, np.concatenate([counts for _, counts, _ in panels]).tolist(), strict=True))
    assert {site: count for site, count in counted.items() if count} == {
        "site0": 1,
        "site999": 1000,
        "site1000": 1001,
        "site1499": 1500,
    }
    assert np.flatnonzero(np.concatenate([generations for _, _, generations in panels])).tolist() == [1000]
    ok = {site: one.totals[n, :, 0].tolist() for one, _, _ in panels for n, site in enumerate(one.sites)}
    alone = {site: [one.ok for one in totals(history, site=site)] for site, count in counted.items() if count}
    assert {site: ok[site] for site in alone} == alone
    assert sum(map(sum, ok.values())) == sum(map(sum, alone.values()))


def test_a_restart_reads_the_snapshot_and_not_the_slots(history: History, path: Path) -> None:
    totals(history)
    busy(history)
    before = totals(history)
    history.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM minutes")
        connection.commit()
    again = History.open(path, SETTINGS, now=NOW)
    assert same(totals(again), before)
    again.close()


def test_after_a_crash_what_came_since_the_snapshot_counts_once(history: History, path: Path, tmp_path: Path) -> None:
    totals(history)
    busy(history)
    history._present.save()
    busy(history, minutes=5, until=NOW + 300)
    copy = left_behind(history, path, tmp_path / "crash")
    again = History.open(copy, SETTINGS, now=NOW)
    assert same(totals(again, NOW + 300), totals(history, NOW + 300))
    assert same(totals(again, NOW + 300), anew(again, NOW + 300))
    again.close()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda file: file.unlink(), id="gone"),
        pytest.param(lambda file: file.write_bytes(file.read_bytes()[:-200]), id="cut off"),
        pytest.param(lambda file: file.write_bytes(b"not ours"), id="something else"),
        pytest.param(lambda file: file.write_bytes(file.read_bytes().replace(b"books", b"bolts")), id="changed"),
    ],
)
def test_a_snapshot_that_cannot_be_read_costs_only_time(
    history: History, path: Path, spoil: Callable[[Path], object]
) -> None:
    totals(history)
    busy(history)
    before = totals(history)
    history.close()
    spoil(path.with_name(snapshot.FILE_NAME))
    again = History.open(path, SETTINGS, now=NOW)
    assert same(totals(again), before)
    again.close()


def test_the_snapshot_of_another_history_is_left_alone(history: History, path: Path, tmp_path: Path) -> None:
    totals(history)
    busy(history)
    history.close()
    (tmp_path / "other").mkdir()
    shutil.copy(path.with_name(snapshot.FILE_NAME), tmp_path / "other")
    other = History.open(tmp_path / "other" / "history.db", SETTINGS, now=NOW)
    assert totals(other) == [Sums(), Sums()]
    other.close()


def test_an_older_copy_of_the_file_does_not_take_the_newer_snapshot(
    history: History, path: Path, tmp_path: Path
) -> None:
    totals(history)
    busy(history)
    copy = left_behind(history, path, tmp_path / "backup")
    busy(history, minutes=3, until=NOW + 60)
    history.close()
    shutil.copy(path.with_name(snapshot.FILE_NAME), copy.parent)
    again = History.open(copy, SETTINGS, now=NOW)
    assert same(totals(again), anew(again))
    again.close()


def test_other_half_lives_are_made_anew(history: History) -> None:
    totals(history)
    busy(history)
    other = (60.0, 300.0, 86400.0)
    assert same(totals(history, lives=other), anew(history, lives=other))
    busy(history, minutes=2)
    assert same(totals(history, lives=other), anew(history, lives=other))


def test_an_import_replaces_and_what_comes_meanwhile_counts_once(history: History, path: Path) -> None:
    totals(history)
    busy(history)
    hours = [slot(NOW - 30 * 60 - (n + 1) * HOUR, Tally(ok=500), seconds=HOUR) for n in range(1, 5)]
    hours = [slot(s.start // HOUR * HOUR, s.tally, seconds=HOUR) for s in hours]
    import_windows(path, SETTINGS, [*hours, slot(NOW - 600, Tally(ok=7))], now=NOW)
    history.add(observation(at=NOW - 600, count=3))
    history.commit(NOW)
    history.refresh()
    assert same(totals(history), anew(history))
    busy(history, minutes=2)
    assert same(totals(history), anew(history))
    history.close()
    again = History.open(path, SETTINGS, now=NOW)
    assert same(totals(again), anew(again))
    import_windows(path, SETTINGS, [slot(NOW - 1200, Tally(ok=9000))], now=NOW)
    again.refresh()
    assert same(totals(again), anew(again))
    again.close()


def test_an_import_while_nothing_runs_is_seen_at_the_next_start(history: History, path: Path) -> None:
    totals(history)
    busy(history)
    history.close()
    import_windows(path, SETTINGS, [slot(NOW - 600, Tally(hard_block=7000))], now=NOW)
    again = History.open(path, SETTINGS, now=NOW)
    again.refresh()
    assert totals(again)[0].hard_block > 3000
    assert same(totals(again), anew(again))
    again.close()


def test_a_clock_that_was_ahead_for_a_while_leaves_nothing_in_the_present(history: History) -> None:
    totals(history)
    busy(history)
    right = totals(history)
    history.add(observation(at=NOW + 400 * DAY, count=1000))
    history.commit(NOW + 400 * DAY)
    assert totals(history, NOW + 400 * DAY)[0].ok == pytest.approx(1000)
    assert same(totals(history, NOW), right)
    history.add(observation(at=NOW, count=10))
    history.commit(NOW)
    assert totals(history, NOW)[0].ok == pytest.approx(right[0].ok + 10)


def test_the_journal_ends_where_the_snapshot_begins(history: History, path: Path) -> None:
    totals(history)
    busy(history)
    history._present.save()
    busy(history, minutes=1)
    for second in range(0, 700, 50):
        history.commit(NOW + second)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM journal").fetchone() == (1,)


def test_windows_that_were_made_anew_are_kept_at_once(history: History, path: Path) -> None:
    busy(history)
    totals(history)
    history.save_windows(NOW)
    kept = path.with_name(snapshot.FILE_NAME)
    assert kept.exists()
    kept.unlink()
    busy(history, minutes=1)
    history.save_windows(NOW + 299)
    assert not kept.exists(), "the next one has its time"
    history.save_windows(NOW + 300)
    assert kept.exists()
