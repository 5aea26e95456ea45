"""Cost: what a valid record and a served page cost, now and normally. Pure."""

from __future__ import annotations

from crawlhealth.tally import Tally
from crawlhealth.verdict import Cost, Rates
from crawlhealth.weighted import Sums


def per_record(traffic: Tally | Sums) -> Cost | None:
    """What one valid record cost in this traffic; None where it brought none, as then no number is true."""
    records = traffic.records_valid
    if records <= 0:
        return None
    return Cost(
        requests=traffic.requests / records,
        retries=traffic.retries / records,
        bytes=traffic.bytes / records,
        credits=traffic.credits / records,
    )


def multiplier(now: Rates, baseline: Rates, most: float) -> float:
    """How many times its normal a served page costs: served share normally over served share now, 1 to `most`."""
    served = 1 - now.refused
    normally = 1 - baseline.refused
    if served * most <= normally:
        return most
    return max(1.0, normally / served)
