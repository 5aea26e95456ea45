"""The judge over a real history: what it reads, and what it remembers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from crawlhealth.config import BaselineSettings, Config, ScoreSettings, Site
from crawlhealth.history import FILE_NAME, History, import_windows
from crawlhealth.judge import Judge
from crawlhealth.outcome import Outcome, Reason
from crawlhealth.tally import Tally
from crawlhealth.verdict import Band
from samples import DAY, HOUR, NOW, observation, slot

CONFIG = Config(sites={"books": Site(name="books", hosts=("books.example",))})


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    history = History.open(tmp_path / FILE_NAME, CONFIG.history, now=NOW)
    yield history
    history.close()


def bring(folder: Path, *, days: int, ok: int) -> None:
    """Import an hour for every hour of the last days."""
    slots = (slot(NOW - (n + 1) * HOUR, Tally(ok=ok), seconds=HOUR) for n in range(days * 24))
    import_windows(folder / FILE_NAME, CONFIG.history, slots, now=NOW)


def test_an_import_makes_a_score_and_a_band_at_once(history: History, tmp_path: Path) -> None:
    judge = Judge(history)
    judge.judge(CONFIG, NOW - 15)
    bring(tmp_path, days=14, ok=100)
    judge.judge(CONFIG, NOW)
    verdict = judge.verdicts["books"]
    assert (verdict.score, verdict.band, verdict.unknown) == (100, Band.NORMAL, None)


def test_windows_and_baselines_reach_as_far_as_they_are_long(history: History, tmp_path: Path) -> None:
    bring(tmp_path, days=60, ok=1)
    baseline = BaselineSettings(length=timedelta(days=40), exclude_last=timedelta(days=10), min_requests=1)
    score = ScoreSettings(windows=(timedelta(hours=1), timedelta(hours=72)), baseline=baseline)
    judge = Judge(history)
    judge.judge(replace(CONFIG, score=score), NOW)
    verdict = judge.verdicts["books"]
    assert verdict.window is not None
    assert verdict.window.requests == 103, "one an hour, with a half-life of 72: 72 / ln 2, less those of 24 days ago"
    assert verdict.baseline is not None
    assert verdict.baseline.hours == 40 * 24


def test_a_site_that_comes_back_goes_on_from_its_last_verdict(history: History, tmp_path: Path) -> None:
    bring(tmp_path, days=14, ok=10)
    judge = Judge(history)
    for now in range(0, 300, 15):
        history.add(observation(outcome=Outcome.HARD_BLOCK, reason=Reason.HTTP_403, at=NOW + now, count=1000))
        history.commit(NOW + now)
        judge.judge(CONFIG, NOW + now)
    assert judge.verdicts["books"].band is Band.RESISTING
    judge.judge(replace(CONFIG, sites={}), NOW + 300)
    judge.judge(CONFIG, NOW + 10 * DAY)
    state = judge.verdicts["books"].state
    assert (state.band, state.held) == (Band.RESISTING, True)


def test_traffic_that_gets_nowhere_is_our_uplink_until_something_answers(history: History) -> None:
    sites = ("books", "quotes", "news")
    config = replace(CONFIG, sites={name: Site(name=name, hosts=(f"{name}.example",)) for name in sites})
    judge = Judge(history)

    def at(seconds: float, outcome: Outcome, reason: Reason) -> tuple[bool, set[str]]:
        for site in sites:
            history.add(observation(site=site, outcome=outcome, reason=reason, at=NOW + seconds, count=60))
        history.commit(NOW + seconds)
        judge.judge(config, NOW + seconds)
        return judge.uplink_up, {verdict.diagnosis.value for verdict in judge.verdicts.values()}

    assert at(0, Outcome.OK, Reason.SERVED) == (True, {"none"})
    assert at(15, Outcome.ERROR, Reason.DNS) == (True, {"site"}), "until it has lasted, it may be the sites"
    at(30, Outcome.ERROR, Reason.TIMEOUT)
    assert at(45, Outcome.ERROR, Reason.DNS) == (False, {"self"})
    assert at(60, Outcome.HARD_BLOCK, Reason.HTTP_403)[0], "a refusal is an answer"
