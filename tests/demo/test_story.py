"""The demo's story must be able to fail: what it sees, what it expects, and what it starts and ends."""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
import requests

from crawlhealth import bundle
from crawlhealth.demo import past
from crawlhealth.demo.live import LiveScreen, Moment, PlainScreen, table
from crawlhealth.demo.processes import DemoError, Ended, Patience, Process, free_port, get
from crawlhealth.demo.setting import write_config
from crawlhealth.demo.sink import Notice, Sink
from crawlhealth.demo.story import (
    LATE,
    MAYBE,
    STORY,
    TOLD,
    Expectation,
    band_is,
    decoys_are,
    notice,
    parser_within,
    passed_through,
    reasons_are,
    score_within,
    untold,
)
from crawlhealth.demo.view import View, view

EXPOSITION = """\
# TYPE crawlhealth_score gauge
crawlhealth_score{site="shop"} 67.0
crawlhealth_score{site="other"} 12.0
# TYPE crawlhealth_band gauge
crawlhealth_band{site="shop",band="normal"} 0.0
crawlhealth_band{site="shop",band="degrading"} 1.0
# TYPE crawlhealth_penalty_points gauge
crawlhealth_penalty_points{site="shop",signal="latency"} 0.4
crawlhealth_penalty_points{site="shop",signal="challenge"} 17.5
crawlhealth_penalty_points{site="shop",signal="soft_block"} 20.0
crawlhealth_penalty_points{site="shop",signal="refused_cap"} 3.0
# TYPE crawlhealth_canary_decoy_suspect gauge
crawlhealth_canary_decoy_suspect{site="shop",canary="a",route="direct"} 1.0
crawlhealth_canary_decoy_suspect{site="shop",canary="b",route="direct"} 0.0
# TYPE crawlhealth_canary_success gauge
crawlhealth_canary_success{site="shop",canary="a",route="direct"} 0.0
crawlhealth_canary_success{site="shop",canary="b",route="direct"} 1.0
"""

FIRING = Notice(path="/page", alert="CrawlTargetResisting", status="firing", labels={"site": "shop"}, summary="")


def test_a_view_is_what_metrics_say_of_one_site() -> None:
    seen = view(EXPOSITION, "shop")
    assert (seen.score, seen.band, seen.parser_score) == (67.0, "degrading", None)
    assert seen.reasons == ("soft_block", "challenge")
    assert (seen.decoys, seen.failing, seen.canaries) == (frozenset("a"), frozenset("a"), 2)


def test_without_samples_nothing_is_known() -> None:
    assert view("", "shop") == View()


@pytest.mark.parametrize(
    ("expectation", "good", "bad"),
    [
        pytest.param(band_is("normal"), View(band="normal"), View(band=None), id="an absent band is not normal"),
        pytest.param(score_within(80, 94), View(score=80), View(score=95), id="a score over the bound"),
        pytest.param(score_within(0, 49), View(score=0), View(score=None), id="an absent score is not 0"),
        pytest.param(parser_within(0, 20), View(parser_score=0), View(parser_score=None), id="nor is a parser score"),
        pytest.param(
            reasons_are("latency"),
            View(penalties={"latency": 9.0, "refused_cap": 4.0}),
            View(penalties={"latency": 9.0, "challenge": 1.0}),
            id="one reason too many",
        ),
        pytest.param(reasons_are(), View(), View(penalties={"latency": 1.0}), id="a reason where none is due"),
        pytest.param(decoys_are("a"), View(decoys=frozenset("a")), View(decoys=frozenset("ab")), id="a false suspect"),
        pytest.param(
            notice("CrawlTargetResisting", "firing", pages=True),
            View(notices=(FIRING,)),
            View(),
            id="no page",
        ),
        pytest.param(
            notice("CrawlTargetResisting", "resolved", pages=True),
            View(notices=(FIRING, Notice(path="/page", alert=FIRING.alert, status="resolved", labels={}, summary=""))),
            View(notices=(FIRING,)),
            id="a page that is not resolved",
        ),
        pytest.param(
            notice("CrawlTargetResisting", "firing", pages=False), View(
                notices=(Notice(path="/notify", alert=FIRING.alert, status="firing", labels={}, summary=""),)
            ), View(notices=(FIRING,)), id="a page where a notice is due",
        ),
    ],
)  # fmt: skip
def test_an_expectation_holds_and_fails(expectation: Expectation, good: View, bad: View) -> None:
    assert expectation.holds(good)
    assert not expectation.holds(bad)


