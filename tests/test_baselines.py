"""Baselines of many sites: one after another, the old one until then, and kept over a restart."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crawlhealth import baselines
from crawlhealth.baselines import Baselines
from crawlhealth.config import HistorySettings
from crawlhealth.history import FILE_NAME, History, import_windows
from crawlhealth.marks import GOOD, NONE, OUTSIDE, UNKNOWN
from crawlhealth.outcome import Source
from crawlhealth.scoresettings import BaselineSettings, ScoreSettings
from crawlhealth.tally import Slot, Tally
from crawlhealth.verdict import Accepted, Baseline
from samples import DAY, HOUR, NOW, slot

SITES = ("books", "quotes", "shop")
SETTINGS = ScoreSettings()
PLAIN = ScoreSettings(method="plain")
SERVED = Tally(ok=100)


@pytest.fixture(autouse=True)
def with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is time for all sites at once, however busy the machine is."""
    monkeypatch.setattr(baselines, "AT_ONCE_SECONDS", 60.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    bring(path, (hour(n, site=site) for site in SITES for n in range(25, 124)))
    history = History.open(path, HistorySettings(), now=NOW)
    yield history
    history.close()


def hour(ago: int, tally: Tally = SERVED, *, site: str = "books", route: str = "direct") -> Slot:
    """The hour that began so many hours before NOW."""
    return slot(NOW - ago * HOUR, tally, seconds=HOUR, site=site, route=route)


def bring(path: Path, slots: Iterable[Slot]) -> None:
    import_windows(path, HistorySettings(), slots, now=NOW)


def asked(
    known: Baselines,
    now: float = NOW,
    *,
    generation: int = 1,
    settings: ScoreSettings = SETTINGS,
    accepted: Mapping[str, Accepted] | None = None,
) -> list[Baseline | None]:
    known.begin(accepted or {})
    return [known.of(site, generation=generation, settings=settings, now=now) for site in SITES]


def there(found: list[Baseline | None]) -> list[bool]:
    return [one is not None for one in found]


def marks(history: History, site: str = "books", *, hours: int) -> list[int]:
    """How the last hours before NOW are marked."""
    found: list[int] = history.judged.of([site], NOW - hours * HOUR, NOW)[0].tolist()
    return found


def test_when_time_is_short_one_is_learnt_and_the_others_have_their_turn_later(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baselines, "AT_ONCE_SECONDS", 0.0)
    known = Baselines(history)
    assert there(asked(known)) == [True, False, False]
    assert known.behind == 2
    known.catch_up(SETTINGS, NOW)
    assert known.behind == 0
    assert all(asked(known))


def test_what_is_learnt_of_sites_together_is_what_is_learnt_of_each(
    history: History, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sites of different age, routes and rates, one of them unknown."""
    shop = [hour(n, Tally(ok=60 + n % 7, challenge=n % 3), site="shop", route="dc-us") for n in range(1, 300)]
    quotes = [hour(n, Tally(ok=40, hard_block=n % 5, latency={140 + n % 9: 40}), site="quotes") for n in range(1, 60)]
    bring(path, [*shop, *quotes])
    together, alone = Baselines(history), Baselines(history)
    monkeypatch.setattr(baselines, "AT_ONCE_SECONDS", -1.0)
    assert there(asked(together)) == [True, False, False]
    together.catch_up(SETTINGS, NOW)
    monkeypatch.setattr(baselines, "AT_ONCE_SECONDS", 60.0)
    assert asked(together) == asked(alone)
    assert [one.strata != () for one in asked(alone) if one is not None] == [False, False, True]
    known = together.of("nowhere", generation=1, settings=SETTINGS, now=NOW)
    assert known is None


def test_until_its_turn_a_site_keeps_the_baseline_before(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Baselines(history)
    before = asked(known)
    monkeypatch.setattr(baselines, "AT_ONCE_SECONDS", -1.0)
    after = asked(known, generation=2)
    assert after[1:] == before[1:]
    assert known.behind == 2


def test_a_restart_learns_nothing_again(history: History, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = asked(Baselines(history))
    history.commit(NOW)
    history.close()
    again = History.open(path, HistorySettings(), now=NOW)
    monkeypatch.setattr(baselines, "learn", lambda *_, **__: pytest.fail("learnt again"))
    assert asked(Baselines(again)) == before
    again.close()


@pytest.mark.parametrize(
    ("days", "soonest"),
    [
        pytest.param(0, 3600, id="of nothing after an hour"),
        pytest.param(1, 7200, id="of a day after two hours"),
        pytest.param(4, 8 * 3600, id="of four days after eight"),
        pytest.param(14, 86_400, id="of two weeks after a day"),
    ],
)
def test_it_is_learnt_again_as_the_history_grows(path: Path, days: int, soonest: float) -> None:
    bring(path, (hour(n + 1) for n in range(days * 24)))
    with closing(History.open(path, HistorySettings(), now=NOW)) as history:
        known = Baselines(history)
        asked(known)
        asked(known, NOW + soonest - 1)
        history.commit(NOW)
        assert history.baselines()["books"].at == NOW
        asked(known, NOW + soonest * 9 / 8)  # an eighth of it is by how much sites are spread
        history.commit(NOW)
        assert history.baselines()["books"].at == NOW + soonest * 9 / 8


def test_not_all_sites_are_learnt_in_the_same_second(history: History) -> None:
    asked(Baselines(history))
    history.commit(NOW)
    dues = [history.baselines()[site].due - NOW for site in SITES]
    age = 123 * HOUR / 12
    assert len(set(dues)) == len(SITES)
    assert all(age <= due <= age * 9 / 8 for due in dues)


def test_what_changes_what_a_baseline_is_made_of_has_it_learnt_at_once(history: History) -> None:
    known = Baselines(history)
    (first, *_) = asked(known)
    (import_, *_) = asked(known, generation=2)
    assert import_ is not first
    assert asked(known, generation=2)[0] is import_
    fewer = replace(SETTINGS, baseline=replace(BaselineSettings(), min_requests=100, level=0.6))
    (other, *_) = asked(known, generation=2, settings=fewer)
    assert other is not import_
    (stepped, *_) = asked(known, NOW - HOUR, generation=2, settings=fewer)
    assert stepped is not other, "a clock that steps back"
    assert [one.learnt_at for one in (import_, other, stepped) if one is not None] == [NOW, NOW, NOW - HOUR]


def test_a_baseline_is_kept_while_nothing_is_left_to_learn_from(history: History) -> None:
    known = Baselines(history)
    (first, *_) = asked(known)
    (later, *_) = asked(known, NOW + 40 * DAY)
    assert later == first
    assert asked(known, NOW + 40 * DAY, generation=2) == [None] * 3, "of another history nothing is kept"


INCIDENT = range(60, 84)
"""The hours in which half of all was refused."""


def imported(path: Path, *, days: int = 10) -> None:
    """Good hours until NOW with a day of refusals in them."""
    bring(path, (hour(n, Tally(ok=100, hard_block=100) if n in INCIDENT else SERVED) for n in range(1, days * 24)))


def test_hours_that_were_imported_are_judged_by_a_replay_and_their_marks_are_kept(path: Path) -> None:
    imported(path)
    with closing(History.open(path, HistorySettings(), now=NOW)) as history:
        (learnt, *_) = asked(Baselines(history))
        found = marks(history, hours=10 * 24 - 1)
    first_day, before, during = found[:20], found[40 : -INCIDENT.stop], found[-INCIDENT.stop : -INCIDENT.start]
    assert set(first_day) == {UNKNOWN}, "nothing was learnt yet"
    assert set(before) == {GOOD}
    assert set(during[2:]) == {OUTSIDE}
    assert set(found[-24:]) == {GOOD}, "it is over, and the last day is good"
    assert learnt is not None
    assert learnt.rates.hard_block == 0.0
    again = History.open(path, HistorySettings(), now=NOW)
    with closing(again):
        assert marks(again, hours=10 * 24 - 1) == found


def test_an_incident_that_was_imported_is_no_normal_even_where_it_lasted_longer_than_all_else(path: Path) -> None:
    """For four days half was refused, after two and a half good ones: by the plain ratio that is most of the normal."""
    long = range(25, 121)
    bring(path, (hour(n, Tally(ok=100, hard_block=100) if n in long else SERVED) for n in range(1, 181)))
    with closing(History.open(path, HistorySettings(), now=NOW)) as history:
        (robust, *_) = asked(Baselines(history))
        (plain, *_) = asked(Baselines(history), settings=PLAIN)
    assert robust is not None
    assert plain is not None
    assert robust.rates.hard_block == 0.0
    assert robust.hours == 59, "of the sixty the last may have been a part of it"
    assert plain.rates.hard_block == pytest.approx(96 / (2 * 96 + 60))


def test_what_was_judged_at_its_time_stands(path: Path) -> None:
    """A replay fills in what nobody judged; of all else it says nothing, and too few missing hours are not worth it."""
    imported(path)
    with closing(History.open(path, HistorySettings(), now=NOW)) as history:
        judged = np.full(10 * 24 - 1, 97, dtype=np.uint8)
        judged[100:130] = NONE
        history.judged.replace("books", NOW - len(judged) * HOUR, judged)
        asked(Baselines(history))
        found = marks(history, hours=len(judged))
        assert found[:100] + found[130:] == [97] * (len(judged) - 30)
        assert set(found[100:130]) == {GOOD}
        few = np.array([*found[:-40], *[NONE] * 20, *found[-20:]], dtype=np.uint8)
        history.judged.replace("books", NOW - len(few) * HOUR, few, over=True)
        asked(Baselines(history))
        assert marks(history, hours=len(few))[-40:-20] == [NONE] * 20


def test_the_plain_method_judges_no_hours(path: Path) -> None:
    imported(path)
    with closing(History.open(path, HistorySettings(), now=NOW)) as history:
        asked(Baselines(history), settings=PLAIN)
        assert set(marks(history, hours=200)) == {NONE}


def test_what_a_person_accepts_is_the_normal_at_once_and_no_longer_when_it_is_taken_back(path: Path) -> None:
    bring(path, (hour(n, Tally(ok=70, hard_block=30) if n <= 48 else SERVED) for n in range(1, 200)))
    accepted = {"books": Accepted(site="books", at=NOW, since=NOW - 48 * HOUR, by="me")}
    with closing(History.open(path, HistorySettings(), now=NOW)) as history:
        known = Baselines(history)
        (before, *_) = asked(known)
        (after, *_) = asked(known, accepted=accepted)
        (again, *_) = asked(known)
    assert before is not None
    assert after is not None
    assert again is not None
    assert (before.rates.hard_block, before.accepted_at) == (0.0, None)
    assert (after.rates.hard_block, after.accepted_at, after.hours) == (0.3, NOW, 48)
    assert (again.rates.hard_block, again.accepted_at) == (0.0, None)


def test_a_site_that_serves_less_than_half_waits_for_a_person(path: Path) -> None:
    bring(path, (hour(n, Tally(ok=40, challenge=60)) for n in range(1, 200)))
    accepted = {"books": Accepted(site="books", at=NOW, since=NOW - 100 * HOUR)}
    with closing(History.open(path, HistorySettings(), now=NOW)) as history:
        known = Baselines(history)
        (before, *_) = asked(known)
        (after, *_) = asked(known, accepted=accepted)
    assert before is not None
    assert after is not None
    assert (before.refused, after.refused, after.rates.challenge) == (True, False, 0.6)


def damage(path: Path, site: str) -> None:
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE days SET strata = x'00ff' WHERE site = ?", (site,))


def test_a_history_that_cannot_be_read_keeps_no_other_site_from_its_baseline(
    history: History, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    known = Baselines(history)
    (before, *_) = asked(known)
    damage(path, "shop")
    monkeypatch.setattr(baselines, "AT_ONCE_SECONDS", -1.0)
    later = asked(known, generation=2)
    assert known.behind == 2
    known.catch_up(SETTINGS, NOW)
    assert known.behind == 0
    monkeypatch.setattr(baselines, "AT_ONCE_SECONDS", 60.0)
    caplog.clear()
    found = asked(known, generation=2)
    assert caplog.records == [], "it is left alone for a minute"
    assert before is not None
    assert there(found) == [True, True, True]
    assert found[2] is later[2], "what cannot be learnt again stays as it was"
    assert found[1] is not later[1], "and the others are learnt, though they were to be together"
    caplog.set_level(logging.ERROR)
    asked(known, NOW + baselines.RETRY_SECONDS + 1, generation=2)
    assert "cannot learn the baseline of shop" in caplog.text
    assert "quotes" not in caplog.text


def test_canaries_and_traffic_are_ways_of_their_own(path: Path) -> None:
    canary = (slot(NOW - n * HOUR, Tally(ok=60), seconds=HOUR, source=Source.CANARY) for n in range(1, 200))
    bring(path, [*canary, *(hour(n, Tally(ok=54, challenge=6)) for n in range(1, 200))])
    with closing(History.open(path, HistorySettings(), now=NOW)) as history:
        (found, *_) = asked(Baselines(history))
    assert found is not None
    assert {(one.source, one.rates.challenge) for one in found.strata} == {("canary", 0.0), ("traffic", 0.1)}
    assert found.rates.challenge == 0.05
