"""Decisions and size norms on disk: what is in force, for how long, and from which process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlhealth.acceptance import Begun
from crawlhealth.config import HistorySettings
from crawlhealth.history import FILE_NAME, Decisions, History
from crawlhealth.incident import Incident
from crawlhealth.scoresettings import BaselineSettings
from crawlhealth.verdict import Accepted, Band, BandState, Diagnosis, Override, OverrideKind, Signal, Verdict
from samples import DAY, NOW, observation


@pytest.fixture
def decisions(tmp_path: Path) -> Iterator[Decisions]:
    decisions = Decisions.open(tmp_path / FILE_NAME, now=NOW)
    yield decisions
    decisions.close()


def override(*, site: str = "books", at: float = NOW, until: float = NOW + 60, ratio: float = 0.3) -> Override:
    return Override(site=site, kind=OverrideKind.LIMIT, at=at, until=until, concurrency=ratio, note="they asked")


def test_an_override_is_in_force_until_its_end(decisions: Decisions) -> None:
    decisions.put(override())
    assert decisions.active(NOW + 59.9) == {"books": override()}
    assert decisions.active(NOW + 60) == {}


def test_the_latest_override_of_a_site_counts_and_an_older_longer_one_does_not_come_back(decisions: Decisions) -> None:
    decisions.put(override(until=NOW + DAY))
    decisions.put(override(at=NOW + 1, until=NOW + 10, ratio=0.9))
    decisions.put(override(site="quotes", until=NOW + 5))
    assert decisions.active(NOW + 6) == {"books": override(at=NOW + 1, until=NOW + 10, ratio=0.9)}
    assert decisions.active(NOW + 11) == {}


def test_an_override_can_be_ended_before_its_time(decisions: Decisions) -> None:
    decisions.put(override())
    assert decisions.end("books", NOW + 1)
    assert not decisions.end("books", NOW + 2), "there is none any more"
    assert decisions.active(NOW + 2) == {}


def test_another_process_decides_while_an_exporter_writes(tmp_path: Path) -> None:
    history = History.open(tmp_path / FILE_NAME, HistorySettings(), now=NOW)
    here, there = (Decisions.open(tmp_path / FILE_NAME, now=NOW) for _ in range(2))
    history.add(observation())
    there.put(override())
    assert history.commit(NOW + 1)
    assert here.active(NOW + 2) == {"books": override()}
    for each in (here, there, history):
        each.close()


def test_norms_are_kept_and_replaced(tmp_path: Path, decisions: Decisions) -> None:
    decisions.put_norms({("books", "listing"): {250: 40.0}, ("books", ""): {100: 1.0}})
    decisions.put_norms({("books", "listing"): {250: 20.0, 251: 20.5}})
    again = Decisions.open(tmp_path / FILE_NAME, now=NOW)
    assert again.norms() == {("books", "listing"): {250: 20.0, 251: 20.5}, ("books", ""): {100: 1.0}}
    again.close()


def accepted(*, site: str = "books", at: float = NOW, note: str = "their new shop") -> Accepted:
    return Accepted(site=site, at=at, since=at - DAY, by="anna", note=note)


def test_what_was_accepted_is_in_force_until_another_is_or_it_is_taken_back(decisions: Decisions) -> None:
    assert decisions.accepted() == {}
    first, second = accepted(), accepted(at=NOW + 60, note="and again")
    for one in (first, accepted(site="quotes"), second):
        decisions.accept(one)
    assert decisions.accepted() == {"books": second, "quotes": accepted(site="quotes")}
    assert decisions.undo_accept("books", NOW + 90)
    assert decisions.accepted()["books"] == first, "the one before is in force again"
    assert decisions.undo_accept("books", NOW + 95)
    assert not decisions.undo_accept("books", NOW + 99), "there is none any more"
    assert decisions.accepted() == {"quotes": accepted(site="quotes")}
    assert decisions.accepted_of("books") == ((second, NOW + 90), (first, NOW + 95))
    assert decisions.accepted_of("bokos") == ()


def test_an_acceptance_after_one_was_taken_back_counts_and_a_clock_that_steps_back_changes_no_order(
    decisions: Decisions,
) -> None:
    decisions.accept(accepted())
    decisions.undo_accept("books", NOW + 10)
    decisions.accept(accepted(at=NOW - 500, note="after the clock stepped back"))
    assert decisions.accepted()["books"].at == NOW - 500
    decisions.accept(accepted(at=NOW - 900))
    assert decisions.accepted()["books"].at == NOW - 900


def test_a_site_that_is_accepted_again_and_again_stays_small(decisions: Decisions) -> None:
    for number in range(130):
        decisions.accept(accepted(at=NOW + number))
    assert [one.at for one, _ in decisions.accepted_of("books")] == [NOW + 129 - back for back in range(100)]


def test_two_processes_accept_at_once_and_every_one_is_kept_while_an_exporter_writes(tmp_path: Path) -> None:
    history = History.open(tmp_path / FILE_NAME, HistorySettings(), now=NOW)
    here = Decisions.open(tmp_path / FILE_NAME, now=NOW)
    program = (
        "import sys; from pathlib import Path; from crawlhealth.history import Decisions;"
        "from crawlhealth.verdict import Accepted\n"
        f"decisions = Decisions.open(Path(sys.argv[1]), now={NOW})\n"
        "for number in range(20): decisions.accept(Accepted(site=sys.argv[2], at=number, since=0, by=str(number)))\n"
    )
    others = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / FILE_NAME), site]) for site in ("books", "news")
    ]
    for number in range(20):
        here.accept(accepted(site="quotes", at=NOW + number))
        history.add(observation(at=NOW + number))
        assert history.commit(NOW + number)
    assert [other.wait(60) for other in others] == [0, 0]
    assert {site: one.at for site, one in here.accepted().items()} == {"books": 19, "news": 19, "quotes": NOW + 19}
    assert [len(here.accepted_of(site)) for site in ("books", "news", "quotes")] == [20, 20, 20]
    here.close()
    history.close()


def test_since_when_a_site_is_outside_its_normal_is_read_from_disk(tmp_path: Path, decisions: Decisions) -> None:
    settings = BaselineSettings()
    assert decisions.outside_since("books", NOW, settings).since == NOW
    history = History.open(tmp_path / FILE_NAME, HistorySettings(), now=NOW)
    verdict = Verdict(site="books", at=NOW, state=BandState(band=Band.RESISTING, since=NOW - 60), score=31)
    history.put_verdict(verdict)
    history.commit(NOW)
    assert decisions.outside_since("books", NOW, settings).since == NOW - 60
    history.put_verdict(verdict, incident("books", start=NOW - 3600))
    history.commit(NOW)
    assert decisions.outside_since("books", NOW, settings) == Begun(since=NOW - 3600, why="when it left its normal")
    assert decisions.outside_since("quotes", NOW, settings).since == NOW
    history.put_verdict(verdict, incident("books", start=NOW - 3600, end=NOW - 1800))
    history.commit(NOW)
    assert decisions.outside_since("books", NOW, settings).since == NOW - 60, "that one has ended"
    history.close()


def incident(site: str, *, start: float, end: float | None = None) -> Incident:
    return Incident(
        site=site, start=start, end=end, worst_score=31, worst_band=Band.RESISTING, worst_at=start,
        first_reason=Signal.CHALLENGE, diagnosis=Diagnosis.SITE,
    )  # fmt: skip
