"""Stretches read from a history, running or not, and from windows alone: the same sums as every other reader's."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from sqlite3 import connect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlhealth.columns import FIELDS
from crawlhealth.config import Config, HistorySettings, Site
from crawlhealth.history import (
    DAY,
    FILE_NAME,
    History,
    HistoryError,
    Past,
    import_windows,
    reading,
    span,
    stretches,
    stretches_of,
)
from crawlhealth.outcome import Source
from crawlhealth.stretch import Stretch, dense, p95
from crawlhealth.tally import Slot, Tally
from crawlhealth.traffic import importing
from crawlhealth.traffic.exporting import as_line
from crawlhealth.traffic.windows import Problem
from samples import HOUR, NOW, observation, slot

SETTINGS = HistorySettings(keep_hours=timedelta(days=3))
MIDNIGHT = NOW // DAY * DAY
SITES = ("books", "shop")
KEY = ("books", "direct", Source.TRAFFIC)

Sums = dict[tuple[tuple[str, str, Source], float], float]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


def requests(pieces: Iterable[Stretch]) -> Sums:
    """Requests by stratum and start of step."""
    found: Sums = defaultdict(float)
    for piece in pieces:
        for row, step, values in zip(piece.row.tolist(), piece.step.tolist(), piece.values, strict=True):
            found[piece.keys[row], piece.start + step * piece.seconds] += values[:5].sum()
    return {key: value for key, value in found.items() if value}


def everything(path: Path, since: float, until: float, seconds: float = HOUR) -> list[Stretch]:
    with reading(path) as connection:
        return list(stretches(connection, SITES, since, until, seconds=seconds))


seen = st.tuples(st.integers(0, 6 * 24 * 4), st.sampled_from(["direct", "dc"]), st.sampled_from(SITES))
"""How many quarters of an hour before now, route, site."""


@settings(max_examples=20)
@given(st.lists(st.lists(seen, max_size=12), min_size=1, max_size=4), st.integers(1, 30))
def test_every_request_is_in_its_hour_or_spread_over_its_day(
    rounds: list[list[tuple[int, str, str]]], pause: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE_NAME
        history = History.open(path, SETTINGS, now=NOW)
        now = NOW
        for some in rounds:
            for ago, route, site in some:
                history.add(observation(at=now - ago * 900, route=route, site=site, seconds=0.2, count=24))
            for _ in range(14):
                now += 60
                assert history.commit(now)
            now += pause * HOUR
        running = list(history.stretches(SITES, NOW - 20 * DAY, now + DAY))
        history.close()
        found = everything(path, NOW - 20 * DAY, now + DAY)
        assert requests(running) == requests(found)
        expected: Sums = defaultdict(float)
        with reading(path) as connection:
            past = Past(settings=HistorySettings(keep_hours=timedelta(days=99)), now=now, since=0, until=now + DAY)
            for _, slots in past.windows(connection):
                for one in slots:
                    for hour in range(round(max(HOUR, one.seconds) / HOUR)):
                        key = (one.site, one.route, one.source), one.start // HOUR * HOUR + hour * HOUR
                        expected[key] += one.tally.requests * min(1.0, HOUR / one.seconds)
        assert requests(found) == pytest.approx(dict(expected))
        assert sum(float(piece.count.sum()) for piece in found) == pytest.approx(sum(expected.values()))


def test_all_that_a_tally_has_is_read(path: Path) -> None:
    sums = {name: number + 1 for number, name in enumerate(FIELDS)}
    tally = Tally(**sums, latency={100: 3, 40: 2}, latency_sum=2.0)
    import_windows(path, SETTINGS, [slot(MIDNIGHT, tally, seconds=HOUR)], now=NOW)
    (piece,) = everything(path, MIDNIGHT, MIDNIGHT + 2 * HOUR)
    assert dense(piece).tolist() == [[[float(value) for value in sums.values()], [0.0] * 12]]
    assert (piece.bucket.tolist(), piece.count.tolist()) == ([40, 100], [2, 3])
    assert np.isnan(p95(piece)).tolist() == [[False, True]]


@pytest.mark.parametrize(
    ("since", "until", "seconds", "expected"),
    [
        pytest.param(0, 2 * HOUR, HOUR, [10, 1], id="an hour and what came after it"),
        pytest.param(1800, 1900, HOUR, [10], id="the whole step that is touched"),
        pytest.param(HOUR, 2 * HOUR, 2 * HOUR, [11], id="steps begin at multiples of their width"),
        pytest.param(-2 * HOUR, 0, HOUR, [0, 0], id="steps before the first datum are told, empty"),
        pytest.param(0, 0, HOUR, [], id="no time at all"),
        pytest.param(50 * 60, HOUR + 120, 600, [10 / 6, 1], id="an hour is spread over finer steps"),
    ],
)
def test_which_steps_are_told(path: Path, since: float, until: float, seconds: float, expected: list[float]) -> None:
    first = NOW - 2 * HOUR
    import_windows(
        path, SETTINGS, [slot(first, Tally(ok=10), seconds=HOUR), slot(first + HOUR, Tally(error=1))], now=NOW
    )
    found = everything(path, first + since, first + until, seconds)
    assert sum(piece.steps for piece in found) == len(expected)
    by_step = [float(column) for piece in found for column in dense(piece)[..., :5].sum(axis=(0, 2))]
    assert by_step == pytest.approx(expected if by_step else [])


def test_a_long_time_comes_in_pieces_of_whole_days_whose_strata_stay_in_place(path: Path) -> None:
    starts = [MIDNIGHT - 60 * DAY, MIDNIGHT - 30 * DAY, MIDNIGHT - 2 * DAY]
    slots = [
        slot(start, Tally(ok=number + 1), seconds=HOUR, route=route)
        for number, start in enumerate(starts)
        for route in ("z", "direct", "a")[: number + 1]
    ]
    import_windows(path, HistorySettings(), slots, now=NOW)
    pieces = everything(path, starts[0], NOW, 60.0)
    assert len(pieces) > 2
    assert all(piece.start % DAY == 0 for piece in pieces)
    assert [piece.start for piece in pieces[1:]] == [piece.start + piece.steps * 60 for piece in pieces[:-1]]
    assert pieces[-1].start + pieces[-1].steps * 60 == NOW
    for before, after in pairwise(pieces):
        assert after.keys[: len(before.keys)] == before.keys
    assert sum(requests(pieces).values()) == pytest.approx(1 + 2 * 2 + 3 * 3)


def test_only_the_sites_asked_for_are_read(path: Path) -> None:
    import_windows(path, SETTINGS, [slot(MIDNIGHT, Tally(ok=1), seconds=HOUR, site=site) for site in "abc"], now=NOW)
    with reading(path) as connection:
        assert [key[0] for (piece) in stretches(connection, ["c", "a", "x"], MIDNIGHT, NOW) for key in piece.keys] == [
            "a",
            "c",
        ]
        assert [piece.keys for piece in stretches(connection, [], MIDNIGHT, NOW)] == [()]


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param([slot(NOW - 120, Tally(ok=1))], (NOW - 120, NOW - 60), id="a minute"),
        pytest.param(
            [slot(MIDNIGHT + HOUR, Tally(ok=1), seconds=HOUR)], (MIDNIGHT + HOUR, MIDNIGHT + 2 * HOUR), id="an hour"
        ),
        pytest.param(
            [slot(MIDNIGHT - DAY, Tally(ok=1), seconds=HOUR), slot(NOW - 60, Tally(ok=1))], (MIDNIGHT - DAY, NOW),
            id="from an hour to a minute",
        ),
        pytest.param([slot(NOW - 120, Tally(ok=1), site="other")], None, id="another site's"),
    ],
)  # fmt: skip
def test_span(path: Path, slots: list[Slot], expected: tuple[float, float] | None) -> None:
    import_windows(path, SETTINGS, slots, now=NOW)
    with reading(path) as connection:
        assert span(connection, SITES) == expected


def test_a_file_of_the_first_version_is_read(path: Path) -> None:
    with closing(connect(path)) as connection:
        connection.executescript(Path(__file__).with_name("version1.sql").read_text(encoding="utf-8"))
    with reading(path) as connection:
        found = span(connection, ["books"])
        assert found is not None
        assert sum(requests(stretches(connection, ["books"], *found)).values()) == 303 + 8


@pytest.mark.parametrize("strata", [b"nothing", b"\x28\xb5\x2f\xfd\x00"], ids=["no list", "broken compression"])
def test_a_day_that_cannot_be_read_is_an_error(path: Path, strata: bytes) -> None:
    import_windows(path, SETTINGS, [slot(MIDNIGHT, Tally(ok=1), seconds=HOUR)], now=NOW)
    with closing(connect(path)) as connection, connection:
        connection.execute("UPDATE days SET strata = ?", (strata,))
    with pytest.raises(HistoryError, match="cannot read the history"):
        everything(path, MIDNIGHT, NOW)


windows = st.lists(
    st.builds(
        slot,
        st.integers(0, 47).map(lambda hour: MIDNIGHT - 2 * DAY + hour * HOUR),
        st.builds(Tally, ok=st.integers(1, 50), latency=st.just({100: 1})),
        seconds=st.sampled_from([60.0, HOUR]),
        site=st.sampled_from(SITES),
    ),
    max_size=20,
)


@settings(max_examples=20)
@given(windows)
def test_windows_without_a_history_are_what_an_import_makes_of_them(slots: list[Slot]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE_NAME
        import_windows(path, SETTINGS, slots, now=NOW)
        imported = requests(everything(path, MIDNIGHT - 2 * DAY, NOW))
    found = list(stretches_of(slots))
    assert requests(found) == imported
    if slots:
        assert found[0].start == min(one.start for one in slots) // HOUR * HOUR
        last = max(one.start + one.seconds for one in slots)
        assert found[-1].start + found[-1].steps * HOUR == -(-last // HOUR) * HOUR
    else:
        assert found == []


def test_a_day_that_was_kept_as_one_is_spread_beside_its_hours() -> None:
    day = slot(MIDNIGHT - 9 * DAY, Tally(ok=24), seconds=DAY)
    found = requests(stretches_of([slot(MIDNIGHT, Tally(ok=7), seconds=HOUR), day]))
    assert found[KEY, MIDNIGHT - 9 * DAY + 5 * HOUR] == pytest.approx(1)
    assert found[KEY, MIDNIGHT] == 7
    assert sum(found.values()) == pytest.approx(31)


def test_a_file_of_windows_of_any_age_is_read_and_its_bad_lines_are_told() -> None:
    config = Config(sites={"books": Site(name="books", hosts=())})
    old = slot(NOW - 3000 * DAY, Tally(ok=5, latency={100: 5}, latency_sum=1.0), seconds=HOUR)
    lines = [
        as_line(old),
        b'{"site": "other", "start": 0, "requests": 1}',
        b'{"site": "books", "start": -60, "requests": 1}',
        b"{",
        as_line(slot(NOW - 2999 * DAY, Tally(error=2), seconds=HOUR)),
    ]
    problems: list[Problem] = []
    found = list(importing.stretches_of(lines, config, problem=problems.append, now=NOW))
    assert requests(found) == {(KEY, NOW - 3000 * DAY): 5, (KEY, NOW - 2999 * DAY): 2}
    assert [problem.line for problem in problems] == [2, 3, 4]
