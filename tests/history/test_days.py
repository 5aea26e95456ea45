"""The roll-up to days: whatever comes, in whatever order, every request stands in one place, and the right one."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlhealth.config import HistorySettings
from crawlhealth.history import DAY, FILE_NAME, History, Past, import_windows, reading
from crawlhealth.tally import Slot, Tally
from samples import HOUR, NOW, observation, slot

SETTINGS = HistorySettings(keep_hours=timedelta(days=3))
MIDNIGHT = NOW // DAY * DAY


def everything(path: Path, now: float) -> list[Slot]:
    past = Past(settings=SETTINGS, now=now, since=0, until=now + DAY)
    with reading(path) as connection:
        return [slot for _, slots in past.windows(connection) for slot in slots]


def keep_house(history: History, now: float) -> float:
    """Commit until the housekeeping has trusted the clock and done its work."""
    for _ in range(16):
        now += 60
        assert history.commit(now)
    return now


seen = st.tuples(st.integers(0, 6 * 24), st.sampled_from(["direct", "dc"]), st.sampled_from(["books", "shop"]))
"""How many hours before now, route, site."""


@settings(max_examples=25)
@given(st.lists(st.lists(seen, max_size=12), min_size=1, max_size=6), st.integers(1, 30))
def test_every_request_is_in_one_place(rounds: list[list[tuple[int, str, str]]], pause: int) -> None:
    """Rounds of observations, also late ones, with some hours of housekeeping between them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE_NAME
        history = History.open(path, SETTINGS, now=NOW)
        expected: Counter[tuple[str, str, float]] = Counter()
        now = NOW
        for part in rounds:
            for back, route, site in part:
                at = now - back * HOUR
                history.add(observation(site=site, route=route, at=at, count=back + 1))
                expected[site, route, at // DAY * DAY] += back + 1
            now = keep_house(history, now)
            history.close()
            now += pause * HOUR
            history = History.open(path, SETTINGS, now=now)
        now = keep_house(history, now)
        history.close()
        found: Counter[tuple[str, str, float]] = Counter()
        kept = (now - 3 * DAY) // DAY * DAY
        for window in everything(path, now):
            found[window.site, window.route, window.start // DAY * DAY] += window.tally.requests
            assert (window.seconds == DAY) is (window.start < kept), (
                "days and only days beyond what is kept by the hour"
            )
        assert found == +expected
        with reading(path) as connection:
            query = "SELECT count(*) FROM days WHERE step = 3600 AND day + 86400 <= ?"
            assert connection.execute(query, (now - 3 * DAY,)).fetchone() == (0,), "on disk too"


def test_the_hours_of_a_day_that_is_still_kept_stay_hours(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    hours = [slot(MIDNIGHT - 3 * DAY + n * HOUR, Tally(ok=n + 1), seconds=HOUR) for n in range(24)]
    import_windows(path, SETTINGS, hours, now=NOW)
    history = History.open(path, SETTINGS, now=NOW)
    keep_house(history, NOW)
    assert {window.seconds for window in everything(path, NOW)} == {HOUR}, "half of it is within three days"
    history.close()
    history = History.open(path, SETTINGS, now=NOW + DAY)
    keep_house(history, NOW + DAY)
    history.close()
    assert [(w.start, w.seconds, w.tally.requests) for w in everything(path, NOW + DAY)] == [
        (MIDNIGHT - 3 * DAY, DAY, 300)
    ]  # fmt: skip


def day(ok: int, route: str = "direct") -> Slot:
    return slot(MIDNIGHT - 9 * DAY, Tally(ok=ok), seconds=DAY, route=route)


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        pytest.param([day(9)], [day(7)], [(DAY, 7)], id="a day replaces itself"),
        pytest.param([day(9)], [day(7, "dc")], [(DAY, 7), (DAY, 9)], id="another route's day stands beside it"),
    ],
)
def test_importing_days(tmp_path: Path, first: list[Slot], then: list[Slot], expected: list[tuple[float, int]]) -> None:
    path = tmp_path / FILE_NAME
    for slots in (first, then):
        import_windows(path, SETTINGS, slots, now=NOW)
    assert sorted((window.seconds, window.tally.requests) for window in everything(path, NOW)) == expected


def test_hours_imported_into_a_day_that_is_kept_as_a_whole_replace_it(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    import_windows(path, SETTINGS, [day(90), day(5, "dc")], now=NOW)
    longer = HistorySettings(keep_hours=timedelta(days=30))
    hours = [slot(MIDNIGHT - 9 * DAY + n * HOUR, Tally(ok=1), seconds=HOUR) for n in range(3)]
    import_windows(path, longer, hours, now=NOW)
    assert sorted((window.seconds, window.tally.requests) for window in everything(path, NOW)) == [(DAY, 3), (DAY, 5)]
