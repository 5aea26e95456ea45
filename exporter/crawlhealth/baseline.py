"""Baseline: the site's own normal, learnt from its hours of two weeks without the last day. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

from crawlhealth import cost
from crawlhealth.config import BaselineSettings
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally, merged
from crawlhealth.verdict import Baseline


def learn(slots: Iterable[Slot], *, now: float, settings: BaselineSettings) -> Baseline | None:
    """The normal of one site at `now`, or None with too little to learn from.

    Taken are the blocks (hours) that lie whole within `length` before the excluded last stretch and hold
    `min_requests`, all routes and sources together; at least `min_blocks` of them. The rates are ratios of the summed
    counts, latency the p95 of the merged histograms. Slots finer than a block are summed to it.
    """
    end = now - settings.exclude_last.total_seconds()
    begin = end - settings.length.total_seconds()
    width = settings.block.total_seconds()
    blocks: dict[int, list[Slot]] = {}
    for slot in slots:
        number = math.floor(slot.start / width)
        if number * width >= begin and (number + 1) * width <= end:
            blocks.setdefault(number, []).append(slot)
    taken = [
        number
        for number, within in blocks.items()
        if sum(slot.tally.requests for slot in within) >= settings.min_requests
    ]
    by_source = {source: Tally() for source in Source}
    for number in taken:
        for slot in blocks[number]:
            by_source[slot.source].merge(slot.tally)
    total, traffic = merged(by_source.values()), by_source[Source.TRAFFIC]
    rates = total.rates()
    if rates is None or len(taken) < settings.min_blocks:
        return None
    return Baseline(
        hours=round(len(taken) * width / 3600),
        newest=(max(taken) + 1) * width,
        rates=rates,
        cost=cost.per_record(traffic),
    )
