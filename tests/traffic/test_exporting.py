"""What is exported is imported again as it was: one window, and a whole history."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth import stats
from crawlhealth.config import Config, HistorySettings, Route, Site
from crawlhealth.history import FILE_NAME, History, Past, import_windows, reading
from crawlhealth.outcome import Outcome, Source
from crawlhealth.tally import Slot, Tally
from crawlhealth.traffic import importing
from crawlhealth.traffic.exporting import as_line
from crawlhealth.traffic.windows import Problem, read_window, read_windows
from samples import DAY, HOUR, NOW, observation, slot

SETTINGS = HistorySettings(keep_hours=timedelta(days=20))


def config(folder: Path) -> Config:
    return Config(
        data_dir=folder,
        routes={"direct": Route(name="direct"), "dc": Route(name="dc")},
        sites={"books": Site(name="books", hosts=("a",)), "shop": Site(name="shop", hosts=("b",))},
        history=SETTINGS,
    )


count = st.integers(0, 10**6)
amount = st.floats(0, 1e9)


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    latency = draw(st.dictionaries(st.integers(0, len(stats.BOUNDS)), st.integers(1, 1000), max_size=30))
    timed = sum(latency.values())
    values = {
        name: draw(count) for name in Tally.__struct_fields__ if name not in ("credits", "latency", "latency_sum")
    }
    tally = Tally(
        **values, credits=draw(amount), latency=latency, latency_sum=draw(amount) if latency else 0.0
    )  # fmt: skip
    tally.ok += timed
    tally.extractions_ok = min(tally.extractions_ok, tally.requests)
    tally.extractions_failed = min(tally.extractions_failed, tally.requests - tally.extractions_ok)
    return tally


@given(tallies(), st.sampled_from([60.0, HOUR]), st.sampled_from(list(Source)))
def test_one_window(tally: Tally, seconds: float, source: Source) -> None:
    window = slot(NOW - HOUR, tally, seconds=seconds, route="dc", source=source)
    assert read_window(as_line(window), config=config(Path()), now=NOW) == window


def fill(folder: Path) -> None:
    """A history with days, hours, minutes, and stragglers beside the sums of their time."""
    long = HistorySettings(keep_hours=timedelta(days=800))
    past = [
        slot(NOW - days * DAY + (hour - 12) * HOUR, Tally(ok=5, challenge=hour, latency={40 + hour: 5},
             latency_sum=0.1 * hour), seconds=HOUR, site=site, route=route)
        for days in (300, 100, 20, 19, 3)
        for hour in range(24)
        for site, route in (("books", "direct"), ("books", "dc"), ("shop", "direct"))
    ]  # fmt: skip
    import_windows(folder / FILE_NAME, long, past, now=NOW)
    history = History.open(folder / FILE_NAME, SETTINGS, now=NOW)
    for minute in range(25 * 60):
        source = Source.CANARY if minute % 7 == 0 else Source.TRAFFIC
        history.add(observation(at=NOW - minute * 60, seconds=0.1 + minute / 997, source=source, count=minute % 3 + 1))
        history.add(observation(at=NOW - minute * 60, outcome=Outcome.CHALLENGE, site="shop", source=source))
    now = NOW
    while now < NOW + 40 * 60:  # long enough for the housekeeping to trust the clock, and to move and fold
        now += 60
        assert history.commit(now)
    history.add(observation(at=NOW - 100 * DAY + 60, count=1000))
    history.add(observation(at=NOW - 3 * DAY + 60, count=2000))
    history.add(observation(at=NOW - 13 * HOUR + 60, count=3000))
    assert history.commit(now)
    history.close()


def windows(folder: Path) -> list[Slot]:
    past = Past(settings=SETTINGS, now=NOW + 40 * 60, since=0, until=NOW + DAY)
    with reading(folder / FILE_NAME) as connection:
        return [slot for _, slots in past.windows(connection) for slot in slots]


def test_a_whole_history(tmp_path: Path) -> None:
    fill(tmp_path / "one")
    exported = windows(tmp_path / "one")
    assert {slot.seconds for slot in exported} == {60.0, HOUR, DAY}
    keys = [(slot.site, slot.route, slot.source, slot.start) for slot in exported]
    assert len(set(keys)) == len(keys)
    past = 5 * 3 * sum(5 + hour for hour in range(24))
    present = sum(minute % 3 + 1 for minute in range(25 * 60)) + 25 * 60
    assert sum(slot.tally.requests for slot in exported) == past + present + 6000
    lines = [as_line(slot) for slot in exported]
    report = importing.import_windows(lines, config(tmp_path / "two"), now=NOW + 40 * 60)
    assert (report.taken, report.problems) == (len(lines), ())
    again = windows(tmp_path / "two")
    assert [as_line(slot) for slot in again] == lines


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param(b'{"site":"books","start":"2026-11-20T00:00:00Z","window_seconds":86400,"requests":1}',
                     "must be older than history.keep_hours", id="a day that is kept by the hour"),
        pytest.param(b'{"site":"books","start":"2024-11-01T00:00:00Z","window_seconds":86400,"requests":1}',
                     "longer ago than two years", id="a day from long ago"),
        pytest.param(b'{"site":"books","start":"2026-10-01T00:00:00Z","window_seconds":3600,"requests":1}',
                     "longer ago than history.keep_hours", id="an hour of a day that is kept as a whole"),
        pytest.param(b'{"site":"books","start":"2026-11-30T00:00:00Z","requests":1,'
                     b'"latency_seconds":{"p95":1,"sum":1}}', "sum beside quantiles", id="a sum beside quantiles"),
    ],
)  # fmt: skip
def test_windows_that_are_not_taken(line: bytes, said: str) -> None:
    (problem,) = read_windows([line], config=config(Path()), now=NOW)
    assert isinstance(problem, Problem)
    assert said in problem.reason


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    fill(tmp_path)
    past = Past(settings=SETTINGS, now=NOW + 40 * 60, since=NOW - 4 * DAY, until=NOW - 2 * DAY)
    with reading(tmp_path / FILE_NAME) as connection:
        found = [slot for _, slots in past.windows(connection) for slot in slots]
    assert {slot.seconds for slot in found} == {HOUR}
    assert min(slot.start for slot in found) == NOW - 3 * DAY - 12 * HOUR
