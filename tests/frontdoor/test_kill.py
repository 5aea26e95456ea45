"""kill -9 and damage, seen from /metrics and from the site that was fetched."""

from __future__ import annotations

import random
import signal
from pathlib import Path

from crawlhealth.demo.site import PracticeSite
from running import Exporter, Samples, total
from waiting import until

KILLS = 20
COUNTED = ("_total", "_bucket", "_count", "_sum")


def _config(site: PracticeSite, folder: Path) -> str:
    canaries = "\n".join(f'  - {{name: p{number}, url: "{site.url(f"/product/{number}")}"}}' for number in range(1, 21))
    (folder / "canaries.yml").write_text(f"site: shop\nevery: 250ms\ntimeout: 200ms\ncanaries:\n{canaries}\n")
    return """
        sites: {shop: {hosts: [127.0.0.1], max_concurrency: 20, min_gap: 0s}}
        canaries: [canaries.yml]
        history: {commit_every: 50ms}
        score: {evaluate_every: 100ms}
        """


def _counters(samples: Samples) -> Samples:
    return {
        key: value for key, value in samples.items() if key[0].startswith("crawlhealth_") and key[0].endswith(COUNTED)
    }


def test_no_counter_steps_back_over_twenty_kills_and_none_is_counted_twice(tmp_path: Path) -> None:
    chance = random.Random(4)
    before: Samples = {}
    with PracticeSite() as site, Exporter(tmp_path, _config(site, tmp_path)) as exporter:
        for _ in range(KILLS):
            first = _counters(exporter.samples())
            stepped_back = {key: (value, first.get(key)) for key, value in before.items() if first.get(key, -1) < value}
            assert not stepped_back
            goal = (total(first, "crawlhealth_canary_runs_total") or 0) + chance.randint(1, 60)
            exporter.wait_for("crawlhealth_canary_runs_total", goal)
            before = _counters(exporter.samples())
            exporter.stop(signal.SIGKILL)
            exporter.start()
        assert exporter.stop() == 0
        exporter.start()
        samples = exporter.samples()
        served = len(site.requests("/product/"))
    runs = total(samples, "crawlhealth_canary_runs_total")
    assert runs is not None
    assert runs == total(samples, "crawlhealth_requests_total", source="canary")
    assert 20 * KILLS < runs <= served  # a run that a kill cut off was served and not counted, never the other way


def test_a_history_that_cannot_be_read_is_set_aside_and_said(tmp_path: Path) -> None:
    with PracticeSite() as site, Exporter(tmp_path, _config(site, tmp_path)) as exporter:
        exporter.wait_for("crawlhealth_canary_runs_total", 5)
        assert exporter.stop() == 0
        database = tmp_path / "data" / "history.db"
        size = database.stat().st_size
        with database.open("r+b") as file:
            file.write(b"\xff" * 4096)
        exporter.start()
        aside = list((tmp_path / "data").glob("history.db.unreadable-*"))
        until(lambda: (exporter.value("crawlhealth_canary_runs_total") or 0) > 0, 10, "it counts anew", exporter.log)
    kept = [path for path in aside if not path.name.endswith(("-wal", "-shm"))]
    assert [path.stat().st_size for path in kept] == [size]
    assert str(kept[0]) in exporter.log()
