"""Everything a fleet pushes, and nothing twice: every counter equals the fleet's own tally, whatever is killed.

60,000 observations in the suite; CRAWLHEALTH_PUSHED=1000000 for as many as the promise says.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import requests

from crawlhealth import metrics, stats
from pushing import ROUTES, Batch, Fleet, Sums, sample
from running import Exporter, plain_session
from waiting import until

PUSHED = int(os.environ.get("CRAWLHEALTH_PUSHED", "60000"))
CLIENTS = 4
SITES = 20
KILLS = 4
LARGEST = 4000
REPEATED = 0.05

CONFIG = f"""
sites: {{{", ".join(f"site-{number}: {{hosts: [s{number}.example]}}" for number in range(SITES))}}}
routes: {{{", ".join(f"{route}: {{}}" for route in ROUTES)}}}
"""
BOUNDS = tuple(label for label, _ in stats.published({}, metrics.HISTOGRAM_FIRST, metrics.HISTOGRAM_LAST))
HEADERS = {"content-type": "application/x-ndjson", "content-encoding": "gzip"}


class Client:
    """One crawler process: sends its batches in order, each until it is acknowledged, some of them twice."""

    def __init__(self, number: int, exporter: Exporter, observations: int) -> None:
        self._exporter = exporter
        self._chance = random.Random(100 + number)
        self._fleet = Fleet(number, sites=SITES, now=time.time(), bounds=BOUNDS)
        self._left = observations
        self._pause = threading.Event()
        self.sent: list[Batch] = []
        self.repeats = 0
        self.retries = 0
        self.wrong: list[str] = []
        self.thread = threading.Thread(target=self._run, name=f"client-{number}")

    def _run(self) -> None:
        with plain_session() as session:
            while self._left > 0 and not self.wrong:
                batch = self._fleet.batch(min(self._left, self._chance.randint(1, LARGEST)))
                self._left -= batch.items
                self._send(session, batch)
                self.sent.append(batch)
                while self._chance.random() < REPEATED:
                    self.repeats += 1
                    self._send(session, self._chance.choice(self.sent))

    def _send(self, session: requests.Session, batch: Batch) -> None:
        headers = {**HEADERS, "idempotency-key": batch.key}
        while True:
            try:
                url = self._exporter.url + "/api/v1/observations"
                answer = session.post(url, data=batch.body, headers=headers, timeout=30)
            except requests.RequestException:
                self.retries += 1
                self._pause.wait(0.05)
                continue
            if answer.status_code in (429, 503):
                self._pause.wait(0.05)
                continue
            said = answer.json()
            if (said["accepted"], said["rejected_items"]) != (batch.items - batch.bad, batch.bad):
                self.wrong.append(f"{answer.status_code} {answer.text} for {batch.items} items, {batch.bad} bad")
            return


def test_every_counter_equals_the_tally_of_the_fleet(tmp_path: Path) -> None:
    chance = random.Random(3)
    with Exporter(tmp_path, CONFIG) as exporter:
        clients = [Client(number, exporter, PUSHED // CLIENTS) for number in range(CLIENTS)]
        for client in clients:
            client.thread.start()
        for kill in range(1, KILLS + 1):
            least = PUSHED * (kill + chance.random()) / (KILLS + 2)
            _until_sent(clients, least, exporter)
            exporter.stop(signal.SIGKILL)
            exporter.start()
        for client in clients:
            client.thread.join(120 + PUSHED / 5000)
            assert not client.thread.is_alive()
            assert not client.wrong
        expected = _expected(clients)
        exporter.stop(signal.SIGKILL)
        exporter.start()
        samples = exporter.samples()
        assert sum(client.retries for client in clients) > 0, "no kill cut a push off"
        assert sum(client.repeats for client in clients) > 0
        names = {name for name, _ in expected}
        repeats = ("result", "duplicate")  # acknowledged before they are on disk, for they count nothing
        counted = {(name, labels) for name, labels in samples if name in names and repeats not in labels}
        differences = {
            key: (samples.get(key, 0), expected[key])
            for key in counted | expected.keys()
            if samples.get(key, 0) != expected[key]
        }
        assert not differences
        assert sum(value for (name, _), value in expected.items() if name.endswith("requests_total")) > PUSHED


def _until_sent(clients: list[Client], least: float, exporter: Exporter) -> None:
    def enough() -> bool:
        return sum(batch.items for client in clients for batch in tuple(client.sent)) >= least

    until(enough, 120 + PUSHED / 2000, "the clients get on", exporter.log)


def _expected(clients: list[Client]) -> Sums:
    expected = Sums(float)
    for client in clients:
        for batch in client.sent:
            for key, amount in batch.adds.items():
                expected[key] += amount
            expected[sample("push_items_total", result="accepted")] += batch.items - batch.bad
            expected[sample("push_items_total", result="rejected")] += batch.bad
            expected[sample("push_batches_total", result="rejected" if batch.bad == batch.items else "accepted")] += 1
    return expected
