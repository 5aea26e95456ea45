"""The reporter and the real exporter, which is killed again and again: every counter equals what was reported."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from pathlib import Path

from crawlhealth.client import Advice, Limits, Reporter
from running import Exporter
from waiting import until

CONFIG = """
    sites: {books: {hosts: [books.example]}, shoes: {hosts: [shoes.example]}}
    routes: {dc-us: {proxy: "http://127.0.0.1:9"}}
    score: {evaluate_every: 200ms}
    history: {commit_every: 50ms}
    push: {tokens: [{env: TOKEN}]}
    """


def wait_for(reporter: Reporter, delivered: int) -> None:
    until(lambda: reporter.counts().delivered >= delivered, 30, f"{delivered} are delivered")


def test_reports_survive_the_exporter_and_are_counted_once(tmp_path: Path) -> None:
    chance = random.Random(3)
    tally: Counter[tuple[str, str, str]] = Counter()
    with Exporter(tmp_path, CONFIG, environ={"TOKEN": "s3cret"}) as exporter:
        port = exporter.url.rpartition(":")[2]
        exporter.write(CONFIG)
        exporter.path.write_text(exporter.path.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
        with Reporter(
            exporter.url, token="s3cret", spool=tmp_path / "spool", flush_every=0.05, limits=Limits(batch=300)
        ) as reporter:
            for _ in range(5):
                for _ in range(2_000):
                    key = (
                        chance.choice(["books", "shoes"]), chance.choice(["direct", "dc-us"]),
                        chance.choice(["ok", "challenge", "error"]),
                    )  # fmt: skip
                    tally[key] += 1
                    site, route, outcome = key
                    reporter.report(site, outcome, route=route, seconds=0.1)
                wait_for(reporter, reporter.counts().delivered + chance.randint(1, 1_500))
                exporter.stop(signal.SIGKILL)
                exporter.start()
            reporter.report("who", "ok")
            assert reporter.flush(60)
            counts = reporter.counts()
        assert (counts.delivered, counts.rejected, counts.dropped) == (10_000, 1, 0)
        exporter.wait_for("crawlhealth_requests_total", 10_000, source="traffic")
        for (site, route, outcome), number in tally.items():
            shown = exporter.value(
                "crawlhealth_requests_total", site=site, route=route, outcome=outcome, source="traffic"
            )
            assert shown == number


def test_advice_is_told_at_once_when_a_person_decides(tmp_path: Path) -> None:
    with (
        Exporter(tmp_path, CONFIG, environ={"TOKEN": "s3cret"}) as exporter,
        Advice(exporter.url, ["books"], every=0.2) as advice,
    ):
        until(lambda: advice.of("books") and advice._tags, 10, "the advice is known")
        assert not advice.of("books").paused
        answer = exporter.post(
            "/api/v1/sites/books/override",
            json={"kind": "pause", "until": "1h", "note": "they asked"},
            headers={"authorization": "Bearer s3cret"},
        )
        assert answer.status_code == 200, answer.text
        began = time.monotonic()
        until(lambda: advice.of("books").paused, 10, "the pause is known")
        assert time.monotonic() - began < 5
