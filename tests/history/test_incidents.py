"""Incidents on disk: with the verdicts, with what people say of them, and for how long."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from crawlhealth.config import Config, HistorySettings, Site
from crawlhealth.history import FILE_NAME, Decisions, History, import_windows, past_incidents, reading
from crawlhealth.history.incidents import KEPT_SECONDS
from crawlhealth.incident import Incident, Warned
from crawlhealth.judge import Judge
from crawlhealth.labels import Label, parse
from crawlhealth.metrics import INCIDENTS
from crawlhealth.outcome import Outcome, Reason
from crawlhealth.tally import Tally
from crawlhealth.verdict import Advice, Band, BandState, Diagnosis, IncidentLabel, Signal, Verdict
from samples import DAY, HOUR, NOW, observation, slot

SETTINGS = HistorySettings()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    history = History.open(path, SETTINGS, now=NOW)
    yield history
    history.close()


@pytest.fixture
def decisions(path: Path, history: History) -> Iterator[Decisions]:
    del history  # comes first
    with closing(Decisions.open(path, now=NOW)) as decisions:
        yield decisions


def incident(start: float = NOW, end: float | None = None, *, site: str = "books", score: int = 40) -> Incident:
    return Incident(
        site=site, start=start, end=end, worst_score=score, worst_band=Band.RESISTING, worst_at=start + 60,
        first_reason=Signal.CHALLENGE, reasons=((start, ((Signal.CHALLENGE, 25.0), (Signal.REFUSED_CAP, 7.5))),),
        advice=((start, Advice(concurrency_ratio=0.0, paused=True)),), diagnosis=Diagnosis.SITE, warned_at=start - HOUR,
        degrading_at=start, resisting_at=start + 30, paused_seconds=12.5,
    )  # fmt: skip


def put(history: History, found: Incident, *, at: float = NOW) -> None:
    history.put_verdict(Verdict(site=found.site, at=at, state=BandState(band=Band.RESISTING)), found)
    assert history.commit(at)


def label(start: float = NOW, said: IncidentLabel = IncidentLabel.TRUE, note: str = "they told us") -> Label:
    return Label(site="books", start=start, at=NOW + DAY, label=said, note=note, reason=Signal.HARD_BLOCK)


def count(history: History) -> dict[tuple[str, ...], float]:
    return dict(history.committed().counter(INCIDENTS))


def test_an_incident_comes_back_as_it_was(history: History, decisions: Decisions) -> None:
    put(history, incident())
    assert decisions.incidents(site="books") == (incident(),)
    assert history.unfinished() == ((incident(),), {})
    put(history, incident(end=NOW + HOUR))
    assert decisions.incidents() == (incident(end=NOW + HOUR),), "in its last state, once"
    assert history.unfinished() == ((), {})


def test_an_incident_counts_once_whatever_comes_of_it(path: Path) -> None:
    history = History.open(path, SETTINGS, now=NOW)
    put(history, incident())
    put(history, incident(score=20))
    history.close()
    history = History.open(path, SETTINGS, now=NOW)
    put(history, incident(end=NOW + HOUR))
    assert count(history) == {("books",): 1}
    put(history, incident(NOW + DAY))
    put(history, incident(site="quotes"))
    assert count(history) == {("books",): 2, ("quotes",): 1}
    history.close()


def test_an_incident_and_its_count_wait_for_a_disk_that_fails(history: History, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        history.put_verdict(Verdict(site="books", at=NOW, state=BandState(band=Band.RESISTING)), incident())
        assert not history.commit(NOW)
        assert (count(history), history.unfinished()) == ({}, ((), {}))
        other.execute("ROLLBACK")
    history.put_verdict(Verdict(site="books", at=NOW, state=BandState(band=Band.RESISTING)), incident(score=5))
    assert history.commit(NOW)
    assert (count(history), history.unfinished()) == ({("books",): 1}, ((incident(score=5),), {}))


def test_a_label_outlives_the_incident_that_is_written_again(history: History, decisions: Decisions) -> None:
    put(history, incident())
    assert decisions.label(label())
    put(history, incident(score=3))
    (found,) = decisions.incidents(site="books")
    assert (found.worst_score, found.label, found.note) == (3, IncidentLabel.TRUE, "they told us")
    assert (found.right_reason, found.labelled_at) == (Signal.HARD_BLOCK, NOW + DAY)
    assert decisions.label(label(said=IncidentLabel.FALSE_ALARM, note=""))
    (found,) = decisions.incidents(site="books")
    assert (found.label, found.note) == (IncidentLabel.FALSE_ALARM, ""), "the last word counts"


def test_a_label_needs_its_incident(decisions: Decisions) -> None:
    assert not decisions.label(label())


def test_incidents_are_found_by_time_and_site_newest_first(history: History, decisions: Decisions) -> None:
    for start, end in ((0, HOUR), (DAY, DAY + HOUR), (2 * DAY, None)):
        put(history, incident(NOW + start, None if end is None else NOW + end))
    put(history, incident(NOW + DAY, NOW + 9 * DAY, site="quotes"))

    def days(**wanted: float) -> list[tuple[str, float]]:
        return [(one.site, (one.start - NOW) / DAY) for one in decisions.incidents(**wanted)]  # type: ignore[arg-type]

    assert days() == [("books", 2), ("books", 1), ("quotes", 1), ("books", 0)]
    assert days(since=NOW + 2 * DAY) == [("books", 2), ("quotes", 1)], "what lasted then"
    assert days(until=NOW + DAY) == [("books", 0)], "an end is not part of its time"
    assert days(limit=1) == [("books", 2)]
    assert [one.start for one in decisions.incidents(site="quotes")] == [NOW + DAY]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        pytest.param("2026-11-30T12:00:00Z", NOW + 0.25, id="as it is printed, to the second"),
        pytest.param("2026-11-30T13:00:00+01:00", NOW + 0.25, id="in another zone"),
        pytest.param("latest", NOW + DAY, id="the latest"),
        pytest.param("2026-11-30T12:00:01Z", None, id="there is none"),
    ],
)
def test_an_incident_has_a_name(history: History, decisions: Decisions, name: str, start: float | None) -> None:
    put(history, incident(NOW + 0.25, NOW + 0.5))
    put(history, incident(NOW + DAY))
    found = decisions.incident("books", name)
    assert (None if found is None else found.start) == start


@pytest.mark.parametrize("name", ["yesterday", "2026-11-30T12:00:00", "T", ""])
def test_what_cannot_be_a_name_is_told(decisions: Decisions, name: str) -> None:
    with pytest.raises(ValueError, match="write one as 2026-12-01T22:00:00Z, or latest"):
        decisions.incident("books", name)


def test_warnings_are_kept_as_they_change(path: Path, history: History) -> None:
    history.put_warned({"books": Warned(since=NOW), "quotes": Warned(since=NOW, ended=NOW + 1)})
    history.commit(NOW)
    history.put_warned({"books": Warned(since=NOW, ended=NOW + HOUR), "quotes": None})
    history.commit(NOW)
    assert history.unfinished()[1] == {"books": Warned(since=NOW, ended=NOW + HOUR)}


def test_an_incident_is_kept_for_five_years_with_its_label(history: History, decisions: Decisions, path: Path) -> None:
    for days in (1, 2000):
        start = NOW + days * DAY
        put(history, incident(start, start + HOUR), at=start)
        decisions.label(label(start))
    put(history, incident(NOW), at=NOW)
    later = NOW + KEPT_SECONDS + 2 * DAY
    for number in range(60):
        history.commit(later + 15 * number)
    assert [one.start for one in decisions.incidents()] == [NOW + 2000 * DAY, NOW], "one that lasts stays"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT start FROM incident_labels").fetchall() == [(NOW + 2000 * DAY,)]


def test_one_that_cannot_be_read_hides_no_other(history: History, decisions: Decisions, path: Path) -> None:
    put(history, incident())
    put(history, incident(NOW + 1))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE incidents SET incident = x'c1' WHERE start = ?", (NOW,))
    assert [one.start for one in decisions.incidents()] == [NOW + 1]


def test_a_history_of_an_earlier_version_has_none(path: Path) -> None:
    History.open(path, SETTINGS, now=NOW).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE incidents")
    with reading(path) as connection:
        assert past_incidents(connection) == ()


def test_the_judge_begins_one_follows_it_over_a_restart_and_ends_it(tmp_path: Path, path: Path) -> None:
    config = Config(sites={"books": Site(name="books", hosts=("books.example",))})
    import_windows(
        path, SETTINGS, (slot(NOW - n * HOUR, Tally(ok=200), seconds=HOUR) for n in range(1, 14 * 24)), now=NOW
    )
    now, found = NOW, []

    def until(wanted: Band, *, refused: int) -> None:
        """Send traffic, of a hundred so many refused, until the band is that one, through a restart at once."""
        nonlocal now
        history = History.open(path, SETTINGS, now=now)
        judge = Judge(history)
        for _ in range(2000):
            now += 60
            history.add(observation(at=now, count=100 - refused))
            if refused:
                history.add(observation(outcome=Outcome.HARD_BLOCK, reason=Reason.HTTP_403, at=now, count=refused))
            history.commit(now)
            judge.judge(config, now)
            if judge.verdicts["books"].band is wanted:
                break
        else:
            pytest.fail(f"the band stays {judge.verdicts['books'].band}")
        history.commit(now)
        found.append((judge.verdicts["books"].at, count(history)))
        history.close()

    until(Band.NORMAL, refused=0)
    until(Band.DEGRADING, refused=40)
    until(Band.RESISTING, refused=99)
    until(Band.NORMAL, refused=0)
    with closing(Decisions.open(path, now=now)) as decisions:
        (one,) = decisions.incidents()
    assert (one.start, one.end) == (found[1][0], found[3][0])
    assert (one.first_reason, one.worst_band, one.resisting_at) == (Signal.HARD_BLOCK, Band.RESISTING, found[2][0])
    assert [counted for _, counted in found] == [{}, {("books",): 1}, {("books",): 1}, {("books",): 1}]
    assert 0 < one.paused_seconds < one.seconds(now)
    assert timedelta(seconds=one.seconds(now)) > timedelta(hours=1)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        pytest.param({"label": "maybe"}, "label: write true or false-alarm", id="no such label"),
        pytest.param({"label": "true", "note": "x" * 501}, "note: write at most 500", id="too long a note"),
        pytest.param(
            {"label": "true", "reason": "refused_cap"}, "reason: write one of hard_block", id="no such reason"
        ),
    ],
)
def test_what_cannot_be_meant_is_told(wanted: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse("books", NOW, wanted.pop("label"), now=NOW, **wanted)


def test_a_note_is_one_line_and_a_blank_reason_is_none() -> None:
    assert parse("books", NOW, "true", now=NOW + DAY, note=" their\n sale ", reason="") == replace(
        label(note="their sale"), reason=None
    )
