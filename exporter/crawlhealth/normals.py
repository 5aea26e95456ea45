"""Normals: the own normals of many sites as arrays beside a panel, so that all are judged at once. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth import season
from crawlhealth.outcome import Source
from crawlhealth.panel import Panel
from crawlhealth.verdict import Baseline, Rates, Signal, Spread

HOSTILE: Final = (Signal.HARD_BLOCK, Signal.CHALLENGE, Signal.SOFT_BLOCK)
SHARES: Final = (*HOSTILE, Signal.REFUSED)
"""The order of shares in arrays."""
LATENCY: Final = len(SHARES)
"""The place of latency after them, where there is one."""
WIDTH: Final = 2 / math.log(2) / 3600
"""Hours that a window of one second's half-life is wide: so many hold as much as its effective size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Normals:
    """The normals of N sites with R rows: shares in the order of SHARES, latencies in seconds, NaN for what is unknown.

    `known` says which sites have one, `refused` which of those wait for a person. `row_rates` and `row_latency` are by
    stratum, the site's own where the stratum has none. `spread` and `lasting` are as in a Baseline, with latency last.
    `seasonal` are the places of the sites that have a season, `effects` those of them (season.fitted).
    """

    known: NDArray[np.bool_]
    refused: NDArray[np.bool_]
    rates: NDArray[np.float64]
    latency: NDArray[np.float64]
    extraction: NDArray[np.float64]
    spread: NDArray[np.float64]
    lasting: NDArray[np.float64]
    row_rates: NDArray[np.float64]
    row_latency: NDArray[np.float64]
    seasonal: NDArray[np.intp]
    effects: NDArray[np.float64]

    def chosen(self, sites: NDArray[np.intp], rows: NDArray[np.intp]) -> Normals:
        """Those of some sites and rows, by their places; any may come repeatedly."""
        place_of = np.full(len(self.known), -1)
        place_of[self.seasonal] = np.arange(len(self.seasonal))
        places = place_of[sites]
        return Normals(
            known=self.known[sites],
            refused=self.refused[sites],
            rates=self.rates[sites],
            latency=self.latency[sites],
            extraction=self.extraction[sites],
            spread=self.spread[sites],
            lasting=self.lasting[sites],
            row_rates=self.row_rates[rows],
            row_latency=self.row_latency[rows],
            seasonal=np.flatnonzero(places >= 0),
            effects=self.effects[places[places >= 0]],
        )

    def seasons(self, at: NDArray[np.float64], half_lives: NDArray[np.float64]) -> NDArray[np.float64] | float:
        """By how much shares are expected to differ from their level in windows read at `at` (N): (N, K, 4)."""
        if not len(self.seasonal):
            return 0.0
        found = np.zeros((len(self.known), len(half_lives), LATENCY))
        found[self.seasonal] = season.in_windows(self.effects, self.rates[self.seasonal], at[self.seasonal], half_lives)
        return found

    def swings(self, half_lives: NDArray[np.float64]) -> NDArray[np.float64]:
        """By how much a site's rates vary beyond chance in windows of these half-lives: (N, K, 5).

        The part that lasts stays in a wider window, the rest fades with the root of its width in hours.
        """
        lasting = self.lasting[:, None, :] ** 2
        rest = np.maximum(self.spread[:, None, :] ** 2 - lasting, 0.0)
        width = np.maximum(half_lives * WIDTH, 1.0)
        found: NDArray[np.float64] = np.sqrt(lasting + rest / width[None, :, None])
        return found


class Table:
    """The normals of sites and strata by number, kept from one evaluation to the next. Not thread-safe."""

    def __init__(self) -> None:
        self._sites = np.zeros((0, 18))
        self._rows = np.zeros((0, 6))
        self._effects: dict[int, NDArray[np.float64]] = {}
        self._numbers: dict[str, int] = {}
        self._known: list[object] = []

    def of(self, panel: Panel, baselines: Sequence[Baseline | None]) -> Normals:
        """The normals of a panel's sites. `baselines` are in their order; one that has changed is another object."""
        numbers = self._enter(panel)
        seen = self._known
        bounds = np.searchsorted(panel.owner, np.arange(len(panel.sites) + 1)).tolist()
        ids = panel.row_ids
        for place, (number, baseline) in enumerate(zip(numbers, baselines, strict=True)):
            begin, end = bounds[place], bounds[place + 1]
            key = (baseline, end - begin)
            kept = seen[number]
            if kept is None or kept[0] is not baseline or kept[1] != end - begin:  # type: ignore[index] # see key
                seen[number] = key
                self._put(number, baseline, [panel.keys[row] for row in range(begin, end)], ids[begin:end])
        sites, rows = self._sites[numbers], self._rows[ids]
        seasonal = [place for place, number in enumerate(numbers) if number in self._effects] if self._effects else []
        return Normals(
            known=sites[:, 0] > 0,
            refused=sites[:, 1] > 0,
            rates=sites[:, 2:6],
            latency=sites[:, 6],
            extraction=sites[:, 7],
            spread=sites[:, 8:13],
            lasting=sites[:, 13:18],
            row_rates=rows[:, :4],
            row_latency=rows[:, 4],
            seasonal=np.array(seasonal, dtype=np.intp),
            effects=np.array([self._effects[numbers[place]] for place in seasonal]),
        )

    def _enter(self, panel: Panel) -> list[int]:
        numbers = self._numbers
        found = [numbers.setdefault(site, len(numbers)) for site in panel.sites]
        if len(numbers) > len(self._known):
            self._known.extend([None] * (len(numbers) - len(self._known)))
        self._sites = _room(self._sites, len(numbers))
        if len(panel.row_ids):
            self._rows = _room(self._rows, int(panel.row_ids.max()) + 1)
        return found

    def _put(
        self,
        number: int,
        baseline: Baseline | None,
        keys: Sequence[tuple[str, Source]],
        ids: NDArray[np.intp],
    ) -> None:
        self._effects.pop(number, None)
        if baseline is None:
            self._sites[number] = np.nan
            self._sites[number, :2] = 0.0
            self._rows[ids] = np.nan
            return
        rates = baseline.rates
        spread, lasting = baseline.spread or Spread(), baseline.lasting or baseline.spread or Spread()
        self._sites[number] = (
            1.0, float(baseline.refused), *_shares(rates), _or_nan(rates.latency_p95), _or_nan(rates.extraction),
            *_spreads(spread), *_spreads(lasting),
        )  # fmt: skip
        if baseline.season:
            self._effects[number] = season.unpacked(baseline.season)
        own = {(one.route, one.source): one.rates for one in baseline.strata}
        for key, row in zip(keys, ids.tolist(), strict=True):
            found = own.get((key[0], key[1].value), rates)
            latency = found.latency_p95 if found.latency_p95 is not None else rates.latency_p95
            self._rows[row] = (*_shares(found), _or_nan(latency), 0.0)


def _shares(rates: Rates) -> tuple[float, float, float, float]:
    return rates.hard_block, rates.challenge, rates.soft_block, rates.refused


def _spreads(spread: Spread) -> tuple[float, ...]:
    return spread.hard_block, spread.challenge, spread.soft_block, spread.refused, spread.latency


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _room(array: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    if rows <= len(array):
        return array
    more = max(rows, round(len(array) * 1.25)) - len(array)
    return np.concatenate([array, np.full((more, array.shape[1]), np.nan)])