@pytest.mark.parametrize(
    ("bands", "passed"),
    [
        pytest.param([None, "normal", "degrading", "resisting", "degrading", "normal"], True, id="all bands"),
        pytest.param(["normal", "resisting", "normal"], False, id="degrading left out"),
        pytest.param(["normal", "degrading", "resisting", "degrading"], False, id="no way back"),
        pytest.param(["degrading", "resisting", "normal"], False, id="no calm beginning"),
    ],
)
def test_the_journey(bands: list[str | None], passed: bool) -> None:
    assert passed_through(bands) is passed


def test_the_alerts_of_the_story_are_those_it_awaits_and_there_are_such() -> None:
    awaited = {name for stage in STORY for one in stage.expects for name in one.says.split() if one.paging}
    assert {name.rstrip(":") for name in awaited if name.startswith("Crawl")} == TOLD
    assert {alert.name for alert in bundle.alerts()} >= TOLD | MAYBE | LATE


def test_an_alert_of_no_stage_is_found() -> None:
    assert untold([FIRING]) == []
    strange = Notice(path="/digest", alert="CrawlBaselineFrozen", status="firing", labels={}, summary="")
    assert untold([FIRING, strange, strange]) == ["CrawlBaselineFrozen"]


def test_hostility_accumulates_until_the_recovery() -> None:
    hostile = [stage.behaviours for stage in STORY[: [stage.name for stage in STORY].index("recovery")]]
    assert [len(behaviours) for behaviours in hostile] == [0, 1, 2, 3, 4]
    assert all(set(before) < set(after) for before, after in itertools.pairwise(hostile))


def test_the_past_is_hourly_and_adds_up() -> None:
    now = 1_796_040_000.0
    rows = [json.loads(line) for line in past.windows("shop", now=now)]
    starts = [datetime.fromisoformat(row["start"]).timestamp() for row in rows]
    assert len(rows) == past.DAYS * 24
    assert {b - a for a, b in itertools.pairwise(starts)} == {3600}
    assert now - 7200 < starts[-1] <= now - 3600
    for row in rows:
        served = row["requests"] - row["hard_block"] - row["challenge"] - row["soft_block"] - row["error"]
        assert served == row["extractions_ok"] + row["extractions_failed"] > 0


def test_the_configuration_is_written_with_the_real_port(tmp_path: Path) -> None:
    path = write_config(tmp_path, 12345)
    assert "listen: 127.0.0.1:0" in path.read_text()
    canaries = (tmp_path / "canaries" / "shop.yml").read_text()
    assert "http://127.0.0.1:12345/product/7" in canaries
    assert ":8000" not in canaries


def test_the_sink_remembers_what_alertmanager_sends() -> None:
    message = {
        "version": "4",
        "status": "firing",
        "alerts": [
            {
                "status": "firing",
                "labels": {"alertname": "CrawlTargetResisting", "site": "shop"},
                "annotations": {"summary": "refuses"},
                "startsAt": "2026-11-30T12:00:00Z",
            }
        ],
    }
    with Sink() as sink, requests.Session() as session:
        session.trust_env = False
        assert session.post(sink.url("/page"), json=message, timeout=5).status_code == 200
        assert session.post(sink.url("/page"), data=b"{", timeout=5).status_code == 400
        (arrived,) = sink.notices()
    assert arrived == Notice(
        path="/page",
        alert="CrawlTargetResisting",
        status="firing",
        labels={"alertname": "CrawlTargetResisting", "site": "shop"},
        summary="refuses",
    )


