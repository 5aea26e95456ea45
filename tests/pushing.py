"""A made-up crawler fleet: batches of observations as bodies, and its own tally of what they must come to."""

from __future__ import annotations

import gzip
import json
import random
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field

Labels = tuple[str, frozenset[tuple[str, str]]]
Sums = defaultdict[Labels, float]

ROUTES = ("direct", "dc-us", "dc-eu")
OUTCOMES = ("ok",) * 90 + ("hard_block",) * 3 + ("challenge",) * 4 + ("soft_block", "error", "error")
REASONS = {
    "hard_block": ("http_403", "http_429", "connection_reset"),
    "challenge": ("cloudflare_challenge", "datadome_challenge"),
    "soft_block": ("login_page", "redirected_home"),
    "error": ("timeout", "http_503", "proxy"),
    "ok": ("http_404",),
}
BAD = (
    b'{"site": "nobody", "outcome": "ok", "at": %d}',
    b'{"site": "site-0", "outcome": "fine", "at": %d}',
    b'{"site": "site-0", "outcome": "ok", "at": %d000}',
    b'{"site": "site-0", "outcome": "ok", "at": %d, "count": -1}',
    b'{"site": "site-0", "outcome": "ok", "at": %d, "surprise": 1}',
    b'{"site": "site-0", "outcome": "ok", "reason": "timeout", "at": %d}',
    b'{"site": "site-0", "route": "moon", "outcome": "ok", "at": %d}',
    b'{"site": "site-0", "outcome": "ok", "at": %d',
)


@dataclass(slots=True)
class Batch:
    """One body, gzipped, and what it adds to the samples on /metrics."""

    body: bytes
    key: str
    items: int
    bad: int
    adds: Sums = field(default_factory=lambda: Sums(float))


def sample(name: str, **labels: str) -> Labels:
    return "crawlhealth_" + name, frozenset(labels.items())


class Fleet:
    """Makes batches. Seconds and credits are multiples of 1/64, so that their sums are exact in any order."""

    def __init__(self, seed: int, *, sites: int, now: float, bounds: tuple[str, ...], bad: float = 0.01) -> None:
        self._chance = random.Random(seed)
        self._seed = seed
        self._sites = sites
        self._now = now
        self._bounds = bounds
        self._uppers = [float(bound) for bound in bounds]
        self._bad = bad
        self._made = 0

    def batch(self, items: int) -> Batch:
        """A batch of so many items."""
        self._made += 1
        batch = Batch(body=b"", key=f"{self._seed}-{self._made}", items=items, bad=0)
        lines = [self._line(batch) for _ in range(items)]
        if self._made % 7 == 0 and not batch.bad:
            text = b"[" + b",".join(lines) + b"]"
        else:
            text = b"\n".join(lines) + b"\n" * (self._made % 3)
        batch.body = gzip.compress(text, 1)
        return batch

    def _line(self, batch: Batch) -> bytes:
        chance = self._chance
        at = self._now - chance.randrange(3600 * 64) / 64
        if chance.random() < self._bad:
            batch.bad += 1
            return chance.choice(BAD) % at
        outcome = chance.choice(OUTCOMES)
        item: dict[str, object] = {
            "site": f"site-{chance.randrange(self._sites)}", "route": chance.choice(ROUTES), "outcome": outcome,
            "at": at, "seconds": chance.randrange(1, 400) / 64, "bytes": chance.randrange(50_000),
        }  # fmt: skip
        if outcome != "ok" or chance.random() < 0.02:
            item["reason"] = chance.choice(REASONS[outcome])
        if chance.random() < 0.1:
            item["count"] = chance.randrange(1, 50)
        if chance.random() < 0.1:
            item["retries"], item["credits"] = chance.randrange(3), chance.randrange(64) / 64
        if outcome == "ok" and chance.random() < 0.5:
            item["records_valid"], item["records_invalid"] = chance.randrange(3), chance.randrange(2)
            if chance.random() < 0.1:
                item["fields_missing"] = ["price"]
        self._expect(batch.adds, item)
        return json.dumps(item).encode()

    def _expect(self, adds: Sums, item: dict[str, object]) -> None:
        def number(name: str, default: float = 0) -> float:
            value = item.get(name, default)
            assert isinstance(value, int | float)
            return value

        site, route, outcome = str(item["site"]), str(item["route"]), str(item["outcome"])
        count = number("count", 1)
        stratum = {"site": site, "route": route, "source": "traffic"}
        of_site = {"site": site, "source": "traffic"}
        adds[sample("requests_total", **stratum, outcome=outcome)] += count
        adds[sample("response_bytes_total", **stratum)] += number("bytes")
        adds[sample("retries_total", **stratum)] += number("retries")
        adds[sample("credits_total", **stratum)] += number("credits")
        adds[sample("records_total", site=site, result="valid")] += number("records_valid")
        adds[sample("records_total", site=site, result="invalid")] += number("records_invalid")
        if "reason" in item:
            adds[sample("request_reasons_total", **of_site, reason=str(item["reason"]))] += count
        if outcome != "ok":
            return
        seconds = number("seconds")
        adds[sample("request_duration_seconds_sum", **of_site)] += seconds * count
        for bound in self._bounds[bisect_left(self._uppers, seconds) :]:
            adds[sample("request_duration_seconds_bucket", **of_site, le=bound)] += count
        if "records_valid" in item:
            good = bool(item["records_valid"]) and "fields_missing" not in item
            adds[sample("extractions_total", **of_site, result="ok" if good else "failed")] += count
