"""Size norms: how large the pages of a site and page type usually are, learnt from pages that were served."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

STEPS: Final = 16
"""Buckets to a factor of two: neighbours differ by 4.4 %."""
MIN_PAGES: Final = 20
"""With fewer pages nothing is known of their size."""
MEMORY: Final = 1_000
"""Beyond this many pages all counts are halved, so that a site may grow and shrink over weeks."""
FORGOTTEN: Final = 0.2
"""A size of which so little is left is gone."""
REFRESH: Final = 0.05
"""The usual size is computed anew when this share of pages has been added."""
MAX_PAGE_TYPES: Final = 100
"""Page types learnt of one site; a crawler that invents one for each page fills no memory."""
LOW: Final = 0.05
"""The share of pages that may be smaller than any page which is called collapsed."""
MAX_BYTES: Final = 1 << 40

NormKey = tuple[str, str]
"""Site, page type ("" where none is named)."""
Counts = Mapping[int, float]
"""Pages by size: bucket b holds the sizes around 2^(b / STEPS) bytes."""


@dataclass(slots=True)
class _Sizes:
    """The sizes of one site's pages of one type. An accumulator."""

    counts: dict[int, float] = field(default_factory=dict)
    pages: float = 0.0
    usual: float | None = None
    fresh: float = math.inf

    def add(self, bucket: int, count: int) -> None:
        self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.pages += count
        self.fresh += count
        if self.pages > MEMORY:
            share = MEMORY / 2 / self.pages
            self.counts = {b: c * share for b, c in self.counts.items() if c * share >= FORGOTTEN}
            self.pages = sum(self.counts.values())


class Norms:
    """The usual sizes of all sites. Thread-safe; memory is bounded by the number of sites.

    `known` are the counts of an earlier process, as `changed` gave them.
    """

    def __init__(self, known: Mapping[NormKey, Counts] | None = None) -> None:
        self._lock = threading.Lock()
        self._sizes: dict[str, dict[str, _Sizes]] = {}
        self._changed: set[NormKey] = set()
        for (site, page_type), counts in (known or {}).items():
            sizes = _Sizes(dict(counts), sum(counts.values()))
            self._sizes.setdefault(site, {})[page_type] = sizes

    def usual(self, site: str, page_type: str) -> float | None:
        """The size in bytes against which half means collapsed; None while too few pages were seen.

        It is the median, or twice the lowest twentieth where pages differ so much that small ones are nothing odd.
        """
        with self._lock:
            sizes = self._sizes.get(site, {}).get(page_type)
            if sizes is None:
                return None
            if sizes.fresh >= REFRESH * sizes.pages:
                sizes.usual = usual(sizes.counts)
                sizes.fresh = 0.0
            return sizes.usual

    def add(self, site: str, page_type: str, size: float, count: int = 1) -> None:
        """Note `count` pages of `size` bytes each that were served as content. An empty page says nothing."""
        if size < 1 or count < 1:
            return
        bucket = round(math.log2(min(size, MAX_BYTES)) * STEPS)
        with self._lock:
            types = self._sizes.setdefault(site, {})
            sizes = types.get(page_type)
            if sizes is None:
                if len(types) >= MAX_PAGE_TYPES:
                    return
                sizes = types[page_type] = _Sizes()
            sizes.add(bucket, count)
            self._changed.add((site, page_type))

    def keep(self, sites: Iterable[str]) -> None:
        """Forget all other sites."""
        wanted = set(sites)
        with self._lock:
            self._sizes = {site: types for site, types in self._sizes.items() if site in wanted}
            self._changed = {key for key in self._changed if key[0] in wanted}

    def changed(self) -> Mapping[NormKey, Counts]:
        """What was learnt since the last call, to be kept on disk."""
        with self._lock:
            keys, self._changed = self._changed, set()
            return {(site, kind): dict(self._sizes[site][kind].counts) for site, kind in keys}


def usual(counts: Counts) -> float | None:
    """The usual size of pages in bytes (see `Norms.usual`)."""
    if sum(counts.values()) < MIN_PAGES:
        return None
    return min(_quantile(counts, 0.5), 2 * _quantile(counts, LOW))


def _quantile(counts: Counts, q: float) -> float:
    rank = q * sum(counts.values())
    seen = 0.0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen >= rank:
            break
    size: float = 2.0 ** (bucket / STEPS)
    return size