def test_a_process_that_ends_says_why(tmp_path: Path) -> None:
    with Patience() as patience, Process("short", [sys.executable, "-c", "exit('no luck')"], tmp_path) as process:
        patience.until(lambda: process.status() is not None, 10, "it ends")
        with pytest.raises(DemoError, match=r"short ended with status 1:\nno luck"):
            process.check()


def test_a_process_is_ended_by_its_id_even_when_it_is_deaf(tmp_path: Path) -> None:
    deaf = "import signal; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
    with Patience() as patience, Process("deaf", [sys.executable, "-c", deaf], tmp_path, mercy=0.3) as process:
        patience.until(lambda: "deaf" in process.log(), 10, "it starts")
        assert process.status() is None
    assert process.status() == -signal.SIGKILL


def test_a_signal_ends_waiting_and_the_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Patience() as patience:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        with pytest.raises(Ended):
            patience.pause(10)
    assert signal.getsignal(signal.SIGTERM) is before


def test_waiting_in_vain_says_for_what() -> None:
    with Patience() as patience, pytest.raises(DemoError, match="in vain: the moon"):
        patience.until(lambda: False, 0.1, "the moon")


def test_a_process_that_does_not_listen_does_not_answer(tmp_path: Path) -> None:
    with Process("idle", [sys.executable, "-c", "import signal; signal.pause()"], tmp_path) as idle:
        assert not idle.answers(f"http://127.0.0.1:{free_port()}/")
    with pytest.raises(requests.ConnectionError):
        get(f"http://127.0.0.1:{free_port()}/")


def moment(seen: View) -> Moment:
    return Moment(stage=STORY[2], number=3, stages=9, seconds=12.0, view=seen, awaited=("the band is degrading",))


def test_the_table_shows_score_reasons_and_addresses() -> None:
    lines = table(moment(view(EXPOSITION, "shop", (FIRING,))), {"exporter": "http://127.0.0.1:1"})
    text = "\n".join(lines)
    for piece in (
        "67",
        "soft_block    20.0 points",
        "decoy suspects: a",
        "1 of 2 fine",
        "http://127.0.0.1:1",
        "firing",
    ):
        assert piece in text


def test_a_terminal_is_redrawn_in_place_and_a_log_gets_no_escapes() -> None:
    screen, log = io.StringIO(), io.StringIO()
    live, plain = LiveScreen(screen, {}, colour=True), PlainScreen(log)
    for _ in range(2):
        live.show(moment(View(band="normal", score=100.0)))
        plain.show(moment(View(band="normal", score=100.0)))
    assert "\x1b[" in screen.getvalue()
    assert "\x1b[" not in log.getvalue()
    assert log.getvalue().count("challenges:") == 1


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        pytest.param(lambda demo: os.kill(demo, signal.SIGINT), 130, "1/9 normal", id="Ctrl-C"),
        pytest.param(
            lambda demo: os.kill(children(demo)[0], signal.SIGKILL), 1, "exporter ended", id="a dead exporter"
        ),
    ],
)
def test_the_demo_ends_all_that_it_started(tmp_path: Path, end: Callable[[int], None], status: int, said: str) -> None:
    """Without Prometheus on the PATH: it says so, and goes on without."""
    command = ["/usr/bin/env", f"PATH={tmp_path}", f"TMPDIR={tmp_path}"]
    command += [sys.executable, "-c", "from crawlhealth import demo; raise SystemExit(demo.run(once=True))"]
    with Patience() as patience, Process("demo", command, tmp_path) as demo:
        patience.until(lambda: "1/9 normal" in demo.log() or demo.status() is not None, 60, "the story begins")
        started = children(demo.pid)
        assert started, demo.log()
        assert "Prometheus is not on the PATH" in demo.log()
        end(demo.pid)
        patience.until(lambda: demo.status() is not None, 30, "it ends")
    assert demo.status() == status
    assert said in demo.log()
    assert not [pid for pid in started if alive(pid)]
    assert [path.name for path in tmp_path.iterdir()] == ["demo.log"]
