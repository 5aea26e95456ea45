"""Tally: the sums of many observations of one (site, route, source); mergeable, and packed into bytes for storage."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from crawlhealth import stats
from crawlhealth.model import Observation
from crawlhealth.outcome import Outcome, Source
from crawlhealth.verdict import Rates


class Tally(msgspec.Struct, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """Sums of observations. An accumulator: the one mutable noun, owned by whoever fills it.

    `latency` is a histogram of ok responses (stats.BOUNDS), `latency_sum` their seconds. A msgspec structure and not
    a dataclass, because hundreds of thousands are read at a start: that is five times as fast.
    """

    ok: int = 0
    hard_block: int = 0
    challenge: int = 0
    soft_block: int = 0
    error: int = 0
    extractions_ok: int = 0
    extractions_failed: int = 0
    records_valid: int = 0
    records_invalid: int = 0
    bytes: int = 0
    retries: int = 0
    credits: float = 0.0
    latency_sum: float = 0.0
    latency: dict[int, int] = {}

    @property
    def requests(self) -> int:
        """All requests, whatever came of them."""
        return self.ok + self.hard_block + self.challenge + self.soft_block + self.error

    @property
    def refused(self) -> int:
        """Requests that were refused in any way."""
        return self.hard_block + self.challenge + self.soft_block

    @property
    def extractions(self) -> int:
        """Pages that extraction was tried on."""
        return self.extractions_ok + self.extractions_failed

    def of(self, outcome: Outcome) -> int:
        """Requests with this outcome."""
        value: int = getattr(self, outcome.value)
        return value

    def add(self, observation: Observation) -> None:
        """Count one observation."""
        count = observation.count
        name = observation.outcome.value
        setattr(self, name, getattr(self, name) + count)
        self.bytes += observation.bytes
        self.retries += observation.retries
        self.credits += observation.credits
        self.records_valid += observation.records_valid
        self.records_invalid += observation.records_invalid
        if observation.extracted is not None:
            if observation.extracted:
                self.extractions_ok += count
            else:
                self.extractions_failed += count
        if observation.seconds is not None and observation.outcome is Outcome.OK:
            index = stats.bucket(observation.seconds)
            self.latency[index] = self.latency.get(index, 0) + count
            self.latency_sum += observation.seconds * count

    def merge(self, other: Tally) -> None:
        """Add another tally to this one."""
        self.ok += other.ok  # written out: a start and every baseline merge hundreds of thousands
        self.hard_block += other.hard_block
        self.challenge += other.challenge
        self.soft_block += other.soft_block
        self.error += other.error
        self.extractions_ok += other.extractions_ok
        self.extractions_failed += other.extractions_failed
        self.records_valid += other.records_valid
        self.records_invalid += other.records_invalid
        self.bytes += other.bytes
        self.retries += other.retries
        self.credits += other.credits
        self.latency_sum += other.latency_sum
        if not self.latency:
            self.latency = dict(other.latency)
            return
        latency = self.latency
        for index, count in other.latency.items():
            latency[index] = latency.get(index, 0) + count

    def rates(self) -> Rates | None:
        """The signals of this stretch; None without a single request."""
        requests = self.requests
        if requests == 0:
            return None
        return Rates(
            hard_block=self.hard_block / requests,
            challenge=self.challenge / requests,
            soft_block=self.soft_block / requests,
            latency_p95=stats.quantile(self.latency, 0.95),
            extraction=self.extractions_failed / self.extractions if self.extractions else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A site's sums over `seconds` from `start`, for one route and source. Nobody adds to `tally` any more."""

    site: str
    route: str
    source: Source
    start: float
    seconds: float
    tally: Tally


LARGEST = 2**63 - 1
"""The largest sum that is stored."""
_SUMS = tuple(name for name in Tally.__struct_fields__ if name != "latency")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Tally).decode


def merged(tallies: Iterable[Tally]) -> Tally:
    """The sum of tallies as a new one."""
    total = Tally()
    for tally in tallies:
        total.merge(tally)
    return total


def pack(tally: Tally) -> bytes:
    """A tally as bytes (MessagePack array, fields in the order of the class; later versions may append fields).

    Sums beyond 64 bits, which no honest report reaches, stay at the largest number that fits.
    """
    try:
        return _encode(tally)
    except OverflowError:
        return _encode(_clamped(tally))


def _clamped(tally: Tally) -> Tally:
    values = {name: min(getattr(tally, name), LARGEST) for name in _SUMS}
    return Tally(**values, latency={index: min(count, LARGEST) for index, count in tally.latency.items()})


def unpack(data: bytes) -> Tally:
    """The tally that `pack` wrote, or an earlier version with fewer fields. Raises ValueError on anything else."""
    tally = _decode(data)
    if not math.isfinite(tally.credits + tally.latency_sum):
        raise ValueError("not a packed tally")
    return tally
