"""The judge over a real history: what it reads, and what it remembers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from crawlhealth.config import Canary, Config, Maintenance, Site
from crawlhealth.history import FILE_NAME, Decisions, History, import_windows, snapshot
from crawlhealth.judge import Judge
from crawlhealth.marks import GOOD, OUTSIDE, RESTING
from crawlhealth.outcome import Outcome, Reason
from crawlhealth.scoresettings import BaselineSettings, ScoreSettings
from crawlhealth.tally import Tally
from crawlhealth.verdict import Accepted, Band, Diagnosis, Signal, Verdict
from samples import DAY, HOUR, NOW, observation, run, slot

CONFIG = Config(sites={"books": Site(name="books", hosts=("books.example",))})


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    history = History.open(tmp_path / FILE_NAME, CONFIG.history, now=NOW)
    yield history
    history.close()


def bring(folder: Path, *, days: int, ok: int, sites: Iterable[str] = ("books",)) -> None:
    """Import an hour for every hour of the last days."""
    slots = (
        slot(NOW - (n + 1) * HOUR, Tally(ok=ok), seconds=HOUR, site=site) for site in sites for n in range(days * 24)
    )
    import_windows(folder / FILE_NAME, CONFIG.history, slots, now=NOW)


def crawl(
    history: History, judge: Judge, now: float, config: Config = CONFIG, *, refused: int = 0, ok: int = 0
) -> Verdict:
    """Let some requests of the site be served and refused at `now`, and judge it then."""
    if ok:
        history.add(observation(at=now, count=ok))
    if refused:
        history.add(observation(outcome=Outcome.HARD_BLOCK, reason=Reason.HTTP_403, at=now, count=refused))
    assert history.commit(now)
    judge.judge(config, now)
    return judge.verdicts["books"]


def reopened(history: History, folder: Path, now: float) -> History:
    history.close()
    return History.open(folder / FILE_NAME, CONFIG.history, now=now)


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


MINUTE = 60.0
CANARY = Canary(name="front", site="books", url="http://books.example/")


@pytest.mark.parametrize("snapshot_left", [pytest.param(True, id="snapshot"), pytest.param(False, id="no snapshot")])
def test_old_good_traffic_does_not_lift_a_site_that_has_stopped_answering(
    history: History, tmp_path: Path, snapshot_left: bool
) -> None:
    """Twelve minutes of refusals, then nothing: neither an hour nor a restart nor two days make it better."""
    bring(tmp_path, days=14, ok=200)
    judge = Judge(history)
    assert crawl(history, judge, NOW).score == 100
    for minute in range(1, 13):
        verdict = crawl(history, judge, NOW + minute * MINUTE, refused=6)
    assert verdict.band is Band.RESISTING
    silent = NOW + 72 * MINUTE
    judge.judge(CONFIG, silent)
    before = judge.verdicts["books"]
    assert before.score is not None
    assert before.score < 50
    history.commit(silent)
    again = reopened(history, tmp_path, silent)
    if not snapshot_left:
        (tmp_path / snapshot.FILE_NAME).unlink()
    judge = Judge(again)
    judge.judge(CONFIG, silent)
    assert (judge.verdicts["books"].score, judge.verdicts["books"].band) == (before.score, Band.RESISTING)
    for later in (8 * HOUR, 2 * DAY):
        judge.judge(CONFIG, NOW + later)
        verdict = judge.verdicts["books"]
        assert (verdict.score, verdict.band, verdict.state.held) == (None, Band.RESISTING, True)
        assert verdict.advice.paused
    again.close()


def test_one_bad_minute_changes_no_band(history: History, tmp_path: Path) -> None:
    bring(tmp_path, days=14, ok=2000)
    judge = Judge(history)
    bands = {crawl(history, judge, NOW + second, ok=8).band for second in range(0, 300, 15)}
    bands |= {crawl(history, judge, NOW + second, refused=8).band for second in range(300, 360, 15)}
    bands |= {crawl(history, judge, NOW + second, ok=8).band for second in range(360, 1800, 15)}
    assert bands == {Band.NORMAL}


def test_canaries_bring_a_paused_site_back_and_only_fresh_traffic_scores(history: History, tmp_path: Path) -> None:
    config = replace(CONFIG, canaries=(CANARY,))
    bring(tmp_path, days=14, ok=200)
    judge = Judge(history)
    now = NOW
    while (verdict := crawl(history, judge, now, config, refused=10)).band is not Band.RESISTING:
        now += MINUTE
    assert verdict.advice.paused
    for _ in range(6):
        history.add_run(run(at=now, outcome=Outcome.HARD_BLOCK))
        assert crawl(history, judge, now, config).advice.paused
        now += 5 * MINUTE
    for served in range(6):
        assert crawl(history, judge, now, config).band is Band.RESISTING, f"{served} served in a row"
        history.add_run(run(at=now))
        now += 5 * MINUTE
    eased = crawl(history, judge, now, config)
    assert (eased.band, eased.state.held, eased.state.eased_at) == (Band.DEGRADING, True, now)
    assert (eased.advice.paused, eased.advice.concurrency_ratio) == (False, 0.25)
    history.commit(now)
    history = reopened(history, tmp_path, now)
    judge = Judge(history)
    slower = crawl(history, judge, now + 14 * MINUTE, config)
    faster = crawl(history, judge, now + 16 * MINUTE, config)
    assert (slower.advice.concurrency_ratio, faster.advice.concurrency_ratio) == (0.25, 0.5)
    assert (slower.score, faster.score) == (None, None), "what was refused is forgotten, over the restart too"
    fresh = crawl(history, judge, now + 17 * MINUTE, config, ok=60)
    assert (fresh.score, fresh.band, fresh.state.held) == (100, Band.DEGRADING, False)
    history.close()


def test_the_next_incident_of_a_site_that_came_back_is_one_more(history: History, tmp_path: Path) -> None:
    """It ends after six hours of good scores; neither its refusals nor those before the pause begin it again."""
    bring(tmp_path, days=14, ok=200)
    judge, decisions = Judge(history), Decisions.open(tmp_path / FILE_NAME, now=NOW)
    for minute in range(100):
        crawl(history, judge, NOW + minute * MINUTE, refused=5, ok=5)
    assert judge.verdicts["books"].band is Band.DEGRADING
    begun: dict[Band, int] = {}
    for minute in range(100, 100 + 20 * 60, 5):
        verdict = crawl(history, judge, NOW + minute * MINUTE, ok=20)
        begun.setdefault(verdict.band, minute - 100)
    assert list(begun) == [Band.DEGRADING, Band.NORMAL]
    assert 360 <= begun[Band.NORMAL] <= 720
    history.commit(NOW + 23 * HOUR)
    (incident,) = decisions.incidents(site="books")
    assert incident.end == NOW + (100 + begun[Band.NORMAL]) * MINUTE
    assert incident.first_reason is Signal.HARD_BLOCK
    decisions.close()


def test_what_a_person_accepts_is_normal_at_once_and_ends_the_incident(history: History, tmp_path: Path) -> None:
    bring(tmp_path, days=14, ok=200)
    decisions = Decisions.open(tmp_path / FILE_NAME, now=NOW)
    judge = Judge(history, decisions)
    now = NOW
    while now < NOW + 7 * HOUR:
        now += 5 * MINUTE
        before = crawl(history, judge, now, ok=14, refused=6)
    assert before.band is Band.DEGRADING
    decisions.accept(Accepted(site="books", at=now, since=NOW, by="me"))
    now += 15
    after = crawl(history, judge, now, ok=1)
    assert (after.band, after.state.since) == (Band.NORMAL, now)
    assert after.score is not None
    assert after.score >= 92
    assert after.baseline is not None
    assert (after.baseline.accepted_at, after.baseline.hours) == (now - 15, 7)
    assert after.baseline.rates.hard_block == pytest.approx(0.3, abs=0.01)
    history.commit(now)
    (incident,) = decisions.incidents(site="books")
    assert incident.end == now
    again = reopened(history, tmp_path, now)
    judge = Judge(again, decisions)
    later = crawl(again, judge, now + 15, ok=1)
    assert (later.band, later.state.since) == (Band.NORMAL, now), "a band begins anew but once"
    assert decisions.undo_accept("books", now + 20)
    for minute in range(1, 90):
        back = crawl(again, judge, now + minute * MINUTE, ok=7, refused=3)
    assert back.band is Band.DEGRADING, "by the normal of before it is an incident again"
    again.close()
    decisions.close()


def test_until_enough_of_what_was_accepted_is_seen_the_normal_before_holds(history: History, tmp_path: Path) -> None:
    bring(tmp_path, days=14, ok=200)
    decisions = Decisions.open(tmp_path / FILE_NAME, now=NOW)
    judge = Judge(history, decisions)
    for minute in range(0, 120, 5):
        verdict = crawl(history, judge, NOW + minute * MINUTE, refused=20)
    assert verdict.band is Band.RESISTING
    decisions.accept(Accepted(site="books", at=NOW + 2 * HOUR, since=NOW))
    for minute in range(120, 360, 5):
        verdict = crawl(history, judge, NOW + minute * MINUTE, refused=20)
        assert verdict.band is Band.RESISTING
    for minute in range(360, 430, 5):
        verdict = crawl(history, judge, NOW + minute * MINUTE, refused=20)
    assert (verdict.band, verdict.score) == (Band.NORMAL, 100)
    decisions.close()


THREE = {name: Site(name=name, hosts=(f"{name}.example",)) for name in ("books", "quotes", "news")}
PLANNED = Maintenance(start="2026-11-30T13:00:00Z", end="2026-11-30T14:00:00Z", sites=("books",))
"""The hour after the first from NOW on."""


def test_hours_of_planned_work_and_of_a_dead_uplink_are_marked_and_not_learnt(history: History, tmp_path: Path) -> None:
    config = replace(CONFIG, sites=THREE, maintenance=(PLANNED,))
    bring(tmp_path, days=14, ok=200, sites=THREE)
    judge = Judge(history)
    for minute in range(0, 240, 5):
        now = NOW + minute * MINUTE
        dead = 130 <= minute < 160
        for site in THREE:
            outcome, reason = (Outcome.ERROR, Reason.DNS) if dead else (Outcome.OK, Reason.SERVED)
            if site == "books" and 60 <= minute < 120:
                outcome, reason = Outcome.HARD_BLOCK, Reason.HTTP_403
            history.add(observation(site=site, outcome=outcome, reason=reason, at=now, count=20))
        history.commit(now)
        judge.judge(config, now)
        assert judge.verdicts["books"].maintenance == (60 <= minute < 120)
    marks = history.judged.of(list(THREE), NOW, NOW + 4 * HOUR).tolist()
    assert marks == [[GOOD, RESTING, RESTING, GOOD], *[[GOOD, GOOD, RESTING, GOOD]] * 2]
    assert {verdict.band for verdict in judge.verdicts.values()} == {Band.NORMAL}
    fresh = replace(config.score, baseline=BaselineSettings(exclude_last=timedelta(0), length=timedelta(hours=30)))
    config = replace(config, score=fresh)
    judge.judge(config, NOW + 4 * HOUR)
    while judge.behind:  # those that the evaluation had no time for
        judge.catch_up(config, NOW + 4 * HOUR)
    judge.judge(config, NOW + 4 * HOUR)
    learnt = [verdict.baseline for verdict in judge.verdicts.values()]
    assert [one.hours for one in learnt if one is not None] == [28, 29, 29]
    assert [one.rates.refused for one in learnt if one is not None] == [0, 0, 0]


def test_planned_work_is_no_incident_even_afterwards(history: History, tmp_path: Path) -> None:
    """All is refused for an hour; what the longer windows hold of it says nothing once it is over."""
    config = replace(CONFIG, maintenance=(PLANNED,))
    bring(tmp_path, days=14, ok=200)
    judge, decisions = Judge(history), Decisions.open(tmp_path / FILE_NAME, now=NOW)
    for minute in range(0, 600, 5):
        planned = 60 <= minute < 120
        verdict = crawl(history, judge, NOW + minute * MINUTE, config, **{"refused" if planned else "ok": 20})
        assert verdict.band in (Band.NORMAL, Band.UNKNOWN), f"minute {minute}"
        if planned or minute == 120:
            assert verdict.band is Band.NORMAL
    assert (verdict.band, verdict.score) == (Band.NORMAL, 100)
    history.commit(NOW + 10 * HOUR)
    assert decisions.incidents(site="books") == ()
    decisions.close()


def test_an_hour_outside_normal_is_marked_and_kept_over_a_restart(history: History, tmp_path: Path) -> None:
    bring(tmp_path, days=14, ok=200)
    judge = Judge(history)
    for minute in range(0, 90, 5):
        crawl(history, judge, NOW + minute * MINUTE, refused=20)
    history = reopened(history, tmp_path, NOW + 90 * MINUTE)
    assert history.judged.of(["books"], NOW, NOW + 2 * HOUR).tolist() == [[OUTSIDE, OUTSIDE]]
    assert history.judged.of(["books"], NOW - HOUR, NOW).tolist() != [[OUTSIDE]]
    history.close()


def test_a_site_that_only_canaries_fetch_is_outside_when_six_in_a_row_are_refused(
    history: History, tmp_path: Path
) -> None:
    config = replace(CONFIG, canaries=(CANARY,))
    judge = Judge(history)
    bands = []
    for number in range(7):
        now = NOW + number * 5 * MINUTE
        history.add_run(run(at=now, outcome=Outcome.HARD_BLOCK))
        verdict = crawl(history, judge, now, config)
        bands.append(verdict.band)
    assert bands == [Band.UNKNOWN] * 5 + [Band.RESISTING] * 2
    assert (verdict.score, verdict.state.held, verdict.advice.paused) == (None, True, True)
    assert verdict.diagnosis is Diagnosis.SITE
