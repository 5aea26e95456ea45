"""The whole loop with nothing in place of anything: Scrapy crawls two shops, the exporter judges, Scrapy obeys."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crawlhealth.demo.behaviour import Behaviour, Kind
from crawlhealth.demo.past import windows
from crawlhealth.demo.site import Logged, PracticeSite
from crawling import Crawl
from running import Exporter
from waiting import until

SHOP, OTHER = "127.0.0.1", "127.0.0.2"
HELD = 0.1
CONFIG = """
    sites:
      shop: {hosts: ["127.0.0.1"], max_concurrency: 20, min_gap: 0s}
      other: {hosts: ["127.0.0.2"]}
    canaries: [canaries.yml]
    score:
      evaluate_every: 200ms
      windows: [2s]
      min_requests: 15
      enter_after: {degrading: 500ms, resisting: 500ms}
      leave_after: {degrading: 1s, resisting: 0s}
      canaries: {over: 2s, double_every: 1s}
    history: {resolution: 1s, commit_every: 100ms}
    push: {tokens: [{env: TOKEN}]}
    """


def exporter(folder: Path, site: PracticeSite) -> Exporter:
    """With two calm weeks of both shops, and canaries on the one that will turn."""
    pages = [f"  - {{name: p{number}, url: '{site.url(f'/product/{number}')}'}}" for number in range(1, 13)]
    (folder / "canaries.yml").write_text("site: shop\nevery: 500ms\ntimeout: 450ms\ncanaries:\n" + "\n".join(pages))
    made = Exporter(folder, CONFIG, environ={"TOKEN": "s3cret"})
    past = folder / "history.jsonl"
    past.write_text("\n".join(line for name in ("shop", "other") for line in windows(name, now=time.time())) + "\n")
    command = [sys.executable, "-m", "crawlhealth.cli", "import", "--config", str(made.path), str(past)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "TOKEN": "s3cret"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return made


class Asked:
    """What the crawler, and not the canaries, asked of one host."""

    def __init__(self, site: PracticeSite, host: str) -> None:
        self._site, self._host, self._since = site, host, 0.0

    def anew(self) -> None:
        self._since = time.monotonic()

    def requests(self) -> list[Logged]:
        log = self._site.requests("/product/")
        return [one for one in log if one.query and one.host == self._host and one.monotonic >= self._since]

    def pace(self) -> float:
        """Requests a second."""
        times = [one.monotonic for one in self.requests()]
        return (len(times) - 1) / (times[-1] - times[0])

    def together(self) -> int:
        """The most requests that were under way at the same time."""
        times = [one.monotonic for one in self.requests()]
        return max(sum(begun <= other < begun + HELD * 0.95 for other in times) for begun in times)


@pytest.mark.alone
def test_the_crawl_slows_pauses_and_resumes_as_the_site_turns_and_the_other_keeps_its_speed(tmp_path: Path) -> None:
    with PracticeSite(addresses=(SHOP, OTHER)) as site, exporter(tmp_path, site) as judge:
        slow = Behaviour(kind=Kind.SLOW, seconds=HELD)
        site.behave(slow)
        shop, other = Asked(site, SHOP), Asked(site, OTHER)

        def seen(*paces: str) -> None:
            """Wait until the crawler has heard of it, and what was under way before is over."""
            until(
                lambda: running.log().rpartition("site shop: ")[2].startswith(paces), 40, f"{paces} is heard of",
                lambda: running.log() + judge.get("/api/v1/sites/shop").text,
            )  # fmt: skip
            over = time.monotonic() + 2 * HELD
            until(lambda: time.monotonic() > over, 5)
            shop.anew()
            other.anew()

        def asked(count: int, of: Asked) -> None:
            until(lambda: len(of.requests()) >= count, 30, "the crawl goes on", running.log)

        with Crawl(
            tmp_path, [site.url("/product/1", host=host) for host in (SHOP, OTHER)], "both",
            CRAWLHEALTH_URL=judge.url, CRAWLHEALTH_TOKEN="s3cret", CRAWLHEALTH_SITES={"shop": [SHOP], "other": [OTHER]},
            CRAWLHEALTH_SPOOL=str(tmp_path / "spool"), CRAWLHEALTH_REQUIRED_FIELDS=["name", "price"],
        ) as running:  # fmt: skip
            asked(100, shop)
            judge.wait_for("crawlhealth_band", 1, site="shop", band="normal")
            judge.wait_for("crawlhealth_band", 1, site="other", band="normal")
            assert shop.together() >= 8

            site.behave(slow, Behaviour(kind=Kind.CHALLENGE, host=SHOP, share=0.4))
            seen("4", "5", "6")  # % of the usual concurrency
            asked(40, other)
            assert 1 <= shop.together() <= 5
            usual = other.pace()
            assert other.together() >= 8

            site.behave(slow, Behaviour(kind=Kind.CHALLENGE, host=SHOP))
            seen("paused")
            asked(100, other)
            assert shop.requests() == []
            assert other.pace() > 0.6 * usual
            assert judge.value("crawlhealth_advice_paused", site="shop") == 1
            assert running.running()

            site.behave(slow)
            seen("100 %")
            asked(40, shop)
            assert shop.together() >= 8
            assert "site other" not in running.log()
            running.stop()
        served = [one for one in site.requests("/product/") if one.query]
        for name, host in (("shop", SHOP), ("other", OTHER)):
            sent = sum(one.host == host for one in served)
            judge.wait_for("crawlhealth_requests_total", sent, site=name, source="traffic")
            assert judge.value("crawlhealth_requests_total", site=name, source="traffic") == sent
        challenged = sum(Kind.CHALLENGE in one.behaviours for one in served)
        assert judge.value("crawlhealth_requests_total", source="traffic", outcome="challenge") == challenged
        assert judge.value("crawlhealth_records_total", result="valid") == len(served) - challenged
