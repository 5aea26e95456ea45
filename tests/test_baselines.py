"""Baselines of many sites: one after another, the old one until then, and kept over a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlhealth import baselines
from crawlhealth.baselines import Baselines
from crawlhealth.config import BaselineSettings, HistorySettings
from crawlhealth.history import FILE_NAME, History, import_windows
from crawlhealth.tally import Tally
from crawlhealth.verdict import Baseline
from samples import DAY, HOUR, NOW, slot

SITES = ("books", "quotes", "shop")
SETTINGS = BaselineSettings()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    past = (slot(NOW - DAY - n * HOUR, Tally(ok=100), seconds=HOUR, site=site) for site in SITES for n in range(1, 100))
    import_windows(tmp_path / FILE_NAME, HistorySettings(), past, now=NOW)
    history = History.open(tmp_path / FILE_NAME, HistorySettings(), now=NOW)
    yield history
    history.close()


def asked(known: Baselines, now: float = NOW, generation: int = 1) -> list[Baseline | None]:
    known.begin()
    return [known.of(site, generation=generation, settings=SETTINGS, now=now) for site in SITES]


def test_when_time_is_short_one_is_learnt_and_the_others_have_their_turn_later(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baselines, "AT_ONCE_SECONDS", 0.0)
    known = Baselines(history)
    assert [one is not None for one in asked(known)] == [True, False, False]
    assert known.behind == 2
    known.catch_up(SETTINGS, NOW)
    assert known.behind == 0
    assert all(asked(known))


def test_until_its_turn_a_site_keeps_the_baseline_before(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Baselines(history)
    before = asked(known)
    monkeypatch.setattr(baselines, "AT_ONCE_SECONDS", -1.0)
    after = asked(known, generation=2)
    assert after[1:] == before[1:]
    assert known.behind == 2


def test_a_restart_learns_nothing_again(history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = asked(Baselines(history))
    history.commit(NOW)
    history.close()
    again = History.open(tmp_path / FILE_NAME, HistorySettings(), now=NOW)
    monkeypatch.setattr(baselines, "learn", lambda *_, **__: pytest.fail("learnt again"))
    assert asked(Baselines(again)) == before
    again.close()
