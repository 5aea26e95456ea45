"""Overrides and size norms on disk: what is in force, for how long, and from which process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlhealth.config import HistorySettings
from crawlhealth.history import FILE_NAME, Decisions, History
from crawlhealth.verdict import Override, OverrideKind
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
