"""Ahead: what is seen of some sites at each of several steps, before the bands of any of them are known. Pure.

Most bands stay as they are, so most of it holds. Where a band changes the windows of its site, or the window that its
recovery is judged by, that site is looked at again from the next step on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawlhealth.evaluate import Judged, Seen, look
from crawlhealth.normals import Normals
from crawlhealth.outcome import Source
from crawlhealth.panel import Panel
from crawlhealth.scoresettings import ScoreSettings
from crawlhealth.scoring import Scored
from crawlhealth.sweep import Came, Held, Swept, swept
from crawlhealth.weighted import COLUMNS

Array = NDArray[np.float64]
Numbers = NDArray[np.intp]

_SCORED: Final = tuple(field.name for field in fields(Scored))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The strata of N sites in the order of a panel: those of one site side by side.

    `order` are their numbers, as they became known; `place_of` is the place of each number, `owner` the place of the
    site of each row. `panel` is one without anything in it.
    """

    order: Numbers
    place_of: Numbers
    owner: Numbers
    panel: Panel

    @classmethod
    def of(cls, keys: Sequence[tuple[str, str, Source]], sites: Mapping[str, int], half_lives: Array) -> Rows:
        """Strata, by the places of their sites."""
        owner = np.array([sites[key[0]] for key in keys], dtype=np.intp)
        order = np.argsort(owner, kind="stable")
        place_of = np.empty(len(order), dtype=np.intp)
        place_of[order] = np.arange(len(order))
        shape, columns = (len(sites), len(half_lives)), len(COLUMNS)
        nothing = np.full((len(keys), len(half_lives)), np.nan)
        return cls(
            order=order,
            place_of=place_of,
            owner=owner[order],
            panel=Panel(
                sites=tuple(sites),
                half_lives=half_lives,
                keys=[keys[row][1:] for row in order.tolist()],
                owner=owner[order],
                row_ids=order,
                rows=np.zeros((len(keys), len(half_lives), columns)),
                totals=np.zeros((*shape, columns)),
                p95=nothing,
                p95_low=nothing,
                site_p95=np.full(shape, np.nan),
            ),
        )


class Ahead:
    """What is seen of the sites in T steps.

    `times` (T) are their ends, `shown` the windows that show the bands before the first, and `quiet` (T, N) says how
    long nothing has come of each site.
    """

    def __init__(
        self,
        held: Held,
        came: Came,
        *,
        rows: Rows,
        normals: Normals,
        times: Array,
        shown: Array,
        quiet: Array,
        settings: ScoreSettings,
    ) -> None:
        self._came, self._rows, self._normals, self._settings = came, rows, normals, settings
        self._sites, self._times, self._quiet = len(rows.panel.sites), times, quiet
        self.swept = swept(rows.panel.half_lives, held, came)
        self._seen = self._look(self.swept, np.arange(self._sites), np.arange(len(rows.owner)), shown)

    def seen(self, step: int) -> Seen:
        """What is seen at the end of a step."""
        places = slice(step * self._sites, (step + 1) * self._sites)
        found = self._seen
        return Seen(
            scored=Scored(**{name: getattr(found.scored, name)[places] for name in _SCORED}),
            parser_score=found.parser_score[places],
            extraction_window=found.extraction_window[places],
        )

    def moved(self, step: int, shown: Array, judged: Judged) -> None:
        """Take in what the bands after a step change; `shown` is what showed them before it."""
        after = judged.states.shown
        sites = np.flatnonzero((after != shown) & ~(np.isnan(after) & np.isnan(shown)))
        if not len(sites) and not len(judged.reset_sites):
            return
        sites = np.union1d(sites, judged.reset_sites)
        rows = np.flatnonzero(np.isin(self._rows.owner, sites))
        held = self.swept.at(step, rows)
        for site, window in zip(judged.reset_sites.tolist(), judged.resets.tolist(), strict=True):
            held.reset(np.flatnonzero(self._rows.owner[rows] == site), window)
        self.swept.hold(held, step, rows)
        if step + 1 == len(self._came.values):
            return
        again = swept(self._rows.panel.half_lives, held, self._came.of(rows, step + 1))
        self.swept.put(again, step + 1, rows)
        self._take(self._look(again, sites, rows, after[sites]), step + 1, sites)

    def _look(self, found: Swept, sites: Numbers, rows: Numbers, shown: Array) -> Seen:
        """What is seen of some sites, which have these rows, in all steps of a sweep."""
        steps = len(found.sums)
        panel = found.panel(np.searchsorted(sites, self._rows.owner[rows]), len(sites))
        normals = self._normals.chosen(np.tile(sites, steps), np.tile(rows, steps))
        quiet = self._quiet[len(self._quiet) - steps :, sites].ravel()
        at = np.repeat(self._times[len(self._times) - steps :], len(sites))
        return look(panel, normals, at=at, shown=np.tile(shown, steps), quiet=quiet, settings=self._settings)

    def _take(self, seen: Seen, step: int, sites: Numbers) -> None:
        """Put what is seen of some sites from a step on in place of what was."""
        steps = len(self._came.values)
        places = (np.arange(step, steps)[:, None] * self._sites + sites).ravel()
        for name in _SCORED:
            getattr(self._seen.scored, name)[places] = getattr(seen.scored, name)
        self._seen.parser_score[places] = seen.parser_score
        self._seen.extraction_window[places] = seen.extraction_window
