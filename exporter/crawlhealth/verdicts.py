"""Verdicts: what was judged of many sites in arrays, as one object a site. Pure; thousands are made at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.cost import per_record
from crawlhealth.evaluate import Judged
from crawlhealth.outcome import Source
from crawlhealth.panel import Panel
from crawlhealth.score import reasons
from crawlhealth.scoring import UNKNOWNS
from crawlhealth.verdict import Baseline, Penalty, Rates, Signal, Verdict, Window
from crawlhealth.weighted import Sums
from crawlhealth.windows import EPSILON

SIGNALS: Final = (Signal.HARD_BLOCK, Signal.CHALLENGE, Signal.SOFT_BLOCK, Signal.REFUSED, Signal.LATENCY)
"""The order of what is compared."""
_COSTLY: Final = (
    (Signal.HARD_BLOCK, 0), (Signal.CHALLENGE, 1), (Signal.SOFT_BLOCK, 2), (Signal.LATENCY, 4), (Signal.REFUSED_CAP, 3)
)  # fmt: skip
"""The order of points, and where each finds what is compared."""

_Routes = tuple[dict[str, float], dict[str, float], dict[str, int]]


def verdicts(
    panel: Panel, judged: Judged, *, baselines: Sequence[Baseline | None], requests: Sequence[int]
) -> Iterator[Verdict]:
    """The verdict on each site of a panel, in their order; `requests` is how many of each were ever counted."""
    found = judged.scored
    sites = np.arange(len(panel.sites))
    chosen = np.maximum(found.chosen, 0)
    pages = np.maximum(judged.extraction_window, 0)
    columns = zip(
        panel.sites, judged.states.each(), baselines, requests,
        found.chosen.tolist(), _written(judged.score), _written(np.rint(found.raw)), _written(judged.smoothed),
        _written(judged.parser_score), found.unknown.tolist(), found.points.tolist(), _written(found.now),
        _written(found.normal), found.lower.tolist(), _written(found.drift),
        panel.totals[sites, chosen].tolist(), panel.totals[sites, pages, 5:7].tolist(),
        judged.extraction_window.tolist(), _rows(panel, found.chosen),
        strict=True,
    )  # fmt: skip
    half_lives = panel.half_lives.tolist()
    for (
        site, state, baseline, counted, window, value, raw, smoothed, parser, why, points, now, normal, lower, drift,
        total, tried, read, rows,
    ) in columns:  # fmt: skip
        if window < 0:
            yield Verdict(
                site=site, at=judged.at, state=state, unknown=UNKNOWNS[why], baseline=baseline, evidence=counted
            )
            continue
        sums = Sums(*total)
        refused, errors, by_route = _by_route(rows)
        penalties = _penalties(points, now, normal) if baseline is not None else ()
        yield Verdict(
            site=site,
            at=judged.at,
            state=state,
            score=_whole(value),
            score_raw=_whole(raw),
            smoothed=smoothed,
            parser_score=_whole(parser),
            unknown=UNKNOWNS[why],
            penalties=penalties,
            reasons=reasons(penalties) if value is not None else (),
            window=_window(half_lives[window], sums, now, tried if read >= 0 else None, rows),
            lower=Rates(hard_block=lower[0], challenge=lower[1], soft_block=lower[2]),
            baseline=baseline,
            drift={signal: z for signal, z in zip(SIGNALS, drift, strict=True) if z is not None},
            route_refused=refused,
            route_error=errors,
            route_requests=by_route,
            evidence=counted,
        )


_Row = tuple[str, Source, list[float]]


def _rows(panel: Panel, chosen: NDArray[np.intp]) -> Iterator[list[_Row]]:
    """The strata of each site with their sums in its window; those without a request are left out."""
    at = panel.rows[np.arange(len(panel.owner)), np.maximum(chosen, 0)[panel.owner]]
    keys, values = list(panel.keys), at.tolist()
    bounds = np.searchsorted(panel.owner, np.arange(len(panel.sites) + 1)).tolist()
    for place in range(len(panel.sites)):
        yield [(*keys[row], values[row]) for row in range(bounds[place], bounds[place + 1]) if sum(values[row][:5]) > 0]


def _by_route(rows: Sequence[_Row]) -> _Routes:
    """The refused and the lost share of each route, and its whole requests."""
    sums: dict[str, list[float]] = {}
    for route, _, values in rows:
        known = sums.get(route)
        sums[route] = values if known is None else [a + b for a, b in zip(known, values, strict=True)]
    refused, errors, requests = {}, {}, {}
    for route, values in sums.items():
        total = values[0] + values[1] + values[2] + values[3] + values[4]
        refused[route] = (values[1] + values[2] + values[3]) / total
        errors[route] = values[4] / total
        requests[route] = math.floor(total + EPSILON)
    return refused, errors, requests


def _window(
    half_life: float, sums: Sums, now: Sequence[float | None], tried: Sequence[float] | None, rows: Sequence[_Row]
) -> Window:
    """The window that is read, with the extractions of another one when those take longer to come by."""
    pages = tried if tried is not None else (0.0, 0.0)
    extractions = pages[0] + pages[1]
    traffic = [values for _, source, values in rows if source is Source.TRAFFIC]
    paid = sums if len(traffic) == len(rows) else Sums(*map(sum, zip(*traffic, strict=True)))
    return Window(
        seconds=half_life,
        requests=math.floor(sums.requests + EPSILON),
        extractions=math.floor(extractions + EPSILON),
        rates=Rates(
            hard_block=now[0] or 0.0,
            challenge=now[1] or 0.0,
            soft_block=now[2] or 0.0,
            latency_p95=now[4],
            extraction=pages[1] / extractions if extractions > 0 else None,
        ),
        cost=per_record(paid),
    )


def _penalties(
    points: Sequence[float], now: Sequence[float | None], normal: Sequence[float | None]
) -> tuple[Penalty, ...]:
    return tuple(
        [
            Penalty(signal=signal, points=cost, now=now[place] or 0.0, baseline=normal[place] or 0.0)
            for (signal, place), cost in zip(_COSTLY, points, strict=True)
        ]
    )


def _written(values: NDArray[np.float64]) -> list[Any]:
    """Numbers as Python has them, None in place of NaN."""
    return np.where(np.isnan(values), None, values).tolist()  # type: ignore[call-overload,no-any-return] # None makes objects


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
