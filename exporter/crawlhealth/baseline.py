"""Baseline: the site's own normal, learnt from its hours of two weeks without the last day. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

from crawlhealth import cost
from crawlhealth.config import BaselineSettings
from crawlhealth.model import Baseline
from crawlhealth.outcome import Source
from crawlhealth.tally import Slot, Tally


def learn(slots: Iterable[Slot], *, now: float, settings: BaselineSettings) -> Baseline | None:
    """The normal of one site at `now`, or None with too little to learn from.

    Taken are the blocks (hours) that lie whole within `length` before the excluded last stretch and hold
    `min_requests`, all routes and sources together; at least `min_blocks` of them. The rates are ratios of the summed
    counts, latency the p95 of the merged histograms. Slots finer than a block are summed to it.
    """
    end = now - settings.exclude_last.total_seconds()
    begin = end - settings.length.total_seconds()
    width = settings.block.total_seconds()
    blocks: dict[int, Tally] = {}
    crawled: dict[int, Tally] = {}
    for slot in slots:
        number = math.floor(slot.start / width)
        if number * width >= begin and (number + 1) * width <= end:
            blocks.setdefault(number, Tally()).merge(slot.tally)
            if slot.source is Source.TRAFFIC:
                crawled.setdefault(number, Tally()).merge(slot.tally)
    total, traffic = Tally(), Tally()
    taken = [number for number, tally in blocks.items() if tally.requests >= settings.min_requests]
    for number in taken:
        total.merge(blocks[number])
        traffic.merge(crawled.get(number, Tally()))
    rates = total.rates()
    if rates is None or len(taken) < settings.min_blocks:
        return None
    return Baseline(
        hours=round(len(taken) * width / 3600),
        newest=(max(taken) + 1) * width,
        rates=rates,
        cost=cost.per_record(traffic),
    )
