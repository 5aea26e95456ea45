from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from crawlhealth.config import HistorySettings
from crawlhealth.history import History, HistoryError, import_windows
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally
from samples import DAY, HOUR, NOW, observation, slot

SETTINGS = HistorySettings()
OLD = NOW - 3 * DAY


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def seen(path: Path, *slots: list[Slot]) -> list[tuple[float, float, int]]:
    """(start, width, requests) of all that is there after imports, one after the other."""
    for one in slots:
        assert import_windows(path, SETTINGS, one, now=NOW) == len(one)
    history = History.open(path, SETTINGS, now=NOW)
    try:
        return sorted((s.start, s.seconds, s.tally.requests) for s in history.hours("books", 0))
    finally:
        history.close()


def hour(start: float, ok: int) -> Slot:
    return slot(start, Tally(ok=ok), seconds=HOUR)


def minute(start: float, ok: int) -> Slot:
    return slot(start, Tally(ok=ok), seconds=60)


def fine(start: float, ok: int) -> Slot:
    return slot(start, Tally(ok=ok), seconds=10)


RECENT = NOW - 2 * HOUR


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        pytest.param([[hour(OLD, 5)], [hour(OLD, 5)]], [(OLD, HOUR, 5)], id="again the same changes nothing"),
        pytest.param([[hour(OLD, 5)], [hour(OLD, 8)]], [(OLD, HOUR, 8)], id="the later of one start replaces"),
        pytest.param([[hour(OLD, 5), hour(OLD, 8)]], [(OLD, HOUR, 8)], id="also within one file"),
        pytest.param(
            [[minute(OLD + 60 * n, 1) for n in range(60)]], [(OLD, HOUR, 60)], id="old minutes are summed to their hour"
        ),
        pytest.param(
            [[hour(OLD, 99)], [minute(OLD, 1), minute(OLD + 60, 2)]], [(OLD, HOUR, 3)], id="old minutes replace an hour"
        ),
        pytest.param(
            [[minute(RECENT, 1)], [minute(RECENT, 2), minute(RECENT + 60, 3)]],
            [(RECENT, 60, 2), (RECENT + 60, 60, 3)],
            id="recent minutes stay minutes",
        ),
        pytest.param(
            [[minute(RECENT, 1), minute(RECENT - 60, 1)], [hour(RECENT, 50)]],
            [(RECENT - 60, 60, 1), (RECENT, HOUR, 50)],
            id="an hour replaces the minutes in it and no others",
        ),
        pytest.param([[hour(RECENT, 50)], [minute(RECENT, 1)]], [(RECENT, 60, 1)], id="recent minutes replace an hour"),
        pytest.param(
            [[fine(RECENT, 1), fine(RECENT + 50, 2)], [minute(RECENT, 9)]],
            [(RECENT, 60, 9)],
            id="a minute replaces finer rows in it",
        ),
        pytest.param(
            [[minute(RECENT, 9), minute(RECENT + 60, 8)], [fine(RECENT + 50, 2)]],
            [(RECENT + 50, 10, 2), (RECENT + 60, 60, 8)],
            id="a finer row replaces the minute it lies in",
        ),
        pytest.param(
            [[minute(RECENT, 9), fine(RECENT, 1), fine(RECENT + 50, 2), hour(RECENT, 99)]],
            [(RECENT, 10, 1), (RECENT + 50, 10, 2)],
            id="of windows that overlap the finer ones count",
        ),
        pytest.param(
            [[minute(OLD, 9), fine(OLD, 1), fine(OLD + 50, 2)]],
            [(OLD, HOUR, 3)],
            id="old windows that overlap are not summed",
        ),
        pytest.param([[]], [], id="nothing"),
    ],
)
def test_import(path: Path, imports: list[list[Slot]], expected: list[tuple[float, float, int]]) -> None:
    assert seen(path, *imports) == expected


def test_other_sites_routes_and_sources_are_left_alone(path: Path) -> None:
    others = [
        slot(OLD, Tally(ok=1), seconds=HOUR, site="quotes"),
        slot(OLD, Tally(ok=2), seconds=HOUR, route="dc-us"),
        slot(OLD, Tally(ok=3), seconds=HOUR, source=Source.CANARY),
        hour(OLD + HOUR, 4),
    ]
    assert seen(path, [*others, hour(OLD, 5)], [hour(OLD, 6)]) == [
        (OLD, HOUR, 2), (OLD, HOUR, 3), (OLD, HOUR, 6), (OLD + HOUR, HOUR, 4),
    ]  # fmt: skip


def test_what_is_older_than_is_kept_is_refused(path: Path) -> None:
    with pytest.raises(HistoryError, match="older than"):
        import_windows(path, SETTINGS, [hour(NOW - 91 * DAY, 1)], now=NOW)


def test_an_import_moves_no_counter_and_a_running_exporter_takes_it_in(path: Path) -> None:
    history = History.open(path, SETTINGS, now=NOW)
    history.add(observation(at=RECENT, count=3))
    history.commit(NOW)
    assert not history.refresh()
    import_windows(path, SETTINGS, [minute(RECENT, 100), hour(OLD, 1000)], now=NOW)
    ((_, _, before),) = history.panels(["books"], NOW, half_lives=(600,))
    assert history.refresh()
    ((_, requests, generation),) = history.panels(["books"], NOW, half_lives=(600,))
    assert generation.tolist() != before.tolist()
    assert sum(s.tally.ok for s in history.hours("books", 0)) == 1100
    assert requests.tolist() == [3]
    assert history.committed().totals["books", "direct", Source.TRAFFIC].ok == 3
    history.close()


def test_a_commit_after_an_import_adds_to_what_was_imported(path: Path) -> None:
    """The running exporter has the old row in memory: it must not write it back over the new one."""
    history = History.open(path, SETTINGS, now=NOW)
    history.add(observation(at=RECENT, count=3))
    history.commit(NOW)
    import_windows(path, SETTINGS, [minute(RECENT, 100)], now=NOW)
    history.add(observation(at=RECENT, count=4))
    history.commit(NOW + 1)
    assert [s.tally.ok for s in history.hours("books", 0)] == [104]
    assert history.committed().totals["books", "direct", Source.TRAFFIC].ok == 7
    history.close()


IMPORT = """
import sys
from pathlib import Path
from samples import DAY, HOUR, NOW, slot
from crawlhealth.config import HistorySettings
from crawlhealth.history import import_windows
from crawlhealth.tally import Tally
hours = ((site, NOW - DAY - n * HOUR) for site in range(40) for n in range(360))
slots = (slot(start, Tally(ok=10), seconds=HOUR, site=f"site-{site}") for site, start in hours)
print(import_windows(Path(sys.argv[1]), HistorySettings(), slots, now=NOW))
"""


def test_an_import_by_another_process_while_the_exporter_commits(path: Path) -> None:
    history = History.open(path, SETTINGS, now=NOW)
    folder = str(Path(__file__).parent.parent)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {folder!r})\n{IMPORT}", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as importing:
        assert importing.stdout is not None
        added = 0
        while importing.poll() is None:
            added += 1
            history.add(observation(at=NOW))
            history.commit(NOW + added / 1000)
        assert importing.stdout.read() == "14400\n"
    history.commit(NOW + 1)
    history.refresh()
    ((_, requests, _),) = history.panels(["books"], NOW, half_lives=(600,))
    assert requests.tolist() == [added]
    assert all(sum(s.tally.ok for s in history.hours(f"site-{n}", 0)) == 3600 for n in range(40))
    assert history.committed().failures == 0
    history.close()
