"""Verdicts: what was judged of many sites in arrays, as one object a site. Pure; thousands are made at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.cost import per_records
from crawlhealth.evaluate import Judged
from crawlhealth.outcome import Source
from crawlhealth.panel import Panel
from crawlhealth.score import reasons
from crawlhealth.scoring import UNKNOWNS
from crawlhealth.verdict import Baseline, Bounds, Cost, Penalty, Rates, Signal, Verdict, Window
from crawlhealth.weighted import OUTCOMES
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
    rows = _Rows(panel, found.chosen)
    columns = zip(
        panel.sites, judged.states.each(), baselines, requests,
        found.chosen.tolist(), _written(judged.score), _written(np.rint(found.raw)), _written(judged.smoothed),
        _written(judged.parser_score), found.unknown.tolist(), found.points.tolist(), _written(found.now),
        _written(found.normal), found.lower.tolist(), _written(found.drift),
        found.requests[sites, chosen].tolist(), panel.totals[sites, pages, 5:7].tolist(),
        judged.extraction_window.tolist(), range(len(sites)),
        strict=True,
    )  # fmt: skip
    half_lives = panel.half_lives.tolist()
    for (
        site, state, baseline, counted, window, value, raw, smoothed, parser, why, points, now, normal, lower, drift,
        total, tried, read, place,
    ) in columns:  # fmt: skip
        if window < 0:
            yield Verdict(
                site=site, at=judged.at, state=state, unknown=UNKNOWNS[why], baseline=baseline, evidence=counted
            )
            continue
        refused, errors, by_route = rows.routes(place)
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
            window=_window(half_lives[window], total, now, tried=tried if read >= 0 else None, cost=rows.paid[place]),
            lower=_bounds(lower) if baseline is not None else None,
            baseline=baseline,
            drift={signal: z for signal, z in zip(SIGNALS, drift, strict=True) if z is not None},
            route_refused=refused,
            route_error=errors,
            route_requests=by_route,
            evidence=counted,
        )


class _Rows:
    """What the strata of each site hold in its window."""

    def __init__(self, panel: Panel, chosen: NDArray[np.intp]) -> None:
        at = panel.rows[np.arange(len(panel.owner)), np.maximum(chosen, 0)[panel.owner]]
        requests = sum((at[:, column] for column in range(1, OUTCOMES)), start=at[:, 0])
        some = np.where(requests > 0, requests, 1.0)
        refused = at[:, 1] + at[:, 2] + at[:, 3]
        keys = list(panel.keys)
        self._routes = [route for route, _ in keys]
        self._refused, self._error = (refused / some).tolist(), (at[:, 4] / some).tolist()
        self._requests = np.floor(requests + EPSILON).astype(np.int64).tolist()
        self._known = (requests > 0).tolist()
        self._simple = all(self._known) and len({source for _, source in keys}) <= 1
        self._counts = np.column_stack([refused, at[:, 4], requests])
        self._bounds = np.searchsorted(panel.owner, np.arange(len(panel.sites) + 1)).tolist()
        traffic = np.array([source is Source.TRAFFIC for _, source in keys], dtype=np.bool_)
        self.paid = per_records(_sums(panel, np.where(traffic[:, None], at, 0.0)))
        """What a valid record cost the traffic of each site."""

    def routes(self, place: int) -> _Routes:
        """The refused and the lost share of each route of a site that has requests, and how many whole ones."""
        begin, end = self._bounds[place], self._bounds[place + 1]
        routes = self._routes[begin:end]
        if not self._simple and (len(set(routes)) != len(routes) or not all(self._known[begin:end])):
            return self._added(range(begin, end))
        return (
            dict(zip(routes, self._refused[begin:end], strict=True)),
            dict(zip(routes, self._error[begin:end], strict=True)),
            dict(zip(routes, self._requests[begin:end], strict=True)),
        )

    def _added(self, rows: range) -> _Routes:
        """The same where a route has several sources."""
        sums: dict[str, NDArray[np.float64]] = {}
        for row in rows:
            if self._known[row]:
                route = self._routes[row]
                sums[route] = sums[route] + self._counts[row] if route in sums else self._counts[row]
        return (
            {route: float(counts[0] / counts[2]) for route, counts in sums.items()},
            {route: float(counts[1] / counts[2]) for route, counts in sums.items()},
            {route: math.floor(counts[2] + EPSILON) for route, counts in sums.items()},
        )


def _sums(panel: Panel, values: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.zeros((len(panel.sites), values.shape[1]))
    if len(panel.owner):
        starts = np.flatnonzero(np.diff(panel.owner, prepend=-1))
        found[panel.owner[starts]] = np.add.reduceat(values, starts, axis=0)
    return found


def _window(
    half_life: float, requests: float, now: Sequence[float | None], *, tried: Sequence[float] | None, cost: Cost | None
) -> Window:
    """The window that is read, with the extractions of another one when those take longer to come by."""
    done, failed = tried if tried is not None else (0.0, 0.0)
    extractions = done + failed
    return Window(
        seconds=half_life,
        requests=math.floor(requests + EPSILON),
        extractions=math.floor(extractions + EPSILON),
        rates=Rates(
            hard_block=now[0] or 0.0,
            challenge=now[1] or 0.0,
            soft_block=now[2] or 0.0,
            latency_p95=now[4],
            extraction=failed / extractions if extractions > 0 else None,
        ),
        cost=cost,
    )


def _bounds(lower: Sequence[float]) -> Bounds:
    return Bounds(hard_block=lower[0], challenge=lower[1], soft_block=lower[2], refused=lower[3])


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
    unknown = np.isnan(values)
    if not unknown.any():
        return values.tolist()  # type: ignore[no-any-return] # numpy does not say
    return np.where(unknown, None, values).tolist()  # type: ignore[call-overload,no-any-return] # None makes objects


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
