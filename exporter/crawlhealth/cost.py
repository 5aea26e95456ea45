"""Cost: what a valid record and a served page cost, now and normally. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crawlhealth.verdict import Cost, Rates
from crawlhealth.weighted import COLUMNS, OUTCOMES

_RECORDS, _RETRIES, _BYTES, _CREDITS = map(COLUMNS.index, ("records_valid", "retries", "bytes", "credits"))


def per_records(traffic: NDArray[np.float64]) -> list[Cost | None]:
    """What one valid record cost in the traffic of each of N sites; None where it brought none: no number is true then.

    `traffic` has the sums by the columns of `weighted.COLUMNS`; those behind the credits may be missing.
    """
    records = traffic[:, _RECORDS]
    requests = sum((traffic[:, column] for column in range(1, OUTCOMES)), start=traffic[:, 0])
    sums = np.column_stack([requests, traffic[:, _RETRIES], traffic[:, _BYTES], traffic[:, _CREDITS]])
    each = (sums / np.where(records > 0, records, 1.0)[:, None]).tolist()
    return [
        Cost(requests=requests, retries=retries, bytes=octets, credits=credits) if known else None
        for (requests, retries, octets, credits), known in zip(each, (records > 0).tolist(), strict=True)
    ]


def multiplier(now: Rates, baseline: Rates, most: float) -> float:
    """How many times its normal a served page costs: served share normally over served share now, 1 to `most`."""
    served = 1 - now.refused
    normally = 1 - baseline.refused
    if served * most <= normally:
        return most
    return max(1.0, normally / served)
