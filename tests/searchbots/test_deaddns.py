"""A log whose visitors cannot be looked up: a name server that never answers, for an hour of the log's time."""

from __future__ import annotations

import re
import time
from pathlib import Path

from crawlhealth.searchbotsettings import LogSettings
from searchbots.dnsserver import SILENT, Zone, serving
from searchbots.logwriting import Reading, line
from searchbots.verifying import Clock, verifying
from waiting import until

A_MINUTE = 40
"""Visits, each from an address of its own."""
CONCURRENCY = 16


def googles(name: str, kind: str) -> list[str] | None:
    """A zone in which every address is one of Googlebot's."""
    if kind == "PTR":
        return [f"crawl-{'-'.join(reversed(name.split('.')[:4]))}.googlebot.com."]
    found = re.fullmatch(r"crawl-([\d-]+)\.googlebot\.com\.", name)
    return [found[1].replace("-", ".")] if found and kind == "A" else None


def address(number: int) -> str:
    """Each in a network of its own, so that no proof serves another."""
    return f"60.{number >> 8}.{number & 255}.9"


def test_an_hour_without_dns_costs_no_line_no_time_and_no_name(tmp_path: Path) -> None:
    zone = Zone()
    zone.dead = SILENT
    zone.other = googles
    log = tmp_path / "access.log"
    with (
        serving(zone) as server,
        verifying(server, tmp_path, clock=Clock(), timeout=0.1, concurrency=CONCURRENCY) as bench,
    ):
        verifier = bench.verifier
        reading = Reading(tmp_path, LogSettings(path=log, name="shop", domain="a.example"), identify=verifier.identify)
        seconds = 0.0

        def read(numbers: range) -> None:
            nonlocal seconds
            with log.open("a") as file:
                file.writelines(line(number, address=address(number)) for number in numbers)
            begin = time.perf_counter()
            reading.service.read()
            seconds += time.perf_counter() - begin

        def visits(identity: str) -> float:
            labels = f"searchbot_visits_total default a.example Googlebot {identity} 2xx"
            return reading.metrics().get(labels, 0.0)

        for minute in range(60):
            reading.now += 60
            bench.clock.now += 60
            verifier.tick()
            read(range(minute * A_MINUTE, (minute + 1) * A_MINUTE))
            assert reading.total("log_lines_total") == (minute + 1) * A_MINUTE
            assert verifier.resolver.waiting <= (minute + 1) * A_MINUTE
        assert visits("unverified") == 59 * A_MINUTE, "the last minute's still wait"
        assert visits("fake") == visits("verified") == 0
        assert zone.asked.total() > 0
        assert seconds < 6, "a tenth of a second for each minute's, beside a name server that never answers"

        zone.dead = None
        bench.settle(60)
        read(range(0))
        until(lambda: verifier.resolver.waiting == 0, 20)
        for _ in range(65):  # what failed is asked for again within an hour, though nobody comes
            bench.clock.now += 60
            verifier.tick()
            bench.settle(20)
        read(range(59 * A_MINUTE))
        assert visits("verified") == 60 * A_MINUTE, "those who waited, and all others at their next visit"
        assert visits("unverified") == 59 * A_MINUTE
        assert visits("fake") == 0
        assert verifier.resolver.most_running <= CONCURRENCY
        reading.service.stop()
